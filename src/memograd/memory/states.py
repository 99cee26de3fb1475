"""The memory of each owner, folded from the journal and kept in the process.

A state is folded when it is first needed and afterwards catches up by tailing the journal, so what
any process has written is seen by the next read. The least recently used states are let go when all
of them together hold too many records; they can always be folded again.

Invariant: a state that was read holds exactly what folding the owner's events from the beginning
gives (`tests/memory/test_states.py`). Readers get forks, which nobody changes under their hands.
May import `derived_texts`, `events`, `journal` and `state`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from memograd.memory.derived_texts import DerivedTexts
from memograd.memory.journal import Journal
from memograd.memory.state import MemoryState

if TYPE_CHECKING:
    from memograd.memory.events import Event

HELD_RECORDS: Final = 300_000  # about 0.8 GB at 384 dimensions
HELD_MOMENTS: Final = 8


class _Slot:
    """One owner's place: its lock, and its state once it was folded."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.state: MemoryState | None = None


class States:
    """The folded states of a journal's owners."""

    def __init__(self, journal: Journal, texts: DerivedTexts, dimension: int) -> None:
        self._journal, self._texts, self._dimension = journal, texts, dimension
        self._slots: OrderedDict[str, _Slot] = OrderedDict()
        self._moments: OrderedDict[tuple[str, int], MemoryState] = OrderedDict()
        self._lock = threading.Lock()

    def current(self, owner: str) -> MemoryState:
        """The owner's state, up to date; a fork of the caller's own."""
        with self._lock:
            slot = self._slots.setdefault(owner, _Slot())
            self._slots.move_to_end(owner)
        with slot.lock:
            first = slot.state is None
            state = slot.state or MemoryState(self._dimension)
            self._fold(owner, state, self._journal.tail(owner, after=state.seq))
            slot.state = state
        if first:
            self._let_go()
        return state.fork()

    def at(self, owner: str, moment: datetime) -> MemoryState:
        """A state of its own: what the memory had learnt by `moment`."""
        events = self._journal.tail(owner, until=moment)
        key = (owner, events[-1].seq if events else 0)
        with self._lock:
            held = self._moments.get(key)
        # A purge erases the past too, so a state from before it must not be used again.
        if held is None or any(event.erased for event in events):
            held = MemoryState(self._dimension)
            self._fold(owner, held, events)
            with self._lock:
                self._moments[key] = held
                while len(self._moments) > HELD_MOMENTS:
                    self._moments.popitem(last=False)
        return held.fork()

    def holds(self, owners: Sequence[str]) -> bool:
        """Whether the states of all these owners are folded already."""
        with self._lock:
            slots = [self._slots.get(owner) for owner in owners]
        return all(slot is not None and slot.state is not None for slot in slots)

    def forget(self, owner: str | None = None) -> None:
        """Let go of an owner's states, or of all."""
        with self._lock:
            for key in [key for key in self._moments if owner in (None, key[0])]:
                del self._moments[key]
            slots = [slot for name, slot in self._slots.items() if owner in (None, name)]
        for slot in slots:
            with slot.lock:
                slot.state = None

    def _fold(self, owner: str, state: MemoryState, events: Sequence[Event]) -> None:
        if events:
            state.fold(events, lambda texts: self._texts.look_up(owner, texts))

    def _let_go(self) -> None:
        """Drop the least recently used states that nobody is reading, while too much is held."""
        with self._lock:
            slots = list(self._slots.items())
            held = sum(_records(slot) for _, slot in slots)
            for owner, slot in slots[:-1]:
                if held <= HELD_RECORDS:
                    break
                if slot.lock.acquire(blocking=False):
                    held -= _records(slot)
                    slot.state = None
                    self._slots.pop(owner, None)
                    slot.lock.release()


def _records(slot: _Slot) -> int:
    state = slot.state
    return 0 if state is None else len(state.items) + len(state.turns)
