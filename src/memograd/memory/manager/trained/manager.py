"""The manager that was trained: a small network over embeddings decides, in about a millisecond.

It needs neither torch nor a language model. Decisions that it is unsure of can be left to another
manager. `FollowingManager` looks at each call which version of a folder is current, so what
`memograd learn` adopts, or `memograd policy rollback` takes back, holds from the next call on, in
every process.

Invariants: the same state and fact give the same decision; all decisions of one call are made by
one version, the one that the journal names; purging an item takes along what was declined because
it said so already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memograd.errors import BadInput
from memograd.memory.language import is_chinese
from memograd.memory.manager.protocol import MemoryManager
from memograd.memory.manager.rules import decide_by_rules
from memograd.memory.manager.trained.files import PolicyVersions, TrainedHead, load_head
from memograd.memory.manager.trained.network import Batch, logits_BA, probabilities_BA
from memograd.memory.manager.trained.observation import SLOTS, observe, operation_of
from memograd.memory.reader.fact import Fact
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import Decision, MemoryOp, OpKind

if TYPE_CHECKING:
    from memograd.memory.records.items import MemoryItem
    from memograd.memory.search import Hit, Query
    from memograd.memory.state import MemoryState


class TrainedManager:
    """Decides by a trained head.

    defer_below: decisions whose probability is lower are made by `deferred_to`; 0: none. Raises
    BadInput when only one of the two is given, or the threshold is not between 0 and 1.
    """

    def __init__(
        self,
        head: TrainedHead,
        *,
        defer_below: float = 0.0,
        deferred_to: MemoryManager | None = None,
    ) -> None:
        if not 0 <= defer_below <= 1:
            raise BadInput(f"defer_below is a probability from 0 to 1, not {defer_below}.")
        if (defer_below > 0) != (deferred_to is not None):
            raise BadInput(
                "defer_below and the manager that decides instead go together: give both, or"
                " neither."
            )
        self.head = head
        self.defer_below = defer_below
        self._deferred_to = deferred_to
        self.actor = f"policy:{head.version}"

    @classmethod
    def load(
        cls,
        folder: Path | str,
        *,
        defer_below: float = 0.0,
        deferred_to: MemoryManager | None = None,
    ) -> TrainedManager:
        """The head in a folder, as `memograd train memory-ops` leaves it in `final`."""
        head = load_head(Path(folder).expanduser())
        return cls(head, defer_below=defer_below, deferred_to=deferred_to)

    def check_embedder(self, name: str, dimension: int) -> None:
        """Raise BadInput unless the head was trained on vectors of this embedder."""
        if (name, dimension) != (self.head.embedder, self.head.shape.dimension):
            raise BadInput(
                f"The policy {self.head.version} was trained with the embedder"
                f" {self.head.embedder!r} ({self.head.shape.dimension} dimensions), this memory has"
                f" {name!r} ({dimension}): open it with the first, or train with memory.embedder."
            )

    def decide(
        self, state: MemoryState, fact: Fact, query: Query, related: Sequence[Hit[MemoryItem]]
    ) -> Decision:
        """The most probable operation; see `MemoryManager.decide`."""
        hits = related[:SLOTS]
        observation = observe(state, fact, query, hits)
        logits_A = logits_BA(self.head.weights, self.head.shape, Batch.of([observation]))[0]
        probabilities_A = probabilities_BA(logits_A)
        action = int(probabilities_A.argmax())
        confidence = float(probabilities_A[action])
        if confidence < self.defer_below and self._deferred_to is not None:
            decision = self._deferred_to.decide(state, fact, query, hits)
            other = self._deferred_to.actor
            if is_chinese(fact.text):
                told = f"（由 {other} 决定：{self.actor} 只有 {confidence:.0%} 的把握）"
            else:
                told = f" (decided by {other}: {self.actor} was only {confidence:.0%} sure)"
            return replace(decision, reason=decision.reason + told)
        op = operation_of(action, fact, hits)
        if op.kind is OpKind.NONE:
            op = MemoryOp.none(_said_by(fact, hits))
        told = (
            f"{op.kind} 的概率为 {confidence:.2f}。"
            if is_chinese(fact.text)
            else f"{op.kind} has probability {confidence:.2f}."
        )
        return Decision(op, told, confidence)


def _said_by(fact: Fact, hits: Sequence[Hit[MemoryItem]]) -> str | None:
    """The item that says the fact already, as the rules see it: the network names none."""
    op = decide_by_rules(fact, [hit.record for hit in hits]).op
    return op.item_id if op.kind is OpKind.NONE else None


class FollowingManager:
    """Decides by the current version; parameters as of `TrainedManager`."""

    def __init__(
        self,
        folder: Path,
        *,
        defer_below: float = 0.0,
        deferred_to: MemoryManager | None = None,
    ) -> None:
        self._versions = PolicyVersions(folder)
        self._defer_below, self._deferred_to = defer_below, deferred_to
        self._embedder: tuple[str, int] | None = None
        self._loaded = self._load(self._versions.current)

    @property
    def actor(self) -> str:
        """As of `MemoryManager`, at this moment."""
        return self.now().actor

    def now(self) -> TrainedManager:
        """The manager of the current version; it stays what it is."""
        loaded = self._loaded
        current = self._versions.current
        if loaded.head.version != current:
            self._loaded = loaded = self._load(current)
        return loaded

    def check_embedder(self, name: str, dimension: int) -> None:
        """As of `TrainedManager`, for this version and all that come."""
        self.now().check_embedder(name, dimension)
        self._embedder = (name, dimension)

    def decide(
        self, state: MemoryState, fact: Fact, query: Query, related: Sequence[Hit[MemoryItem]]
    ) -> Decision:
        """As of `TrainedManager`."""
        return self.now().decide(state, fact, query, related)

    def _load(self, version: str) -> TrainedManager:
        manager = TrainedManager(
            self._versions.load(version),
            defer_below=self._defer_below,
            deferred_to=self._deferred_to,
        )
        if self._embedder is not None:
            manager.check_embedder(*self._embedder)
        return manager


def open_policy(
    path: Path | str, *, defer_below: float = 0.0, deferred_to: MemoryManager | None = None
) -> TrainedManager | FollowingManager:
    """The head in a folder, or the current one of a folder of policies.

    Raises BadInput when there is none, or when only one of the other two is given.
    """
    folder = Path(path).expanduser()
    if PolicyVersions.is_in(folder):
        return FollowingManager(folder, defer_below=defer_below, deferred_to=deferred_to)
    return TrainedManager.load(folder, defer_below=defer_below, deferred_to=deferred_to)


def settled(manager: MemoryManager) -> MemoryManager:
    """Who decides throughout one call."""
    return manager.now() if isinstance(manager, FollowingManager) else manager
