from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memograd.memory.journal import Journal
from memograd.memory.records.events import Event, EventKind, NewEvent
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.state import MemoryState
from memograd.memory.state import store as states_module
from memograd.memory.state.derived_texts import DerivedTexts
from memograd.memory.state.store import States
from memograd.memory.write.changes import added, deleted, heard, updated

NOW = datetime(2024, 5, 7, tzinfo=UTC)


class Place:
    """A journal with a clock that goes a second a time, and the states over it."""

    def __init__(self, folder: Path, embedder: Any) -> None:
        self.seconds = 0
        self.ids = 0
        self.journal = Journal.open(f"sqlite:///{folder / 'j.db'}", clock=self._tick)
        self.texts = DerivedTexts(self.journal, embedder)
        self.dimension = embedder.dimension
        self.states = States(self.journal, self.texts, embedder.dimension)

    def _tick(self) -> datetime:
        self.seconds += 1
        return NOW + timedelta(seconds=self.seconds)

    def folded(self, owner: str, until: datetime | None = None) -> MemoryState:
        """What folding the journal from the beginning gives."""
        state = MemoryState(self.dimension)
        state.fold(
            self.journal.tail(owner, until=until), lambda texts: self.texts.derive(owner, texts)
        )
        return state


@pytest.fixture
def place(tmp_path: Path, trigrams: Callable[[], Any]) -> Iterator[Place]:
    place = Place(tmp_path, trigrams())
    yield place
    place.journal.close()


def item(user: str, id: str, text: str) -> MemoryItem:
    return MemoryItem(id, text, Scope(user), NOW, NOW)


def same(first: MemoryState, second: MemoryState) -> bool:
    return (
        list(first.items) == list(second.items)
        and list(first.turns) == list(second.turns)
        and list(first.turns_by_id) == list(second.turns_by_id)
        and first.seq == second.seq
        and first.items.lexical(["was!"], k=9) == second.items.lexical(["was!"], k=9)
    )


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4), st.booleans()), max_size=25))
def test_states_are_what_folding_from_the_beginning_gives(
    place: Place, steps: list[tuple[str, int, bool]]
) -> None:
    for user, number, read in steps:
        owner = f"user:{user}"
        state = place.folded(owner)
        held = next((one for one in state.items if one.id.startswith(f"{number} ")), None)
        event: NewEvent
        if held is None:
            place.ids += 1
            event = added(item(user, f"{number} {place.ids}", "as it was"), actor="user", reason="")
        elif number % 2:
            event = deleted(held, at=NOW, actor="user", reason="")
        else:
            event = updated(held, item(user, held.id, held.text + "!"), actor="user", reason="")
        place.journal.append([event])
        if read:
            assert same(place.states.current(owner), place.folded(owner))
    for user in "abc":
        assert same(place.states.current(f"user:{user}"), place.folded(f"user:{user}"))


def test_what_a_reader_holds_stays_as_it_was(place: Place) -> None:
    place.journal.append([added(item("a", "1", "first"), actor="user", reason="")])
    held = place.states.current("user:a")
    place.journal.append([added(item("a", "2", "second"), actor="user", reason="")])
    assert len(place.states.current("user:a").items) == 2
    assert len(held.items) == 1
    held.remove_item("1")
    assert len(place.states.current("user:a").items) == 2


def test_the_past_is_what_had_been_written(place: Place) -> None:
    moments = []
    for number in range(4):
        [event] = place.journal.append(
            [added(item("a", str(number), f"text {number}"), actor="user", reason="")]
        )
        moments.append(event.recorded_at)
    for count, moment in enumerate(moments, start=1):
        assert same(place.states.at("user:a", moment), place.folded("user:a", moment))
        assert len(place.states.at("user:a", moment).items) == count
    assert not len(place.states.at("user:a", moments[0] - timedelta(days=1)).items)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.tuples(st.sampled_from("aab"), st.integers(0, 9), st.booleans()), max_size=30),
    st.lists(st.integers(0, 40), max_size=12),
    st.sampled_from([0, 2]),
    st.booleans(),
)
def test_every_moment_is_what_folding_up_to_it_gives(
    place: Place,
    steps: list[tuple[str, int, bool]],
    looks: list[int],
    cost: int,
    cold: bool,
) -> None:
    """Whichever way was taken: back from a state, on from a held moment, or from the beginning."""
    start = place.seconds
    for user, number, turns in steps:
        living = list(place.folded(f"user:{user}").items)
        place.ids += 1
        event: NewEvent
        if turns:
            turn = RawTurn(f"t{place.ids}", "a", f"said {number}", NOW, 1)
            after = {"turn": turn.to_json(), "verbatim": number % 3 == 0}
            event = replace(heard(turn, Scope(user)), after=after)
        elif not living or number < 4:
            event = added(item(user, f"{place.ids}", f"as was {number}"), actor="user", reason="")
        else:
            chosen = living[number % len(living)]
            if number == 9:
                place.journal.purge(subjects=[chosen.id], actor="user", reason="")
                continue
            if number == 8:
                event = deleted(chosen, at=NOW, actor="user", reason="")
            else:
                new = item(user, chosen.id, chosen.text + "!")
                event = updated(chosen, new, actor="user", reason="")
        place.journal.append([event])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(states_module, "EVENTS_A_SUBJECT", cost)
        if cold:
            place.states.forget()
        else:
            place.states.current("user:a")
        for look in looks:
            moment = NOW + timedelta(seconds=start + look)
            for owner in ("user:a", "user:b"):
                assert same(place.states.at(owner, moment), place.folded(owner, moment))


def test_the_past_of_a_state_that_is_held_reads_only_what_changed_since(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And shares the memory of the present."""
    monkeypatch.setattr(states_module, "ROWS_AN_EVENT", 1000)
    items = [item("a", str(n), f"text {n}") for n in range(200)]
    events = place.journal.append([added(one, actor="user", reason="") for one in items])
    [last] = place.journal.append(
        [updated(items[7], item("a", "7", "new"), actor="user", reason="")]
    )
    place.states.current("user:a")
    read: list[Event] = []

    def counted(method: Callable[..., list[Event]]) -> Callable[..., list[Event]]:
        def call(*given: Any, **named: Any) -> list[Event]:
            found = method(*given, **named)
            read.extend(found)
            return found

        return call

    for name in ("tail", "histories"):
        monkeypatch.setattr(place.journal, name, counted(getattr(place.journal, name)))
    past = place.states.at("user:a", events[-1].recorded_at)
    assert [one.text for one in past.items] == [f"text {n}" for n in range(200)]
    assert len(read) == 1
    monkeypatch.undo()
    assert same(past, place.folded("user:a", events[-1].recorded_at))
    assert last.seq == place.states.current("user:a").seq


def test_before_everything_was_purged_there_is_what_the_journal_still_has(place: Place) -> None:
    """Earlier versions took an imported purge for a record alone, and erased nothing by it."""
    _, second = place.journal.append(
        [added(item("a", str(n), f"text {n}"), actor="user", reason="") for n in range(2)]
    )
    place.journal.append([NewEvent(EventKind.PURGE, Scope("a"), "user:a")])
    place.journal.append([added(item("a", "2", "text 2"), actor="user", reason="")])
    assert [one.text for one in place.states.current("user:a").items] == ["text 2"]
    past = place.states.at("user:a", second.recorded_at)
    assert [one.text for one in past.items] == ["text 0", "text 1"]


def test_the_past_forgets_what_was_purged(place: Place) -> None:
    [event] = place.journal.append([added(item("a", "1", "secret"), actor="user", reason="")])
    assert len(place.states.at("user:a", event.recorded_at).items) == 1
    place.journal.purge(subjects=["1"], actor="user", reason="")
    assert not len(place.states.at("user:a", event.recorded_at).items)


def test_states_are_let_go_when_too_much_is_held(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states_module, "HELD_RECORDS", 10)
    for user in range(6):
        turns = [RawTurn(f"{n}", "a", f"said {n}", NOW, 1) for n in range(4)]
        place.journal.append([heard(turn, Scope(str(user))) for turn in turns])
        assert len(place.states.current(f"user:{user}").turns) == 4
    assert not place.states.holds(["user:0"])
    assert place.states.holds(["user:5"])
    assert len(place.states.current("user:0").turns) == 4
