"""Places in a journal that are looked up at every search, and counts that are only counted on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import BadInput
from memograd.memory.journal import Journal
from memograd.memory.records.events import EventKind, NewEvent
from memograd.memory.records.scope import Scope

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")


def add(subject: str, scope: Scope = ALICE) -> NewEvent:
    return NewEvent(EventKind.ADD, scope, subject, after={"text": subject})


def test_the_place_of_a_moment(url: str) -> None:
    days = [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    clock = iter(days)
    with Journal.open(url, clock=lambda: next(clock)) as journal:
        journal.append([add("a1"), add("a2")])
        journal.append([add("b1", BOB)])
        journal.append([add("a3")])
        second = timedelta(seconds=1)
        moments = [days[0] - second, days[0], days[1] + second, days[2], days[2] + second]
        assert [journal.seq_at("user:alice", moment) for moment in moments] == [0, 2, 2, 4, 4]
        for moment in moments:
            told = journal.tail("user:alice", until=moment)
            assert journal.seq_at("user:alice", moment) == (told[-1].seq if told else 0)
        assert journal.seq_at("user:nobody", days[2]) == 0
        with pytest.raises(BadInput, match="time zone"):
            journal.seq_at("user:alice", datetime(2024, 1, 1))


def test_the_last_purge_of_an_owner(journal: Journal) -> None:
    journal.append([add("a1"), add("a2"), add("b1", BOB)])
    assert journal.last_purge("user:alice") == 0
    [one] = journal.purge(subjects=["a1"], actor="user", reason="")
    assert (journal.last_purge("user:alice"), journal.last_purge("user:bob")) == (one.seq, 0)
    [whole] = journal.purge(owners=["user:alice"], actor="user", reason="")
    journal.append([add("a3")])
    assert journal.last_purge("user:alice") == whole.seq


def test_added_items_are_counted_on_as_others_write(url: str) -> None:
    with Journal.open(url) as journal, Journal.open(url) as other:
        assert (journal.count_added(None), journal.count_added(["user:alice"])) == (0, 0)
        for writer in (journal, other, other):
            number = writer.last_seq()
            writer.append([add(f"a{number}"), add(f"a{number}'"), add(f"b{number}", BOB)])
            writer.append([NewEvent(EventKind.DELETE, ALICE, f"a{number}")])
            counted = [
                [one.count_added(owners) for owners in (None, ["user:alice"], ["user:bob"])]
                for one in (journal, other, Journal(writer._database, writer._clock))
            ]
            assert counted[0] == counted[1] == counted[2]
        assert counted[0] == [9, 6, 3]
        assert journal.count_added(["user:alice", "user:bob", "user:nobody"]) == 9
        assert journal.count_added([]) == 0
        journal.purge(owners=["user:alice"], actor="user", reason="")  # events stay, without words
        assert journal.count_added(["user:alice"]) == 6


def test_what_is_asked_at_every_search_and_write_is_answered_from_an_index(tmp_path: Path) -> None:
    plans: dict[str, str] = {}
    with Journal.open(f"sqlite:///{tmp_path}/j.db") as journal:
        journal.append([add("a1")])
        statements: list[str] = []

        def plan(name: str, ask: Any) -> None:
            with journal._database.reading() as connection:
                driver = connection.connection.driver_connection
            assert driver is not None
            statements.clear()
            driver.set_trace_callback(statements.append)
            ask()
            driver.set_trace_callback(None)
            asked = [one for one in statements if one.startswith("SELECT") and "events" in one]
            explained = [driver.execute(f"EXPLAIN QUERY PLAN {one}").fetchall() for one in asked]
            plans[name] = "; ".join(row[3] for rows in explained for row in rows)

        plan("seq_at", lambda: journal.seq_at("user:alice", datetime.now(UTC)))
        plan("last_purge", lambda: journal.last_purge("user:alice"))
        plan("count", lambda: journal.count_added(["user:alice"]))
        plan("count all", lambda: journal.count_added(None))
        plan("append", lambda: journal.append([add("a2")], expect={"a2": 0}))
        plan("latest", lambda: journal.latest("a1", owner="user:alice"))
    assert "COVERING INDEX events_by_time" in plans["seq_at"]
    assert "COVERING INDEX events_by_kind (owner=? AND kind=?" in plans["last_purge"]
    assert "COVERING INDEX events_by_kind (owner=? AND kind=? AND seq>?)" in plans["count"]
    assert "COVERING INDEX" in plans["count all"]
    fit = "COVERING INDEX events_by_subject (subject=? AND owner=? AND seq>?)"
    assert fit in plans["append"]
    assert "INDEX events_by_subject (subject=? AND owner=?" in plans["latest"]
