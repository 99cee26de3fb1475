"""Every opening tag is a call or a reason why it is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from memograd.errors import BadInput
from memograd.rollout.tool_calls import (
    TOOL_TEMPLATE,
    MalformedCall,
    ToolCall,
    check_convention,
    parse_tool_calls,
    use_tool_template,
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_characters="<")),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
arguments = st.dictionaries(st.text(st.characters(exclude_characters="<"), max_size=4), values)
calls = st.lists(st.tuples(st.text(st.characters(exclude_characters="<")), arguments), max_size=3)


def written(name: str, given: object) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': given})}\n</tool_call>"


@given(calls, st.text(st.characters(exclude_characters="<")))
def test_what_is_written_is_read_in_order(made, between: str) -> None:
    action = between + between.join(written(name, given) for name, given in made)
    assert parse_tool_calls(action) == [ToolCall(name, given) for name, given in made]


@given(st.text('<>/tol_ca{}"name:,[]1\n ', max_size=60))
def test_every_opening_tag_gives_one_entry(text: str) -> None:
    action = text.replace("t", "<tool_call>")
    assert len(parse_tool_calls(action)) == action.count("<tool_call>")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("multiply(6, 7)", "not JSON"),
        ('{"name": "multiply", "arguments": {"a": 6}', "not JSON"),
        ("[1, 2]", "not a JSON object"),
        ('{"arguments": {}}', '"name" is missing'),
        ('{"name": 7}', '"name" is missing'),
        ('{"name": "multiply", "arguments": "{\\"a\\": 6}"}', '"arguments" is not'),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_malformed_call_says_why(body: str, reason: str) -> None:
    (call,) = parse_tool_calls(f"<tool_call>{body}</tool_call>")
    assert isinstance(call, MalformedCall)
    assert reason in call.reason


def test_a_call_that_is_not_closed_is_malformed() -> None:
    first, second = parse_tool_calls(written("look", {}) + '<tool_call>{"name": "look"')
    assert first == ToolCall("look", {})
    assert isinstance(second, MalformedCall) and "no </tool_call> follows" in second.reason


def test_a_call_without_arguments_has_none() -> None:
    assert parse_tool_calls('<tool_call>{"name": "look"}</tool_call>') == [ToolCall("look", {})]


@pytest.mark.parametrize("key", ["parameters", "args", "input", "参数"])
def test_arguments_under_a_wrong_key_are_no_empty_call(key: str) -> None:
    body = json.dumps({"name": "look_up", key: {"patient": 7}}, ensure_ascii=False)
    [call] = parse_tool_calls(f"<tool_call>{body}</tool_call>")
    assert isinstance(call, MalformedCall)
    assert f'"arguments" is missing, and "{key}"' in call.reason


def test_calls_in_thoughts_are_thoughts() -> None:
    thought = f"<think>I could say {written('wrong', {})}</think>"
    assert parse_tool_calls(thought + written("right", {})) == [ToolCall("right", {})]
    assert parse_tool_calls(f"<think>{written('wrong', {})}") == []


def test_templates_that_call_tools_in_this_way_are_told_from_others(
    qwen3_tokenizer, qwen25_template, tiny_tokenizer
) -> None:
    check_convention(qwen3_tokenizer.chat_template)
    check_convention(qwen25_template)
    with pytest.raises(BadInput, match="does not ask for tool calls as JSON"):
        check_convention(tiny_tokenizer.chat_template)


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
