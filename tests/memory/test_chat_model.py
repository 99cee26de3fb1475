"""OpenAI's protocol over a real local HTTP server that answers as it is told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from scripted_chat import servers

from memograd.errors import BadInput, MemogradError
from memograd.memory.chat.chat_model import (
    ChatMessage,
    OpenAIChatModel,
    UnusableAnswer,
    ask_checked,
    find_object,
)

KEY = "sk-very-secret"
HELLO: list[ChatMessage] = [{"role": "user", "content": "hello"}]
SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
Serve = Callable[..., Any]
chat_server = pytest.fixture(servers)


def model(server: Any, **settings: Any) -> OpenAIChatModel:
    return OpenAIChatModel("tiny", api_key=KEY, base_url=server.url, timeout=5, **settings)


def test_an_answer_comes_back(chat_server: Serve) -> None:
    server = chat_server("Hi!")
    chat = model(server)
    assert chat.complete(HELLO, max_tokens=7) == "Hi!"
    assert chat.name == "tiny"
    [request] = server.requests
    assert request["path"] == "/v1/chat/completions"
    assert request["key"] == f"Bearer {KEY}"
    assert request["body"] == {
        "model": "tiny", "messages": HELLO, "max_tokens": 7, "temperature": 0.0,
    }  # fmt: skip


def test_a_schema_is_sent(chat_server: Serve) -> None:
    server = chat_server('{"n": 1}')
    model(server).complete(HELLO, max_tokens=7, schema=SCHEMA)
    sent = server.requests[0]["body"]["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["schema"] == SCHEMA


def test_each_step_back_is_logged_once_and_remembered(
    chat_server: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    server = chat_server((400, "no schemas"), (400, "no json_object"), "one", "two")
    chat = model(server)
    with caplog.at_level(logging.WARNING):
        assert chat.complete(HELLO, max_tokens=7, schema=SCHEMA) == "one"
        assert chat.complete(HELLO, max_tokens=7, schema=SCHEMA) == "two"
    ways = [r["body"].get("response_format", {}).get("type") for r in server.requests]
    assert ways == ["json_schema", "json_object", None, None]
    warnings = [r for r in caplog.records if r.name == "memograd.memory.chat.chat_model"]
    assert len(warnings) == 2


def test_a_server_that_recovers_is_asked_again(chat_server: Serve) -> None:
    server = chat_server((500, "oops"), "fine")
    assert model(server).complete(HELLO, max_tokens=7) == "fine"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([(401, f"bad key {KEY}")], "did not accept the API key"),
        ([(400, f"bad {KEY}")], "refused the request"),
        ([(404, "no such model")], "status 404: no such model"),
        ([(500, "oops")], "status 500: oops"),
        ([{"content": "half an ans", "finish_reason": "length"}], "cut off after 7 tokens"),
        ([{"content": "", "finish_reason": "stop"}], "empty answer"),
        ([{"choices": []}], "without choices"),
    ],
)
def test_failures_are_one_sentence_without_the_key(
    chat_server: Serve, answers: list[Any], said: str
) -> None:
    server = chat_server(*answers)
    with pytest.raises(MemogradError) as failure:
        model(server, retries=0).complete(HELLO, max_tokens=7)
    message = str(failure.value)
    assert said in message
    assert server.url in message
    assert KEY not in message and KEY not in repr(model(server))
    assert "\n" not in message
    assert failure.value.__cause__ is None


def test_a_server_that_is_not_there() -> None:
    chat = OpenAIChatModel("tiny", api_key=KEY, base_url="http://127.0.0.1:9/v1", retries=0)
    with pytest.raises(MemogradError, match="cannot be reached"):
        chat.complete(HELLO, max_tokens=7)


@pytest.mark.parametrize(("name", "key"), [("", "k"), ("tiny", " ")])
def test_what_is_missing_is_named(name: str, key: str) -> None:
    with pytest.raises(BadInput, match="model"):
        OpenAIChatModel(name, api_key=key)


@pytest.mark.parametrize(
    "answer",
    ['{"n": 1}', '```json\n{"n": 1}\n```', 'Sure {x}! Here: {"n": 1}. Enjoy {it}.', '[{"n": 1}]'],
)
def test_the_object_is_found_in_what_surrounds_it(answer: str) -> None:
    assert find_object(answer) == {"n": 1}


@pytest.mark.parametrize("answer", ["", "no", '{"n": ', "[1, 2]", "{" * 5000])
def test_no_object_is_said(answer: str) -> None:
    with pytest.raises(UnusableAnswer):
        find_object(answer)


def _number(answer: Mapping[str, Any]) -> int:
    if not isinstance(answer.get("n"), int):
        raise UnusableAnswer('it has no number "n".')
    return int(answer["n"])


def test_an_unusable_answer_is_sent_back_once_with_the_fault(chat_server: Serve) -> None:
    server = chat_server("what?", '{"n": 3}')
    found = ask_checked(model(server), HELLO, _number, schema=SCHEMA, max_tokens=7)
    assert found == 3
    again = server.requests[1]["body"]["messages"]
    assert again[1] == {"role": "assistant", "content": "what?"}
    assert "no JSON object" in again[2]["content"]


def test_a_second_unusable_answer_is_an_error(chat_server: Serve) -> None:
    server = chat_server("what?", '{"m": 3}')
    with pytest.raises(MemogradError, match=r"'tiny' gave an unusable answer twice.*number"):
        ask_checked(model(server), HELLO, _number, schema=SCHEMA, max_tokens=7)
    assert len(server.requests) == 2
