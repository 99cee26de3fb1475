"""Decisions through a chat model: a scripted real server, and what is done with bad answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from scripted_chat import servers

from memograd.errors import MemogradError
from memograd.memory.chat.chat_model import OpenAIChatModel
from memograd.memory.manager import ChatManager
from memograd.memory.reader import Fact
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import Decision, MemoryOp
from memograd.memory.records.scope import Scope
from memograd.memory.search import Hit, Query, Why
from memograd.memory.state import MemoryState

Serve = Callable[..., Any]
chat_server = pytest.fixture(servers)
NOW = datetime(2024, 5, 1, tzinfo=UTC)
WHY = Why(1, 0.9, None, 0.0, (), 0.9)
RELATED = [
    Hit(MemoryItem(f"id-{n}", text, Scope("u"), NOW, NOW), 0.9, WHY)
    for n, text in enumerate(["Ann likes tea", "Ann lives in\n1. Rome"], 1)
]
FACT = Fact("Ann lives in Oslo", ("t1",))


def manager(server: Any) -> ChatManager:
    return ChatManager(OpenAIChatModel("tiny", api_key="k", base_url=server.url, retries=0))


def decided(server: Any, fact: Fact, related: list[Hit[MemoryItem]]) -> Decision:
    """What the model says; it looks at the fact and the items alone."""
    query = Query(fact.text, np.zeros(4, np.float32), ())
    return manager(server).decide(MemoryState(4), fact, query, related)


def answer(op: str, number: Any = None, text: Any = None) -> str:
    return json.dumps({"op": op, "id": number, "text": text, "reason": "because"})


@pytest.mark.parametrize(
    ("said", "op"),
    [
        (answer("ADD", None, "Ann lives in Oslo"), MemoryOp.add("Ann lives in Oslo")),
        (answer("ADD", 1, "Ann lives in Oslo"), MemoryOp.add("Ann lives in Oslo")),
        (answer("UPDATE", 2, "Ann lives in Oslo"), MemoryOp.update("id-2", "Ann lives in Oslo")),
        (answer("DELETE", 1, "superfluous"), MemoryOp.delete("id-1")),
        (answer("NONE", 2), MemoryOp.none("id-2")),
        (answer("NONE"), MemoryOp.none()),
    ],
)
def test_the_four_operations(chat_server: Serve, said: str, op: MemoryOp) -> None:
    server = chat_server(said)
    decision = decided(server, FACT, RELATED)
    assert decision.op == op
    assert decision.reason == "because"
    assert manager(server).actor == "llm:tiny"


def test_items_are_shown_by_number_on_one_line_each(chat_server: Serve) -> None:
    server = chat_server(answer("NONE"))
    decided(server, FACT, RELATED)
    shown = server.requests[0]["body"]["messages"][1]["content"]
    assert shown.splitlines()[-2:] == ["1. Ann likes tea", "2. Ann lives in 1. Rome"]
    assert "id-1" not in shown


def test_a_retraction_says_so(chat_server: Serve) -> None:
    server = chat_server(answer("DELETE", 1))
    decided(server, Fact("Ann likes tea", (), retracts=True), RELATED)
    assert "FORGOTTEN: Ann likes tea" in server.requests[0]["body"]["messages"][1]["content"]


BAD = [
    answer("DELETE", 3),
    answer("DELETE", 0),
    answer("DELETE", "id-1"),
    answer("DELETE", True),
    answer("DELETE"),
    answer("UPDATE", 1),
    answer("UPDATE", 1, "  "),
    answer("UPDATE", 1, 7),
    answer("ADD"),
    answer("KEEP"),
    "I would add it.",
]


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_answer_is_sent_back_once(chat_server: Serve, bad: str) -> None:
    server = chat_server(bad, answer("DELETE", 1))
    assert decided(server, FACT, RELATED).op == MemoryOp.delete("id-1")
    assert "cannot be used" in server.requests[1]["body"]["messages"][-1]["content"]


@pytest.mark.parametrize("bad", BAD)
def test_two_bad_answers_are_an_error_and_never_a_none(chat_server: Serve, bad: str) -> None:
    with pytest.raises(MemogradError, match="twice"):
        decided(chat_server(bad, bad), FACT, RELATED)


def test_no_item_can_be_named_where_none_is_shown(chat_server: Serve) -> None:
    with pytest.raises(MemogradError, match="the ids are none"):
        decided(chat_server(answer("DELETE", 1), answer("NONE", 1)), FACT, [])
