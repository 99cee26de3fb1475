"""Facts through a chat model: a scripted real server, and what is done with bad answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from scripted_chat import servers

from memograd.errors import MemogradError
from memograd.memory.chat.chat_model import OpenAIChatModel
from memograd.memory.reader import ChatReader
from memograd.memory.records.items import Kind
from memograd.memory.records.turns import RawTurn

Serve = Callable[..., Any]
chat_server = pytest.fixture(servers)
TIME = datetime(2024, 5, 10, 12)
ENGLISH = [
    RawTurn("D1:1", "user", "I moved to Boston yesterday.", TIME, 1),
    RawTurn("D1:2", "assistant", "How nice!", TIME, 1),
    RawTurn("D1:3", "user", "I no longer like tea.", TIME, 1),
]
CHINESE = [RawTurn("z1", "user", "我昨天搬到了北京。", TIME, 1)]


def reader(server: Any) -> ChatReader:
    return ChatReader(OpenAIChatModel("tiny", api_key="k", base_url=server.url, retries=0))


def facts(*rows: dict[str, Any]) -> str:
    filled = [
        {"kind": "semantic", "subject": "", "valid_from": None, "retracts": False} | r for r in rows
    ]
    return json.dumps({"facts": filled}, ensure_ascii=False)


def test_numbers_are_mapped_back_to_turns(chat_server: Serve) -> None:
    server = chat_server(
        facts(
            {
                "text": "User moved to Boston on 9 May 2024.", "sources": [1], "kind": "episodic",
                "subject": "User", "valid_from": "2024-05-09",
            },
            {"text": "User likes tea", "sources": [3, 3], "retracts": True,
             "valid_from": "2031-01-01"},
        )
    )  # fmt: skip
    moved, tea = reader(server).read(ENGLISH)
    assert moved.sources == ("D1:1",)
    assert (moved.kind, moved.subject) == (Kind.EPISODIC, "User")
    assert moved.valid_from == datetime(2024, 5, 9)
    assert tea.retracts and tea.sources == ("D1:3",)
    assert tea.valid_from == TIME  # what is still to come is known since it was said
    shown = server.requests[0]["body"]["messages"][1]["content"]
    assert shown.splitlines()[0].startswith("1. [10 May 2024] user: I moved")
    assert "D1:1" not in shown


def test_invented_numbers_are_dropped_and_logged(
    chat_server: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    server = chat_server(
        facts(
            {"text": "User lives in Boston.", "sources": [1, 9, True, "2"]},
            {"text": "User is a pilot.", "sources": [0]},
        )
    )
    with caplog.at_level(logging.WARNING):
        [fact] = reader(server).read(ENGLISH)
    assert fact.sources == ("D1:1",)
    assert "was not shown: [9" in caplog.text
    assert "and the fact with them" in caplog.text


def test_a_model_that_drifts_out_of_chinese_is_asked_once_more(chat_server: Serve) -> None:
    server = chat_server(
        facts({"text": "User moved to Beijing.", "sources": [1]}),
        facts({"text": "用户于2024年5月9日搬到了北京。", "sources": [1]}),
    )
    [fact] = reader(server).read(CHINESE)
    assert fact.text == "用户于2024年5月9日搬到了北京。"
    first, second = (r["body"]["messages"] for r in server.requests)
    assert "Chinese" in first[0]["content"]
    assert "must be written in Chinese" in second[-1]["content"]


@pytest.mark.parametrize(
    "answer",
    [
        "{}",
        facts({"text": " ", "sources": [1]}),
        facts({"text": "User is here.", "sources": 1}),
        facts({"text": "User is here.", "sources": [1], "kind": "gossip"}),
        facts({"text": "User is here.", "sources": [1], "valid_from": "soon"}),
        facts({"text": "用户在这里住了很久。", "sources": [1]}),
        '{"facts": ["User is here."]}',
    ],
)
def test_two_unusable_answers_are_an_error(chat_server: Serve, answer: str) -> None:
    server = chat_server(answer, answer)
    with pytest.raises(MemogradError, match="twice"):
        reader(server).read(ENGLISH)
    assert len(server.requests) == 2


def test_nothing_said_asks_nothing(chat_server: Serve) -> None:
    server = chat_server()
    assert reader(server).read([]) == []
    assert reader(server).read([RawTurn("1", "user", "  ", TIME, 1)]) == []
    assert server.requests == []


def test_no_facts_is_a_fine_answer(chat_server: Serve) -> None:
    assert reader(chat_server('{"facts": []}')).read(ENGLISH) == []
