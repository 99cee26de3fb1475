from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memograd.memory.index.schema import IndexRow, digest, fold
from memograd.memory.records.events import RECORDS, Event, EventKind
from memograd.memory.records.scope import Scope

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
OWNERS = ("ann", "bob")


def event(seq: int, kind: EventKind, user: str, subject: str, after: Any, **more: Any) -> Event:
    scope = Scope(user_id=user, agent_id=more.pop("agent", None))
    return Event(seq, f"u{seq}", NOON, kind, scope, subject, None, after, "test", "", **more)


def after(kind: EventKind, text: str) -> dict[str, Any] | None:
    if kind is EventKind.TURN:
        return {"turn": {"id": "x", "speaker": "Ann", "text": text, "session": 1}}
    return {"text": text} if kind in (EventKind.ADD, EventKind.UPDATE) else None


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    events = []
    for seq in range(1, draw(st.integers(1, 25)) + 1):
        kind, user = draw(st.sampled_from(EventKind)), draw(st.sampled_from(OWNERS))
        subjects = ["a", "b", *([f"user:{user}"] if kind is EventKind.PURGE else [])]
        events.append(
            event(seq, kind, user, draw(st.sampled_from(subjects)), after(kind, f"text {seq}"))
        )
    return events


def apply(rows: dict[str, IndexRow], events: list[Event]) -> dict[str, IndexRow]:
    effects = fold(events)
    kept = {key: row for key, row in rows.items() if digest(row.owner) not in effects.owners}
    for key in effects.removed:
        kept.pop(key, None)
    return kept | effects.rows


@given(histories(), st.integers(1, 10))
def test_batches_do_not_matter_and_may_repeat(events: list[Event], size: int) -> None:
    one_by_one: dict[str, IndexRow] = {}
    for single in events:
        one_by_one = apply(one_by_one, [single])
    batched: dict[str, IndexRow] = {}
    for start in range(0, len(events), size):
        batched = apply(apply(batched, events[start : start + size]), events[start : start + size])
    assert apply({}, events) == one_by_one == batched
    # Independent of `fold`: the newest event of each subject decides.
    expected = {}
    for last in events:
        owner, subject = last.scope.owner, last.subject
        if last.kind is EventKind.PURGE:
            for key in [k for k in expected if k[1] == owner and subject in (k[2], owner)]:
                del expected[key]
        elif last.kind in (EventKind.DELETE, EventKind.FORGET):
            layer = "item" if last.kind is EventKind.DELETE else "turn"
            expected.pop((layer, owner, subject), None)
        elif last.kind not in RECORDS:
            layer = "turn" if last.kind is EventKind.TURN else "item"
            expected[layer, owner, subject] = last.seq
    assert {(r.layer, r.owner, r.item_id): r.seq for r in batched.values()} == expected


def test_what_a_row_holds() -> None:
    turn = {"id": "t1", "speaker": "Ann", "text": "我搬到上海了。", "session": 1}
    events = [
        event(1, EventKind.TURN, "ann", "t1", {"turn": turn}),
        event(2, EventKind.TURN, "ann", "t2", {"turn": turn, "verbatim": True}),
        event(3, EventKind.ADD, "ann", "i1", {"text": "Ann likes tea."}, agent="planner"),
        event(4, EventKind.ADD, "ann", "i2", None, erased=True),
    ]
    rows = sorted(fold(events).rows.values(), key=lambda row: row.seq)
    assert [(row.layer, row.item_id, row.text, row.agent_id) for row in rows] == [
        ("turn", "t1", "Ann: 我搬到上海了。", None),
        ("item", "i1", "Ann likes tea.", "planner"),
    ]
    assert rows[0].digests() == {"owner_key": digest("user:ann"), "agent_key": "", "run_key": ""}


def test_purges_are_noticed() -> None:
    assert fold([event(7, EventKind.PURGE, "ann", "i1", None)]).purged_at == 7
    assert fold([event(8, EventKind.DELETE, "ann", "i1", None)]).purged_at == 0
