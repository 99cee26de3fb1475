"""What was drawn is never tokenised again, and a rewritten history starts a new row."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.rollout import Message

USER = Message(role="user", content="What is 6 times 7?")
CALL = '<tool_call>\n{"name": "multiply", "arguments": {"a": 6, "b": 7}}\n</tool_call>'
RESULT = Message(role="tool", content="42", name="multiply")
TOOL = {
    "type": "function",
    "function": {
        "name": "multiply",
        "description": "Multiply.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    },
}


def said(text: str) -> Message:
    return Message(role="assistant", content=text)


def ids_of(tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False)


def turn_after(chat, tokenizer, action_ids, observation, opening=(USER,), tools=()):
    """Held ids and the next turn of a conversation of one action and one observation."""
    held = (*chat.first(opening, tools).ids, *action_ids)
    action = said(chat.action_text(action_ids))
    return held, chat.after(held, [*opening, action, observation], tools)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 257), max_size=12), st.booleans(), st.text(max_size=12))
def test_a_row_goes_on_with_the_ids_held_whatever_was_drawn(
    tiny_tokenizer, chat_of, action: list[int], ends: bool, observation: str
) -> None:
    """Any bytes, also such as are no text, cut or ended."""
    chat = chat_of(tiny_tokenizer)
    action_ids = (*action, 0) if ends else tuple(action)
    seen = Message(role="user", content=observation)
    _, turn = turn_after(chat, tiny_tokenizer, action_ids, seen)
    assert not turn.starts_row
    assert turn.mismatch in (None, "tokenisation")
    # The new ids alone say what the template puts after an action.
    closing = "" if ends else "<|end|>"
    expected = f"{closing}<|start|>user\n{observation}<|end|><|start|>assistant\n"
    assert list(turn.ids) == ids_of(tiny_tokenizer, expected)


def test_the_observation_of_a_tool_is_what_qwen3_writes(qwen3_tokenizer, chat_of) -> None:
    chat = chat_of(qwen3_tokenizer)
    action = ids_of(qwen3_tokenizer, CALL + "<|im_end|>")
    held, turn = turn_after(chat, qwen3_tokenizer, action, RESULT, tools=[TOOL])
    assert (turn.starts_row, turn.mismatch) == (False, None)
    assert qwen3_tokenizer.decode(turn.ids) == (
        "\n<|im_start|>user\n<tool_response>\n42\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    whole = qwen3_tokenizer.apply_chat_template(
        [dict(USER), dict(said(CALL)), dict(RESULT)],
        tools=[TOOL],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=False,
    )
    assert [*held, *turn.ids] == whole


def test_an_action_in_unusual_tokens_is_kept_and_counted(qwen3_tokenizer, chat_of) -> None:
    spelled = [token for letter in "return" for token in ids_of(qwen3_tokenizer, letter)]
    assert spelled != ids_of(qwen3_tokenizer, "return")
    action = [*spelled, qwen3_tokenizer.eos_token_id]
    _, turn = turn_after(
        chat_of(qwen3_tokenizer), qwen3_tokenizer, action, Message(role="user", content="Go on.")
    )
    assert (turn.starts_row, turn.mismatch) == (False, "tokenisation")
    assert qwen3_tokenizer.decode(turn.ids) == (
        "\n<|im_start|>user\nGo on.<|im_end|>\n<|im_start|>assistant\n"
    )


def test_thoughts_stay_while_tools_answer_and_go_when_a_person_does(
    qwen3_tokenizer, chat_of
) -> None:
    chat = chat_of(qwen3_tokenizer)
    action = ids_of(qwen3_tokenizer, f"<think>\nA product.\n</think>\n\n{CALL}<|im_end|>")
    _, turn = turn_after(chat, qwen3_tokenizer, action, RESULT, tools=[TOOL])
    assert (turn.starts_row, turn.mismatch) == (False, None)
    person = Message(role="user", content="And 6 times 8?")
    _, turn = turn_after(chat, qwen3_tokenizer, action, person, tools=[TOOL])
    assert (turn.starts_row, turn.mismatch) == (True, "history")
    text = qwen3_tokenizer.decode(turn.ids)
    assert "A product" not in text and CALL in text and text.startswith("<|im_start|>system")


def test_another_end_token_than_the_templates_starts_a_new_row(qwen3_tokenizer, chat_of) -> None:
    action = ids_of(qwen3_tokenizer, "42<|endoftext|>")
    _, turn = turn_after(
        chat_of(qwen3_tokenizer), qwen3_tokenizer, action, Message(role="user", content="Sure?")
    )
    assert (turn.starts_row, turn.mismatch) == (True, "special_tokens")
    assert qwen3_tokenizer.decode(turn.ids).startswith("<|im_start|>user\nWhat is 6 times 7?")


def test_trimmed_white_space_starts_a_new_row(tiny_tokenizer, chat_of) -> None:
    trimming = copy.deepcopy(tiny_tokenizer)
    trimming.chat_template = trimming.chat_template.replace(
        "message['content'] }}", "message['content'] | trim }}"
    )
    chat = chat_of(trimming)
    seen = Message(role="user", content="so?")
    for action, kind in (("four ", "whitespace"), ("four", None)):
        _, turn = turn_after(chat, trimming, [*ids_of(trimming, action), 0], seen)
        assert (turn.starts_row, turn.mismatch) == (kind is not None, kind)


def test_a_system_message_that_the_template_adds_is_no_mismatch(
    qwen3_tokenizer, qwen25_template, chat_of
) -> None:
    tokenizer = copy.deepcopy(qwen3_tokenizer)
    tokenizer.chat_template = qwen25_template
    chat = chat_of(tokenizer)
    assert "You are Qwen" in tokenizer.decode(chat.first([USER], []).ids)
    action = ids_of(tokenizer, CALL + "<|im_end|>")
    for tools in ((), (TOOL,)):
        _, turn = turn_after(chat, tokenizer, action, RESULT, tools=tools)
        assert (turn.starts_row, turn.mismatch) == (False, None)


def test_template_options_reach_every_rendering(qwen3_tokenizer, chat_of) -> None:
    """Without thinking, Qwen 3's generation prompt holds an empty thought; its history does not."""
    chat = chat_of(qwen3_tokenizer, enable_thinking=False)
    assert "<think>\n\n</think>" in qwen3_tokenizer.decode(chat.first([USER], []).ids)
    action = ids_of(qwen3_tokenizer, CALL + "<|im_end|>")
    _, turn = turn_after(chat, qwen3_tokenizer, action, RESULT)
    assert (turn.starts_row, turn.mismatch) == (True, "history")
    assert qwen3_tokenizer.decode(turn.ids).endswith("<think>\n\n</think>\n\n")


def test_a_template_that_refuses_the_conversation_is_bad_input(tiny_tokenizer, chat_of) -> None:
    strict = copy.deepcopy(tiny_tokenizer)
    strict.chat_template = "{{ raise_exception('tools are not for me') }}"
    with pytest.raises(BadInput, match=r"refuses a conversation of user, tool .*not for me"):
        chat_of(strict).first([USER, RESULT], [])


def test_a_template_that_ignores_tools_is_bad_input(tiny_tokenizer, chat_of) -> None:
    with pytest.raises(BadInput, match="chat template ignores tools"):
        chat_of(tiny_tokenizer).first([USER], [TOOL])
