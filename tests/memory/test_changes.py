from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from memograd.memory.records.events import Event, EventKind, NewEvent
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.state import MemoryState
from memograd.memory.write.changes import added, declined, deleted, heard, updated

LEARNT = datetime(2024, 5, 7, tzinfo=UTC)
LATER = datetime(2024, 6, 1, tzinfo=UTC)
ALICE = Scope("alice")
ITEM = MemoryItem("1", "Alice lives in Boston", ALICE, LEARNT, LEARNT, valid_from=LEARNT)
MOVED = replace(ITEM, text="Alice lives in Denver", updated_at=LATER, valid_from=LATER)
TURN = RawTurn("t1", "Alice", "I moved.", LATER, 1)


def folded(*events: NewEvent) -> MemoryState:
    state = MemoryState(2)
    for seq, event in enumerate(events, start=1):
        known = Event(
            seq, str(seq), LATER, event.kind, event.scope, event.subject, event.before,
            event.after, event.actor, event.reason,
        )  # fmt: skip
        state.apply(known, lambda text: (np.array([1, 0], np.float32), (text,)))
    return state


def test_an_addition_folds_to_the_item() -> None:
    assert list(folded(added(ITEM, actor="rules", reason="")).items) == [ITEM]


def test_an_update_folds_to_the_new_version_and_closes_the_old() -> None:
    event = updated(ITEM, MOVED, actor="rules", reason="moved")
    assert list(folded(added(ITEM, actor="rules", reason=""), event).items) == [MOVED]
    assert event.before is not None
    assert MemoryItem.from_json(event.before) == replace(ITEM, valid_to=LATER)


def test_a_deletion_folds_to_nothing_and_closes_the_item() -> None:
    event = deleted(ITEM, at=LATER, actor="user", reason="")
    assert not len(folded(added(ITEM, actor="rules", reason=""), event).items)
    assert event.before is not None and event.before["valid_to"] == LATER.isoformat()


def test_a_turn_is_searched_unless_an_older_version_said_not_to() -> None:
    event = heard(TURN, ALICE)
    assert list(folded(event).turns) == [TURN]
    verbatim = folded(replace(event, after={"turn": TURN.to_json(), "verbatim": True}))
    assert (len(verbatim.turns), dict(verbatim.turns_by_id)) == (0, {"t1": TURN})


def test_what_was_declined_changes_nothing_but_is_told() -> None:
    event = declined("x", ALICE, sources=["t1"], item_id="1", actor="rules", reason="known")
    assert event.kind is EventKind.NONE
    assert event.after == {"text": "x", "sources": ["t1"], "item_id": "1"}
    assert list(folded(added(ITEM, actor="", reason=""), event).items) == [ITEM]
