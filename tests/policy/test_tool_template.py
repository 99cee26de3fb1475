"""The built-in chat template for tools: it goes on turn after turn, and is chosen when it fits."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from memograd.errors import BadInput
from memograd.policy.tool_template import TOOL_TEMPLATE, use_tool_template

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
SYSTEM = {"role": "system", "content": "Be quick."}
USER = {"role": "user", "content": "Find it."}
CALL = {"role": "assistant", "content": '<tool_call>\n{"name": "look"}\n</tool_call>'}
RESULT = {"role": "tool", "content": "nothing here"}
OWN = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"


@pytest.fixture
def tokenizer(tiny_model_folder: Path) -> PreTrainedTokenizerBase:
    made = AutoTokenizer.from_pretrained(tiny_model_folder)
    made.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    made.chat_template = OWN
    return made


def render(tokenizer: PreTrainedTokenizerBase, messages: list[dict], **options) -> str:
    return str(
        tokenizer.apply_chat_template(
            messages, tokenize=False, chat_template=TOOL_TEMPLATE, **options
        )
    )


@pytest.mark.parametrize("system", [[], [SYSTEM]])
@pytest.mark.parametrize("results", [[RESULT], [RESULT, RESULT], [USER]])
def test_a_conversation_begins_with_the_earlier_one(tokenizer, system, results) -> None:
    options = {"tools": [TOOL], "add_generation_prompt": True}
    held = render(tokenizer, [*system, USER], **options) + CALL["content"] + "<|im_end|>"
    later = render(tokenizer, [*system, USER, CALL, *results], **options)
    assert later.startswith(held)
    assert later.endswith("<|im_end|>\n<|im_start|>assistant\n")
    after = render(tokenizer, [*system, USER, CALL, *results, CALL, USER], **options)
    assert after.startswith(later + CALL["content"] + "<|im_end|>")


def test_two_results_stand_in_one_turn(tokenizer) -> None:
    shown = render(tokenizer, [USER, CALL, RESULT, RESULT])
    response = "\n<tool_response>\nnothing here\n</tool_response>"
    assert shown.endswith(f"<|im_start|>user{response}{response}<|im_end|>\n")


def test_tools_are_in_the_system_turn_once(tokenizer) -> None:
    shown = render(tokenizer, [SYSTEM, USER], tools=[TOOL])
    assert shown.startswith("<|im_start|>system\nBe quick.\n\nTools:\n")
    assert shown.count("system") == 1 and shown.count('"name": "look"') == 1
    assert render(tokenizer, [USER]) == "<|im_start|>user\nFind it.<|im_end|>\n"


def test_the_models_own_template_is_kept_if_it_asks_for_calls(tokenizer) -> None:
    tokenizer.chat_template = OWN + "{# <tool_call> #}"
    assert use_tool_template(tokenizer, None) is None
    assert tokenizer.chat_template == OWN + "{# <tool_call> #}"


def test_the_built_in_one_is_taken_where_turns_are_marked_alike(tokenizer) -> None:
    assert "does not show tools; the built-in one" in str(use_tool_template(tokenizer, None))
    assert tokenizer.chat_template == TOOL_TEMPLATE


def test_a_model_with_other_marks_needs_a_file(tiny_model_folder: Path, tmp_path: Path) -> None:
    other = AutoTokenizer.from_pretrained(tiny_model_folder)
    with pytest.raises(BadInput, match=r"does not ask for tool calls.*episodes\.chat_template="):
        use_tool_template(other, None)
    with pytest.raises(BadInput, match="cannot be read"):
        use_tool_template(other, tmp_path / "gone.jinja")
    file = tmp_path / "mine.jinja"
    file.write_text(OWN + "{# <tool_call> #}")
    assert str(file) in str(use_tool_template(other, file))
    assert other.chat_template == file.read_text()
