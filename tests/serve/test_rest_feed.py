"""The feed of operations: what happens is told once, and it ends with the server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from asked import ADMIN, Serving, added

from memograd.memory.records.events import Event
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.write.changes import heard
from memograd.serve.identity import Identity
from memograd.serve.keys import Right
from memograd.web.running import running


def test_the_feed_tells_what_happens_and_goes_on_where_it_was(serving: Serving) -> None:
    with running(serving.app) as address:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        with httpx.Client(base_url=address, headers=headers, trust_env=False) as client:
            one = added(serving, "I like tea.", user_id="alice")
            found: list[tuple[str, dict[str, Any]]] = []
            with client.stream("GET", "/operations/feed?after=0") as stream:
                lines = stream.iter_lines()
                threading.Timer(0.3, lambda: added(serving, "I like milk.", user_id="bob")).start()
                place = ""
                for line in lines:
                    if line.startswith("id: "):
                        place = line.removeprefix("id: ")
                    if line.startswith("data: "):
                        found.append((place, json.loads(line.removeprefix("data: "))))
                    if len(found) == 2:
                        break
            assert [data["new_memory"] for _, data in found] == ["I like tea.", "I like milk."]
            with client.stream(
                "GET", "/operations/feed", headers={"Last-Event-ID": found[0][0]}
            ) as stream:
                told = next(line for line in stream.iter_lines() if line.startswith("data: "))
            assert "milk" in told
    page = serving.ask("GET", "/operations", params={"limit": 1}).json()
    assert page["results"][0]["memory_id"] == one
    params = {"after": page["next_after"]}
    assert serving.ask("GET", "/operations", params=params).json()["results"][0]["user_id"] == "bob"


def test_a_feed_that_waits_reads_nothing_twice(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raw turns are no operations: many of them would be read anew four times a second."""
    serving.memory.store.journal.append(
        [heard(RawTurn(str(n), "ann", "Hm.", None, 1), Scope("alice")) for n in range(1200)]
    )
    journal = serving.memory.store.journal
    read: list[int] = []

    def counted(page: Callable[..., list[Event]]) -> Callable[..., list[Event]]:
        def reading(*given: Any, **named: Any) -> list[Event]:
            found = page(*given, **named)
            read.append(len(found))
            return found

        return reading

    monkeypatch.setattr(journal, "tail_page", counted(journal.tail_page))
    memory = serving.served.memory_of(
        Identity("k", "k", "user:alice", frozenset(Right)), via="rest"
    )
    assert memory.operations_until(after=0, limit=5) == ([], 1200)
    assert memory.operations_until(after=1200, limit=5) == ([], 1200)
    assert read == [500, 500, 200, 0]
    ids = [added(serving, f"Tea {n}.", user_id="alice") for n in range(7)]
    found, place = memory.operations_until(after=1200, limit=5)
    assert ([event.subject for event in found], place) == (ids[:5], found[-1].seq)
    found, place = memory.operations_until(after=place, limit=5)
    assert ([event.subject for event in found], place) == (ids[5:], journal.last_seq())


def test_a_server_that_ends_ends_its_feeds(serving: Serving) -> None:
    with running(serving.app) as address:
        client = httpx.Client(base_url=address, trust_env=False)
        headers = {"X-API-Key": ADMIN}
        stream = client.stream("GET", "/operations/feed", headers=headers)
        lines = stream.__enter__().iter_lines()
        assert next(lines) == ": listening"
    assert list(lines) == [""]  # it ended in order
    stream.__exit__(None, None, None)
