"""Between OpenAI's messages and the template's: nothing that was said is lost."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.gateway.conversation import from_answer, to_template

CALL = '<tool_call>\n{"name": "查", "arguments": {"n": 7}}\n</tool_call>'
BROKEN = "<tool_call>\n{no json\n</tool_call>"


@given(st.text(), st.booleans())
def test_an_answer_without_calls_is_itself(text: str, tools: bool) -> None:
    if "<tool_call>" not in text:
        assert from_answer(text, tools=tools) == (text, ())


def test_calls_are_read_and_the_rest_stays() -> None:
    text = f"先看。{CALL}之后{BROKEN} 完{CALL}"
    said, calls = from_answer(text, tools=True)
    assert said == f"先看。\n之后\n{BROKEN} 完"
    assert [call["function"]["name"] for call in calls] == ["查", "查"]
    assert json.loads(calls[0]["function"]["arguments"]) == {"n": 7}
    assert calls[0]["id"] != calls[1]["id"]
    assert from_answer(text, tools=False) == (text, ())


def test_calls_in_a_thought_are_thoughts() -> None:
    thought = f"<think>{CALL}</think>"
    assert from_answer(thought + "done", tools=True) == (thought + "done", ())
    said, calls = from_answer(thought + CALL, tools=True)
    assert (said, len(calls)) == (thought, 1)


def test_a_call_goes_back_as_the_model_writes_it() -> None:
    _, calls = from_answer(CALL, tools=True)
    chat = to_template(
        [
            {"role": "developer", "content": [{"type": "text", "text": "短"}]},
            {"role": "assistant", "content": None, "tool_calls": list(calls)},
            {"role": "tool", "tool_call_id": calls[0]["id"], "content": "7"},
        ]
    )
    assert chat == [
        {"role": "system", "content": "短"},
        {"role": "assistant", "content": CALL},
        {"role": "tool", "content": "7", "name": "查"},
    ]


def test_pictures_are_refused() -> None:
    with pytest.raises(BadInput, match=r"messages\[0\]"):
        to_template([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])


def test_half_a_surrogate_pair_in_a_call_stays_an_escape() -> None:
    """JSON lets a model write it, and no UTF-8 carries it."""
    text = CALL.replace("7", r'"苹\ud83d"').replace("查", r"查\ud83d")
    _, [call] = from_answer(text, tools=True)
    assert json.dumps(call, ensure_ascii=False).encode()
    assert json.loads(call["function"]["arguments"]) == {"n": "苹\ud83d"}
    assert call["function"]["name"] == "查?"
