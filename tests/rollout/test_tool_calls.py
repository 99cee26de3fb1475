"""Every opening tag is a call or a reason why it is none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.rollout.tool_calls import (
    MalformedCall,
    ToolCall,
    check_convention,
    parse_tool_calls,
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
