"""What purging leaves in the rows of a journal; what it leaves in files: purge_files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from memograd.errors import BadInput
from memograd.memory.journal import DerivedText, Journal
from memograd.memory.records.events import Event, EventKind, NewEvent
from memograd.memory.records.items import content_hash
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")


def add(subject: str, text: str = "", scope: Scope = ALICE, **extra: Any) -> NewEvent:
    return NewEvent(EventKind.ADD, scope, subject, after={"text": text or subject, **extra})


def derive(text: str, owner: str = "user:alice", dimension: int = 4) -> DerivedText:
    vector = np.arange(dimension, dtype=np.float32) + len(text)
    return DerivedText(owner, content_hash(text), vector, tuple(text.split()))


def texts_of(events: list[Event]) -> list[str | None]:
    return [event.after["text"] if event.after else None for event in events]


def test_purging_subjects_erases_all_that_speaks_of_them(journal: Journal) -> None:
    turn = RawTurn("t1", "Alice", "my passport is K123", datetime(2024, 1, 1, tzinfo=UTC), 1)
    none = {"text": "Passport: K123", "item_id": "i1"}
    from_turn = {"text": "K123 is a passport", "item_id": "i2", "sources": ["t1"]}
    update = NewEvent(
        EventKind.UPDATE, ALICE, "i1", {"text": "i1 old"}, {"text": "shared"}, "u", "K123"
    )
    texts = ["i1 old", "shared", "Passport: K123", turn.index_text(), "i2 says"]
    journal.append(
        [
            NewEvent(EventKind.TURN, ALICE, "t1", after={"turn": turn.to_json()}),
            add("i1", "i1 old"),
            update,
            NewEvent(EventKind.NONE, ALICE, "n1", after=none),
            NewEvent(EventKind.NONE, ALICE, "n2", after=from_turn),
            NewEvent(EventKind.NONE, ALICE, "n3", after={"text": "other", "item_id": "i2"}),
            add("i2", "i2 says"),
            add("i3", "shared"),
            add("b1", "i1 old", scope=BOB),
        ],
        derived=[*map(derive, texts), derive("i1 old", owner="user:bob")],
    )
    tombstones = journal.purge(subjects=["i1", "t1"], actor="user", reason="asked to")
    assert [(event.kind, event.subject, event.scope) for event in tombstones] == [
        (EventKind.PURGE, "i1", ALICE),
        (EventKind.PURGE, "t1", ALICE),
    ]
    events = journal.tail("user:alice")
    assert events[-2:] == tombstones
    erased = [event for event in events if event.erased]
    assert [event.subject for event in erased] == ["t1", "i1", "i1", "n1", "n2"]
    assert all((e.before, e.after, e.reason) == (None, None, "") for e in erased)
    assert [e.subject for e in events if not e.erased] == ["n3", "i2", "i3", "i1", "t1"]
    assert "K123" not in json.dumps([event.to_json() for event in events])
    kept = {content_hash("shared"), content_hash("i2 says")}
    assert journal.derived("user:alice").keys() == kept
    assert journal.derived("user:bob").keys() == {content_hash("i1 old")}
    assert texts_of(journal.tail("user:bob")) == ["i1 old"]
    # Purging once more is harmless, and the tombstone keeps its reason.
    assert journal.purge(subjects=["i1"], actor="user", reason="again") == []
    assert [e.reason for e in journal.history("i1") if e.kind is EventKind.PURGE] == ["asked to"]


def test_purging_an_owner_leaves_one_tombstone_and_no_contents(journal: Journal) -> None:
    journal.append(
        [add("a1"), add("a2", scope=Scope("alice", "planner")), add("b1", scope=BOB)],
        derived=[derive("a1"), derive("unrelated"), derive("b1", owner="user:bob")],
    )
    tombstones = journal.purge(owners=["user:alice", "user:nobody"], actor="user", reason="left")
    assert [(event.subject, event.scope) for event in tombstones] == [("user:alice", ALICE)]
    events = journal.tail("user:alice")
    assert [event.erased for event in events] == [True, True, False]
    assert texts_of(events) == [None, None, None]
    assert journal.derived("user:alice") == {}
    assert texts_of(journal.tail("user:bob")) == ["b1"]
    assert len(journal.derived("user:bob")) == 1
    assert journal.stats()["erased"] == 2


def test_purging_what_does_not_exist_is_refused_and_erases_nothing(journal: Journal) -> None:
    journal.append([add("a1")])
    with pytest.raises(BadInput, match="'ghost'"):
        journal.purge(subjects=["a1", "ghost"], actor="user", reason="")
    assert texts_of(journal.tail("user:alice")) == ["a1"]


def test_purging_one_owners_subject_leaves_its_namesake_alone(journal: Journal) -> None:
    journal.append([add("D1:1", "secret"), add("D1:2", "other")])
    journal.append([add("D1:1", "b", scope=BOB)])
    with pytest.raises(BadInput, match="Several owners have a memory 'D1:1'"):
        journal.purge(subjects=["D1:1"], actor="user", reason="")
    with pytest.raises(BadInput, match="no memory 'D1:2' of user:bob"):
        journal.purge(subjects=["D1:2"], owner="user:bob", actor="user", reason="")
    assert journal.last_seq() == 3
    [tombstone] = journal.purge(subjects=["D1:1"], owner="user:alice", actor="user", reason="")
    assert (tombstone.subject, tombstone.scope) == ("D1:1", ALICE)
    assert texts_of(journal.tail("user:alice")) == [None, "other", None]
    assert texts_of(journal.tail("user:bob")) == ["b"]
    assert [e.seq for e in journal.history("D1:1", owner="user:alice")] == [1, 4]
    assert [e.seq for e in journal.history("D1:1", owner="user:bob")] == [3]
    assert [e.seq for e in journal.history("D1:1")] == [1, 3, 4]
    latest = journal.latest("D1:1", owner="user:bob")
    assert latest is not None and latest.seq == 3
    assert journal.latest("D1:2", owner="user:bob") is None


def test_one_call_purges_subjects_of_many_owners_and_whole_owners(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    scrubbed: list[bool] = []
    scrub = journal._database.scrub
    monkeypatch.setattr(
        journal._database, "scrub", lambda *, wait: (scrubbed.append(wait), scrub(wait=wait))[1]
    )
    carol = Scope(agent_id="carol")
    for scope in (ALICE, BOB, carol):
        journal.append([add("t1", scope=scope), add("t2", scope=scope)])
    subjects = {"user:alice": ["t1"], "user:bob": ["t2", "t2"]}
    written = journal.purge(
        subjects=subjects, owners=["agent:carol", "user:nobody"], actor="user", reason="asked"
    )
    assert [(e.scope.owner, e.subject) for e in written] == [
        ("user:alice", "t1"),
        ("user:bob", "t2"),
        ("agent:carol", "agent:carol"),
    ]
    assert texts_of(journal.tail("user:bob")) == ["t1", None, None]
    assert scrubbed == [True]
    # What is gone already is scrubbed once more, and what never was is not even looked for.
    assert journal.purge(subjects=subjects, owners=["agent:carol"], actor="u", reason="") == []
    assert scrubbed == [True, True]
    assert journal.purge(owners=["user:nobody"], actor="user", reason="") == []
    assert journal.purge(actor="user", reason="") == []
    assert scrubbed == [True, True]
    assert journal.last_seq() == 9


def test_derived_texts_go_also_where_no_event_says_them(journal: Journal) -> None:
    # A fact that a manager put into other words, and an owner of whom nothing else was kept.
    journal.append([add("i1", "User is ill."), add("i2")], derived=[derive("User is ill.")])
    journal.store_derived([derive("I have quuxitis."), derive("i2")])
    journal.store_derived([derive("x", owner="user:bob")])
    journal.purge(subjects=["i1"], actor="user", reason="asked")
    assert journal.derived("user:alice").keys() == {content_hash("i2")}
    [tombstone] = journal.purge(owners=["user:bob"], actor="user", reason="asked")
    assert tombstone.subject == "user:bob"
    assert journal.derived("user:bob") == {}


def test_what_was_derived_before_a_purge_is_not_stored_after_it(journal: Journal) -> None:
    journal.append([add("i1"), add("i2"), add("b1", scope=BOB)])
    before = journal.last_purge("user:alice")
    journal.purge(subjects=["i1"], actor="user", reason="asked")
    texts = [derive("i1"), derive("i2"), derive("b1", owner="user:bob")]
    journal.store_derived(texts, purged_until=before)
    assert journal.derived("user:alice") == {}
    assert len(journal.derived("user:bob")) == 1  # nothing was purged of him
    journal.store_derived([derive("i2")], purged_until=journal.last_purge("user:alice"))
    assert len(journal.derived("user:alice")) == 1


def test_a_purged_subject_and_a_purged_owner_can_begin_anew(journal: Journal) -> None:
    journal.append([add("i1"), add("i2")])
    journal.purge(subjects=["i1"], actor="user", reason="")
    journal.append([add("i1", "again")])
    journal.purge(owners=["user:alice"], actor="user", reason="")
    journal.append([add("i1", "anew"), add("i2", "anew")])
    assert texts_of(journal.tail("user:alice"))[-2:] == ["anew", "anew"]
