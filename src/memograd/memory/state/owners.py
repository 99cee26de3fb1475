"""The memory of each owner, folded from the journal and kept in the process.

A state is folded when it is first needed and afterwards catches up by tailing the journal, so what
any process has written is seen by the next read. The least recently used states are let go when all
of them together hold too many records; they can always be folded again.

Invariant: a state that was read holds exactly what folding the owner's events from the beginning
gives. Readers get forks, which nobody changes under their hands.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from memograd.memory.journal import Journal
from memograd.memory.state import MemoryState
from memograd.memory.state.derived_texts import DerivedTexts, WordsFirst
from memograd.memory.state.memory_state import Analysed

if TYPE_CHECKING:
    from memograd.memory.records.events import Event

HELD_RECORDS: Final = 300_000  # about 0.8 GB at 384 dimensions
HELD_MOMENTS: Final = 8


class _Slot:
    """One owner's place: its lock, its state once it was folded, and how much that holds."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.state: MemoryState | None = None
        self.records = 0


class States:
    """The folded states of a journal's owners."""

    def __init__(self, journal: Journal, texts: DerivedTexts, dimension: int) -> None:
        self._journal, self._texts, self._dimension = journal, texts, dimension
        self._slots: OrderedDict[str, _Slot] = OrderedDict()
        self._held = 0  # records in all slots
        self._moments: OrderedDict[tuple[str, int, int], MemoryState] = OrderedDict()
        self._lock = threading.Lock()

    def current(self, owner: str, *, turn_vectors: bool = True) -> MemoryState:
        """The owner's state, up to date; a fork of the caller's own.

        turn_vectors: False where nobody searches the turns by meaning: those that were just heard
        may have no vectors yet, and nobody waits for them.
        """
        with self._lock:
            slot = self._slots.get(owner) or _Slot()
            if owner in self._slots:
                self._slots.move_to_end(owner)
        with slot.lock:
            state = slot.state or MemoryState(self._dimension)
            events = self._journal.tail(owner, after=state.seq)
            if events:
                self._fold(owner, state, events, turn_vectors)
                slot.state = state
                self._keep(owner, slot)
            if turn_vectors:
                state.fill(lambda texts: self._texts.look_up(owner, texts, seen=state.seq))
            return state.fork()

    def at(self, owner: str, moment: datetime) -> MemoryState:
        """A state of its own: what the memory had learnt by `moment`."""
        # A purge erases the past too, so a state from before it must not be used again.
        key = (owner, self._journal.seq_at(owner, moment), self._journal.last_purge(owner))
        with self._lock:
            held = self._moments.get(key)
        if held is None:
            held = MemoryState(self._dimension)
            events = self._journal.tail(owner, until=moment)
            if events:
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
            for name in [name for name in self._slots if owner in (None, name)]:
                self._drop(name)

    def _fold(
        self, owner: str, state: MemoryState, events: Sequence[Event], turn_vectors: bool = True
    ) -> None:
        def whole(texts: Sequence[str]) -> Sequence[Analysed]:
            return self._texts.look_up(owner, texts, seen=events[-1].seq)

        def words_first(texts: Sequence[str]) -> Sequence[WordsFirst]:
            return self._texts.words_first(owner, texts)

        state.fold(events, whole, whole if turn_vectors else words_first)

    def _keep(self, owner: str, slot: _Slot) -> None:
        """Hold a slot as the most recently used, and let go of others while too much is held."""
        assert slot.state is not None
        with self._lock:
            if owner in self._slots:
                self._drop(owner)
            slot.records = len(slot.state.items) + len(slot.state.turns)
            self._held += slot.records
            self._slots[owner] = slot
            while self._held > HELD_RECORDS and len(self._slots) > 1:
                self._drop(next(iter(self._slots)))

    def _drop(self, owner: str) -> None:
        self._held -= self._slots.pop(owner).records
