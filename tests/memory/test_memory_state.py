from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.memory.records.events import CLOSING, Event, EventKind
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.state import MemoryState
from memograd.memory.state import corpus as corpus_module

D = 6
ALICE = Scope(user_id="alice")
START = datetime(2026, 1, 1, tzinfo=UTC)


def lookup(text: str) -> tuple[np.ndarray, Sequence[str]]:
    seed = int.from_bytes(hashlib.md5(text.encode()).digest()[:4], "big")
    vector = np.random.default_rng(seed).standard_normal(D)
    return (vector / np.linalg.norm(vector)).astype(np.float32), text.casefold().split()


def lookup_many(texts: Sequence[str]) -> list[tuple[np.ndarray, Sequence[str]]]:
    return [lookup(text) for text in texts]


def item(id: str, text: str) -> MemoryItem:
    return MemoryItem(id=id, text=text, scope=ALICE, created_at=START, updated_at=START)


def turn(id: str, text: str = "hello there") -> RawTurn:
    return RawTurn(id=id, speaker="Alice", text=text, time=START, session=1)


def event(
    seq: int, kind: EventKind, subject: str, after: object = None, *, erased: bool = False
) -> Event:
    return Event(
        seq=seq,
        uid=f"u{seq}",
        recorded_at=START + timedelta(seconds=seq),
        kind=kind,
        scope=ALICE,
        subject=subject,
        before=None,
        after=after,  # type: ignore[arg-type]
        actor="user",
        reason="",
        erased=erased,
    )


def add(seq: int, id: str, text: str) -> Event:
    return event(seq, EventKind.ADD, id, item(id, text).to_json())


def update(seq: int, id: str, text: str) -> Event:
    return event(seq, EventKind.UPDATE, id, item(id, text).to_json())


def heard(seq: int, id: str, verbatim: bool | None = None) -> Event:
    flag = {} if verbatim is None else {"verbatim": verbatim}
    return event(seq, EventKind.TURN, id, {"turn": turn(id).to_json(), **flag})


def everything(state: MemoryState) -> object:
    """All that a reader can see of a state, searches included."""
    vector, terms = lookup("alice likes tea")
    return (
        state.seq,
        list(state.items),
        list(state.turns),
        dict(state.turns_by_id),
        state.items.dense(vector, k=99),
        state.items.lexical(terms, k=99),
        state.turns.dense(vector, k=99),
        state.turns.lexical(["alice:"], k=99),
        {one.id: state.turns_behind(one) for one in state.items},
        state.said_again_in({turn for one in state.items for turn in state.turns_behind(one)}),
    )


def fold(events: Sequence[Event]) -> MemoryState:
    return MemoryState.from_events(events, lookup_many, dimension=D)


def test_each_kind_of_event() -> None:
    state = MemoryState(D)
    state.apply(heard(3, "t1"), lookup)
    state.apply(heard(4, "t2", verbatim=True), lookup)
    state.apply(add(5, "a", "likes tea"), lookup)
    state.apply(add(9, "b", "likes milk"), lookup)
    state.apply(update(10, "a", "likes coffee"), lookup)
    state.apply(event(11, EventKind.NONE, "n1", {"text": "said before", "item_id": "a"}), lookup)
    assert [(i.id, i.text) for i in state.items] == [("b", "likes milk"), ("a", "likes coffee")]
    assert [t.id for t in state.turns] == ["t1"]
    assert set(state.turns_by_id) == {"t1", "t2"} and len(state.turns_by_id) == 2
    assert state.turns_by_id["t2"] == turn("t2")
    assert state.turns_by_id.get("t3") is None
    assert [hit.record.id for hit in state.items.lexical(["coffee"], k=5)] == ["a"]
    assert state.items.lexical(["tea"], k=5) == []
    assert [hit.record.id for hit in state.turns.lexical(["2026]"], k=5)] == ["t1"]
    state.apply(event(12, EventKind.DELETE, "b"), lookup)
    assert "b" not in state.items and state.seq == 12


def test_what_was_said_again_is_behind_its_item() -> None:
    def again(seq: int, id: object, *turns: object) -> Event:
        return event(
            seq, EventKind.NONE, f"n{seq}", {"text": "x", "item_id": id, "sources": list(turns)}
        )

    state = fold([again(1, "a", "t0"), add(2, "a", "tea"), again(3, "a", "t1"), again(4, "b", "t")])
    assert state.turns_behind(item("a", "tea")) == ["t1"]  # what no living item said is no link
    past = state.fork()
    state.apply(again(5, "a", "t2", "t1"), lookup)
    state.apply(again(6, None, "t3"), lookup)
    state.apply(again(7, "a", 3), lookup)
    assert state.turns_behind(item("a", "tea")) == ["t1", "t2"]
    assert state.said_again_in({"t2", "t3"}) == {"a": ["t2"]}
    state.apply(update(8, "a", "coffee"), lookup)
    assert state.turns_behind(item("a", "coffee")) == ["t1", "t2"]
    assert state.said_again_in({"t2"}) == {}  # it said what the item says no longer
    assert past.turns_behind(item("a", "tea")) == ["t1"]
    assert MemoryState.union([past], dimension=D).turns_behind(item("a", "tea")) == ["t1"]
    state.apply(event(9, EventKind.PURGE, "t2"), lookup)
    assert state.turns_behind(item("a", "coffee")) == ["t1"]


def test_purges_and_what_they_erased() -> None:
    events = [heard(1, "t1"), heard(2, "t2", verbatim=True), add(3, "a", "x"), add(4, "b", "y")]
    state = fold(events)
    for seq, subject in enumerate(("t1", "t2", "a"), start=5):
        state.apply(event(seq, EventKind.PURGE, subject, erased=True), lookup)
    assert dict(state.turns_by_id) == {} and [i.id for i in state.items] == ["b"]
    # The journal now holds those events without their contents.
    erased = [replace(e, after=None, erased=e.subject != "b") for e in events[:3]]
    purges = [event(n, EventKind.PURGE, s) for n, s in enumerate(("t1", "t2", "a"), start=5)]
    assert everything(fold([*erased, events[3], *purges])) == everything(state)
    state.apply(event(8, EventKind.PURGE, "user:alice"), lookup)
    assert len(state.items) == len(state.turns) == 0
    state.apply(add(9, "b", "again"), lookup)
    assert [i.text for i in state.items] == ["again"]


def test_opening_asks_only_for_the_texts_that_are_left_and_all_at_once() -> None:
    asked: list[list[str]] = []

    def counted(texts: Sequence[str]) -> list[tuple[np.ndarray, Sequence[str]]]:
        asked.append(list(texts))
        return lookup_many(texts)

    events = [
        add(1, "a", "one"),
        update(2, "a", "two"),
        add(3, "b", "gone"),
        event(4, EventKind.DELETE, "b"),
        update(5, "a", "three"),
        add(6, "c", "four"),
        heard(7, "t1", verbatim=True),
    ]
    MemoryState.from_events(events, counted, dimension=D)
    assert asked == [["three", "four"]]


def test_a_lookup_that_fails_leaves_the_state_as_it_was() -> None:
    state = fold([add(1, "a", "one"), heard(2, "t1")])
    before = everything(state)

    def broken(texts: Sequence[str]) -> list[tuple[np.ndarray, Sequence[str]]]:
        if "Alice" in texts[0]:
            raise OSError("no embedder")
        return lookup_many(texts)

    with pytest.raises(OSError, match="no embedder"):
        state.fold([add(3, "b", "two"), heard(4, "t2")], broken)
    assert everything(state) == before


@pytest.mark.parametrize(
    "bad",
    [
        add(5, "a", "twice"),
        heard(5, "t1"),
        heard(5, "t2"),
        update(5, "nobody", "x"),
        event(5, EventKind.DELETE, "nobody"),
        event(5, EventKind.ADD, "z"),
        event(5, EventKind.ADD, "z", {"id": "z", "text": "no times"}),
        event(5, EventKind.ADD, "z", item("other", "x").to_json()),
        event(5, EventKind.ADD, "z", item("z", "x").to_json() | {"text": 7}),
        event(5, EventKind.UPDATE, "a", {"id": "a"}),
        event(5, EventKind.TURN, "t3", {"turn": {"id": "t3"}}),
        event(5, EventKind.TURN, "t3", {"turn": "t3"}),
        event(5, EventKind.TURN, "t3", {"turn": turn("t3").to_json() | {"text": None}}),
    ],
)
def test_an_event_that_does_not_fit_is_passed_over_with_one_warning(
    bad: Event, caplog: pytest.LogCaptureFixture
) -> None:
    before = [add(1, "a", "one"), heard(2, "t1"), heard(3, "t2", verbatim=True)]
    after = [add(6, "b", "two")]
    state = fold([*before, bad, *after])
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert f"Event 5 of the journal ({bad.kind} of {bad.subject!r}" in record.getMessage()
    assert everything(state) == everything(fold([*before, *after]))
    single = fold(before)
    single.apply(bad, lookup)
    single.apply(after[0], lookup)
    assert everything(single) == everything(state)


def test_an_event_is_not_folded_twice() -> None:
    state = fold([add(4, "a", "one")])
    with pytest.raises(ValueError, match="after event 4"):
        state.apply(event(4, EventKind.NONE, "n"), lookup)


def test_a_state_that_has_no_journal_can_be_written_too() -> None:
    state = MemoryState(D)
    state.add_item(item("a", "tea"), *lookup("tea"))
    state.add_turn(turn("t1"), *lookup("hello"))
    fork = state.fork()
    fork.replace_item(item("a", "coffee"), *lookup("coffee"))
    fork.add_turn(turn("t2"), *lookup("bye"))
    child = fork.fork()
    assert child.remove_item("a").text == "coffee"
    assert [i.text for i in state.items] == ["tea"] and list(state.turns_by_id) == ["t1"]
    assert [i.text for i in fork.items] == ["coffee"] and list(fork.turns_by_id) == ["t1", "t2"]
    assert len(child.items) == 0
    with pytest.raises(KeyError):
        state.replace_item(item("b", "x"), *lookup("x"))
    verbatim = fold([heard(1, "t1", verbatim=True)])
    with pytest.raises(ValueError, match="'t1' already"):
        verbatim.add_turn(turn("t1"), *lookup("x"))


@st.composite
def journals(draw: st.DrawFn) -> list[Event]:
    """Events that fit each other, with purges, erased contents and gaps between their numbers."""
    events: list[Event] = []
    items: list[str] = []
    turns: list[str] = []
    seq = 0
    for number in range(draw(st.integers(0, 60))):
        seq += draw(st.integers(1, 3))
        choice = draw(st.sampled_from(["add", "add", "add", "turn", "turn", "update", "delete",
                                       "none", "purge", "erased", "everything"]))  # fmt: skip
        words = draw(st.sampled_from(["alice likes tea", "bob has a cat", "tea", "alice ran"]))
        if choice == "add":
            items.append(f"i{number}")
            events.append(add(seq, items[-1], words))
        elif choice == "turn":
            turns.append(f"t{number}")
            events.append(heard(seq, turns[-1], draw(st.sampled_from([None, False, True]))))
        elif choice == "update" and items:
            events.append(update(seq, draw(st.sampled_from(items)), words))
        elif choice == "delete" and items:
            id = draw(st.sampled_from(items))
            items.remove(id)
            events.append(event(seq, EventKind.DELETE, id))
        elif choice == "purge" and items + turns:
            id = draw(st.sampled_from(items + turns))
            (items if id in items else turns).remove(id)
            events.append(event(seq, EventKind.PURGE, id))
        elif choice == "erased":
            kind = draw(st.sampled_from([EventKind.ADD, EventKind.UPDATE, EventKind.DELETE,
                                         EventKind.TURN]))  # fmt: skip
            events.append(event(seq, kind, f"x{number}", erased=True))
        elif choice == "everything" and draw(st.integers(0, 3)) == 0:
            items, turns = [], []
            events.append(event(seq, EventKind.PURGE, ALICE.owner))
        else:
            known = {"text": words}
            if items and turns and draw(st.booleans()):
                known |= {
                    "item_id": draw(st.sampled_from(items)),
                    "sources": [draw(st.sampled_from(turns))],
                }
            events.append(event(seq, EventKind.NONE, f"n{number}", known))
    return events


@settings(deadline=None, max_examples=60)
@given(journals(), st.data())
def test_a_journal_folds_the_same_whole_in_halves_and_one_by_one(
    events: list[Event], data: st.DataObject
) -> None:
    whole = fold(events)
    cut = data.draw(st.integers(0, len(events)))
    halves = fold(events[:cut])
    first = everything(halves)
    later = halves.fork()
    later.fold(events[cut:], lookup_many)
    single = MemoryState(D)
    for one in events:
        single.apply(one, lookup)
    assert everything(later) == everything(whole) == everything(single)
    assert everything(halves) == first  # a fork's parent does not move


@st.composite
def rough_journals(draw: st.DrawFn) -> list[Event]:
    """Events of a few ids, which often do not fit, come back, end by themselves, or are gone."""
    events: list[Event] = []
    for seq in range(1, draw(st.integers(0, 50)) + 1):
        id = draw(st.sampled_from("abcdef"))
        text = draw(st.sampled_from(["alice likes tea", "bob has a cat", "tea", "alice ran"]))
        ends = draw(st.sampled_from([None, START + timedelta(days=1)]))
        kind = draw(st.sampled_from([*EventKind, EventKind.ADD, EventKind.TURN]))
        after: object = None
        if kind in (EventKind.ADD, EventKind.UPDATE):
            after = replace(item(id, text), expires_at=ends, sources=(f"t{id}",)).to_json()
        elif kind is EventKind.TURN:
            told = replace(turn(f"t{id}", text), expires_at=ends)
            after = {"turn": told.to_json(), "verbatim": draw(st.booleans())}
        elif kind is EventKind.NONE:
            again = draw(st.sampled_from("abcdef"))
            after = {"text": text, "item_id": id, "sources": [f"t{again}", f"t{id}"]}
        if kind is EventKind.PURGE and draw(st.integers(0, 5)) == 0:
            id = ALICE.owner
        elif kind in (EventKind.TURN, EventKind.FORGET) or draw(st.integers(0, 9)) == 0:
            id = f"t{id}"
        events.append(event(seq, kind, id, after, erased=draw(st.integers(0, 9)) == 0))
    return events


def left_by_purges(events: list[Event]) -> list[Event]:
    """The events as the journal has them: a purge erases what said its subject again."""
    purged = {one.subject: one.seq for one in events if one.kind is EventKind.PURGE}

    def is_gone(one: Event) -> bool:
        if one.kind is not EventKind.NONE or one.after is None:
            return False
        named = (one.after["item_id"], *one.after["sources"])
        return any(purged.get(subject, 0) > one.seq for subject in named)

    return [replace(one, after=None, erased=True) if is_gone(one) else one for one in events]


@settings(deadline=None, max_examples=200)
@given(rough_journals(), st.integers(1, 10_000), st.integers(1, 4), st.data())
def test_going_back_gives_what_folding_up_to_there_gives(
    events: list[Event], seed: int, rows: int, data: st.DataObject
) -> None:
    rarely = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_module, "TAIL_ROWS", rows)  # parts of few rows, as large ones have
        patch.setattr(corpus_module, "JOINED_ROWS", 3 * rows)
        state = MemoryState(D)
        pieces: list[list[Event]] = [[]]  # so that there are many parts
        for one in events:
            if rarely.random() < 0.4:
                pieces.append([])
            pieces[-1].append(one)
        for piece in pieces:
            state.fold(piece, lookup_many)
    place = data.draw(st.integers(0, len(events)))
    behind = [one for one in events if one.seq > place]
    changed = {one.subject for one in behind if one.kind in CLOSING}
    if ALICE.owner in changed:
        return  # everything was purged, so nothing can be taken back
    left = left_by_purges(events)  # the state was folded before some of them
    told = [one for one in left[:place] if one.subject in {*changed, ALICE.owner}]
    now = everything(state)
    state.items.count_by("kind")  # from now on its parts know, and hand it on
    past = state.went_back(place, changed, told, lookup_many)
    folded = fold(left[:place]) if place else MemoryState(D)
    folded.seq = place
    assert past.items.count_by("kind") == Counter(item.kind.value for item in folded.items)
    assert everything(past) == everything(folded)
    assert list(past.turns_by_id) == list(folded.turns_by_id)
    assert past.last_turns(3) == folded.last_turns(3)
    ids = [one.id for one in folded.items]
    words = ["alice", "cat", "tea"]
    assert past.items.matched_terms(ids, words) == folded.items.matched_terms(ids, words)
    assert past.items.numbers(ids) == list(range(len(ids)))
    for moment in (START, START + timedelta(days=2)):
        assert past.expired_items(moment) == folded.expired_items(moment)
        assert past.expired_turns(moment) == folded.expired_turns(moment)
    assert everything(state) == now
    # What went back goes on as any other state does, and back again.
    again = past.went_back(0, {one.subject for one in events}, [], lookup_many)
    assert not list(again.items) and not dict(again.turns_by_id)
    past.fold(behind, lookup_many)
    assert everything(past) == now
