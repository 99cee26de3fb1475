from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.memory.journal import Conflict, Journal, sqlite_url
from memograd.memory.journal.rows import EPOCH
from memograd.memory.records.events import Event, EventKind, NewEvent
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.state import MemoryState
from memograd.memory.write.changes import added, deleted, heard, updated

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")


def item(id: str, scope: Scope = ALICE) -> MemoryItem:
    return MemoryItem(id=id, text=id, scope=scope, created_at=EPOCH, updated_at=EPOCH)


def event(kind: EventKind, subject: str, scope: Scope = ALICE) -> NewEvent:
    one = item(subject, scope)
    match kind:
        case EventKind.ADD:
            return added(one, actor="user", reason="")
        case EventKind.UPDATE:
            return updated(one, one, actor="user", reason="")
        case EventKind.DELETE:
            return deleted(one, at=EPOCH, actor="user", reason="")
        case EventKind.TURN:
            return heard(RawTurn(subject, "Ann", "hello", None, 1), scope)
        case _:
            return NewEvent(kind, scope, subject)


def fold(journal: Journal, owner: str) -> MemoryState:
    look_up = lambda texts: [(np.zeros(2, np.float32), ())] * len(texts)  # noqa: E731
    return MemoryState.from_events(journal.tail(owner), look_up, dimension=2)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ADD", "ADD"),
        ("ADD", "TURN"),
        ("TURN", "TURN"),
        ("TURN", "UPDATE"),
        ("TURN", "DELETE"),
        ("NONE", "UPDATE"),
        ("NONE", "DELETE"),
        ("ADD DELETE", "DELETE"),
        ("ADD DELETE", "UPDATE"),
        ("ADD DELETE", "TURN"),
        ("ADD DELETE ADD", "ADD"),
        ("ADD UPDATE", "ADD"),
        ("ADD PURGE", "DELETE"),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_what_does_not_fit_is_a_conflict_and_writes_nothing(
    journal: Journal, first: str, second: str, together: bool
) -> None:
    before = [event(EventKind(kind), "x") for kind in first.split()]
    bad = [event(EventKind.ADD, "other"), event(EventKind(second), "x")]
    if not together:
        journal.append(before)
        before = []
    last = journal.last_seq()
    with pytest.raises(Conflict, match="'x' of user:alice"):
        journal.append([*before, *bad])
    assert journal.last_seq() == last
    journal.append([event(EventKind.ADD, "x", BOB), event(EventKind.ADD, "other")])


def test_two_who_delete_one_memory_leave_it_readable(journal: Journal) -> None:
    journal.append([event(EventKind.ADD, "x")])
    outcomes: list[str] = []

    def work() -> None:
        try:
            journal.append([event(EventKind.DELETE, "x")])
            outcomes.append("deleted")
        except Conflict:
            outcomes.append("conflict")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["conflict"] * 3 + ["deleted"]
    assert len(fold(journal, "user:alice").items) == 0


KINDS = st.sampled_from(["ADD", "ADD", "TURN", "UPDATE", "DELETE", "NONE", "purge", "purge all"])
STEPS = st.lists(
    st.lists(st.tuples(KINDS, st.sampled_from("abc"), st.sampled_from([ALICE, BOB])), max_size=3),
    max_size=12,
)


def test_whatever_was_let_in_is_folded_and_imported_without_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    numbers = iter(range(10_000))

    @settings(max_examples=40, deadline=None)
    @given(STEPS)
    def lets_in_what_folds(steps: list[list[tuple[str, str, Scope]]]) -> None:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        with (
            Journal.open(sqlite_url(folder / "j.db")) as journal,
            Journal.open(sqlite_url(folder / "copy.db")) as copy,
        ):
            for step in steps:
                events = []
                for kind, name, scope in step:
                    # Items are found by their id alone, so they have one owner; turns need not.
                    subject = name if kind == "TURN" else f"{name} of {scope.owner}"
                    if kind == "purge all":
                        journal.purge(owners=[scope.owner], actor="user", reason="")
                    elif kind == "purge":
                        if journal.latest(subject, owner=scope.owner):
                            journal.purge(
                                subjects=[subject], owner=scope.owner, actor="user", reason=""
                            )
                    else:
                        events.append(event(EventKind(kind), subject, scope))
                try:
                    journal.append(events)
                except Conflict:
                    continue
                for one in events:
                    if one.kind is EventKind.ADD:
                        newest = journal.latest(one.subject, owner=one.scope.owner)
                        assert newest is not None
            copy.import_events(list(journal.export_events()))
            for owner in ("user:alice", "user:bob"):
                here, there = fold(journal, owner), fold(copy, owner)
                assert list(here.items) == list(there.items)
                assert dict(here.turns_by_id) == dict(there.turns_by_id)

    lets_in_what_folds()
    assert caplog.records == []


def copies(journal: Journal) -> list[Event]:
    return [Event.from_json(event.to_json(), seq=0) for event in journal.export_events()]


def test_copies_that_went_different_ways_are_not_mixed(journal: Journal, tmp_path: Path) -> None:
    journal.append([event(EventKind.ADD, "x"), event(EventKind.ADD, "y")])
    with Journal.open(sqlite_url(tmp_path / "copy.db")) as other:
        other.import_events(copies(journal))
        for one in (journal, other):
            one.append([event(EventKind.DELETE, "x")])
        other.append([event(EventKind.ADD, "z")])
        with pytest.raises(BadInput, match="'x' of user:alice is not a living memory, so DELETE"):
            journal.import_events(copies(other))
        assert journal.last_seq() == 3
        # What fits is taken in, in the order of the file on top of what is here.
        other.append([event(EventKind.UPDATE, "y"), event(EventKind.DELETE, "y")])
        assert journal.import_events(copies(other)[3:]).new == 3
        assert [one.id for one in fold(journal, "user:alice").items] == ["z"]


def test_an_import_is_checked_in_its_own_order(journal: Journal, tmp_path: Path) -> None:
    with Journal.open(sqlite_url(tmp_path / "copy.db")) as other:
        other.append([event(EventKind.ADD, "x"), event(EventKind.UPDATE, "x")])
        add, update = copies(other)
    with pytest.raises(BadInput, match="UPDATE does not fit"):
        journal.import_events([update, add])
    assert journal.last_seq() == 0
    assert journal.import_events([add, update]).new == 2


def test_raw_turns_of_two_owners_may_share_their_ids_and_items_may_not(
    journal: Journal, tmp_path: Path
) -> None:
    both = [event(EventKind.TURN, "D1:1"), event(EventKind.TURN, "D1:1", BOB)]
    with Journal.open(sqlite_url(tmp_path / "copy.db")) as other:
        other.append(both)
        assert journal.import_events(copies(other)).new == 2
        other.append([event(EventKind.ADD, "item", BOB)])
        journal.append([event(EventKind.ADD, "item")])
        with pytest.raises(BadInput, match="'item' of user:bob belongs to user:alice"):
            journal.import_events(copies(other))


def test_an_expectation_is_about_the_owner_of_the_events(journal: Journal) -> None:
    [mine] = journal.append([event(EventKind.ADD, "x")])
    journal.append([event(EventKind.TURN, "x", BOB)])
    journal.append([event(EventKind.UPDATE, "x")], expect={"x": mine.seq})
    with pytest.raises(Conflict):
        journal.append([event(EventKind.UPDATE, "x")], expect={"x": mine.seq})
