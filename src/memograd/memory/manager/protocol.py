"""What decides about a fact: the protocol that rules, chat models and trained policies fill.

A manager sees one fact and the remembered items related to it, and answers with one operation. It
changes nothing itself; whoever asked applies the decision and writes it down with the manager's
`actor`.

Invariant: UPDATE, DELETE and a NONE that names an item name one of the related items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from memograd.memory.reader.fact import Fact
from memograd.memory.reader.heard import Heard
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import Decision

if TYPE_CHECKING:
    from memograd.memory.search import Hit, Query
    from memograd.memory.state import MemoryState


@dataclass(frozen=True, slots=True)
class RelatedItem:
    """A remembered item that a search for the fact found.

    similarity: cosine of the two embeddings, -1 to 1. Its scale depends on the embedder: with some,
    unrelated texts have 0.8.
    """

    item: MemoryItem
    similarity: float


class MemoryManager(Protocol):
    """Decides what becomes of a fact."""

    @property
    def actor(self) -> str:
        """Who decides, as it shall stand in the journal: `rules`, `llm:<model>`, `policy:<v>`."""
        ...

    def decide(self, fact: Fact, related: Sequence[RelatedItem]) -> Decision:
        """One operation with its reason in one sentence.

        related: the living items nearest to the fact, best first; may be empty. Raises
        MemogradError when no decision could be had; never answers NONE instead.
        """
        ...


@runtime_checkable
class StateManager(Protocol):
    """A manager that looks at the memory itself: vectors, ranks, how much there is."""

    @property
    def actor(self) -> str:
        """As of `MemoryManager`."""
        ...

    def decide_in(
        self, state: MemoryState, fact: Fact, query: Query, hits: Sequence[Hit[MemoryItem]]
    ) -> Decision:
        """One operation on a state that it must not change; otherwise as `MemoryManager.decide`.

        query: the fact as it was searched for. hits: the related items, best first.
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
class MessageManager(Protocol):
    """A manager that decides on a whole message, with what came before it."""

    @property
    def actor(self) -> str:
        """As of `MemoryManager`."""
        ...

    def decide_heard(
        self, heard: Heard, items: Sequence[MemoryItem], recent: frozenset[str]
    ) -> list[Change]:
        """What a message changes.

        items: the living items it may speak of. recent: ids of those that the last message told of.
        """
        ...
