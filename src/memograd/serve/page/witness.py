"""A manager that is watched: what it decided, with the probability that the journal does not keep.

`watched` gives a memory that shares everything with another one but its manager, which notes every
decision before it is carried out. Invariant: the decisions themselves are the manager's own.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memograd.memory import Memory
from memograd.memory.manager.protocol import Change, MessageManager
from memograd.memory.manager.trained.following import settled
from memograd.memory.reader.fact import Fact
from memograd.memory.reader.heard import Heard
from memograd.memory.records.events import Event, EventKind
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import Decision

if TYPE_CHECKING:
    from memograd.memory.search import Hit, Query
    from memograd.memory.state import MemoryState


class NotedDecisions:
    """What was decided, latest last."""

    def __init__(self) -> None:
        self._sure: dict[tuple[str, str | None], float] = {}

    def note(self, decision: Decision) -> Decision:
        """Keep how sure a decision is."""
        op = decision.op
        named = op.item_id if op.kind.value in ("UPDATE", "DELETE") else op.text
        self._sure[op.kind.value, named] = decision.confidence
        return decision

    def probability(self, event: Event) -> float | None:
        """How sure the decision behind an event was; None of one that nobody was asked about."""
        kind = event.kind.value
        if event.kind in (EventKind.UPDATE, EventKind.DELETE):
            return self._sure.get((kind, event.subject))
        text = (event.after or {}).get("text")
        return self._sure.get((kind, text), self._sure.get((kind, None)))


def watched(memory: Memory) -> tuple[Memory, NotedDecisions]:
    """The same memory with a watched manager, and where its decisions are noted."""
    noted = NotedDecisions()
    manager: Any = settled(memory.manager)
    seen = copy.copy(memory)
    watch = _OfMessages if isinstance(manager, MessageManager) else _OfFacts
    seen.manager = watch(manager, noted)
    return seen, noted


class _OfFacts:
    def __init__(self, manager: Any, noted: NotedDecisions) -> None:
        self._manager, self._noted = manager, noted

    @property
    def actor(self) -> str:
        return str(self._manager.actor)

    def decide(
        self, state: MemoryState, fact: Fact, query: Query, related: Sequence[Hit[MemoryItem]]
    ) -> Decision:
        return self._noted.note(self._manager.decide(state, fact, query, related))


class _OfMessages(_OfFacts):
    def decide_heard(
        self, heard: Heard, items: Sequence[MemoryItem], recent: frozenset[str]
    ) -> list[Change]:
        changes: list[Change] = self._manager.decide_heard(heard, items, recent)
        for change in changes:
            self._noted.note(change.decision)
        return changes
