"""What decides about a fact: the protocol that rules, chat models and trained policies fill.

A manager sees one fact and the remembered items related to it, and answers with one operation. It
changes nothing itself; whoever asked applies the decision and writes it down with the manager's
`actor`.

Invariant: UPDATE, DELETE and a NONE that names an item name one of the related items.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from memograd.memory.reader.fact import Fact, Heard
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import Decision

if TYPE_CHECKING:
    from memograd.memory.search import Hit, Query
    from memograd.memory.state import MemoryState


class MemoryManager(Protocol):
    """Decides what becomes of a fact."""

    @property
    def actor(self) -> str:
        """Who decides, as it shall stand in the journal: `rules`, `llm:<model>`, `policy:<v>`."""
        ...

    def decide(
        self, state: MemoryState, fact: Fact, query: Query, related: Sequence[Hit[MemoryItem]]
    ) -> Decision:
        """One operation with its reason in one sentence.

        state: what is remembered, with vectors, ranks and how much there is; it must not be
        changed. query: the fact as it was searched for. related: the living items nearest to it,
        best first; may be empty. Raises MemogradError when no decision could be had; never answers
        NONE instead.
        """
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """One decision with the fact that it is about.

    hide: the turns behind the item should be shown no more. may_change: an item that the new one
    may have changed.
    """

    decision: Decision
    fact: Fact
    hide: bool = False
    may_change: str | None = None


@runtime_checkable
class MessageManager(MemoryManager, Protocol):
    """A manager that can also decide on a whole message, with what came before it."""

    def decide_heard(
        self, heard: Heard, items: Sequence[MemoryItem], recent: frozenset[str]
    ) -> list[Change]:
        """What a message changes.

        items: the living items it may speak of. recent: ids of those that the last message told of.
        """
        ...


@runtime_checkable
class ForeseeingManager(MessageManager, Protocol):
    """A message manager that sees of some messages that they only add, before anybody has looked
    which items are near; looking takes the vectors of the message and of its facts."""

    def only_adds(self, heard: Heard, items: Iterable[MemoryItem]) -> bool:
        """Whether `decide_heard` adds every fact and does nothing else, whichever of these items it
        is given, and in which order."""
        ...
