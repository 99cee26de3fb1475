"""Deciding by the current version of a folder of policies, whichever that is now.

A running memory looks at each call which version is current, so what `memograd learn` adopts, or
`memograd policy rollback` takes back, holds from the next call on, in every process. Invariant: all
decisions of one call are made by one version, the one that the journal names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memograd.memory.manager.protocol import MemoryManager
from memograd.memory.manager.trained.manager import TrainedManager
from memograd.memory.manager.trained.versions import PolicyVersions
from memograd.memory.reader.fact import Fact
from memograd.memory.records.operations import Decision

if TYPE_CHECKING:
    from memograd.memory.records.items import MemoryItem
    from memograd.memory.search import Hit, Query
    from memograd.memory.state import MemoryState


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
