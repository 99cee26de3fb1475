"""The index as recall uses it: opened when first needed, caught up before every answer.

Milvus proposes candidates; which of them a query may see, and how they rank, is decided from the
journal as for any other search. Invariant: what the index proposes is checked against the journal,
so an index that is behind or wrong can miss an item but never show one.
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Final

from memograd.errors import MemogradError
from memograd.memory.filters import Filter
from memograd.memory.index import IndexUnavailable, MilvusIndex
from memograd.memory.index.schema import MAX_HITS
from memograd.memory.records.items import MemoryItem
from memograd.memory.search import Mode, Query
from memograd.memory.state import MemoryState
from memograd.memory.state.store import MemoryStore

META_KEY: Final = "index"  # where the index is, once there is one
FIRST_DEPTH: Final = 200


class IndexSearch:
    """Candidates for queries that reach further than states should."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._index: MilvusIndex | None = None
        self._lock = threading.Lock()

    def propose(
        self,
        query: Query,
        wanted: Filter,
        owners: list[str] | None,
        *,
        depth: int,
        turn_depth: int,
        mode: Mode,
    ) -> MemoryState:
        """A state of the items that match and rank best, some `depth` of them if there are.

        With them come the raw turns behind them, and the `turn_depth` best turns of the owners.
        owners: where to look, None for everywhere. Raises IndexUnavailable when Milvus cannot be
        used, or not for so many results.
        """
        if max(depth, turn_depth) > MAX_HITS:
            raise IndexUnavailable(f"A search of the index can return {MAX_HITS} rows at most.")
        index = self._caught_up()
        told = []
        if turn_depth:
            told = index.search(
                query.vector, query.terms, layer="turn", k=turn_depth, owners=owners, mode=mode
            )
        agents, runs = wanted.pinned("agent_id"), wanted.pinned("run_id")
        asked = max(depth, FIRST_DEPTH)
        while True:
            hits = index.search(
                query.vector,
                query.terms,
                layer="item",
                k=min(asked, MAX_HITS),
                owners=owners,
                agent_id=_only(agents),
                run_id=_only(runs),
                mode=mode,
            )
            items = [item for hit in hits if (item := self._store.item(hit.id)) is not None]
            matching = [item for item in items if wanted.matches(item)]
            if len(matching) < depth and len(hits) >= asked >= MAX_HITS:
                raise IndexUnavailable(
                    f"Of the {MAX_HITS} rows that a search of the index can return, too few match"
                    " the filter."
                )
            if len(matching) >= depth or len(hits) < asked:
                return self._state(matching, [(hit.owner, hit.id) for hit in told])
            asked = min(4 * asked, MAX_HITS)

    def rebuild(self) -> None:
        """Fill the index anew, if there is one or a server is configured for it.

        Milvus Lite files at a place that the settings have left are removed.
        """
        left = self._place_left()
        if left is not None and not left.startswith(("http://", "https://")):
            shutil.rmtree(left, ignore_errors=True)
            if Path(left).exists():
                raise MemogradError(f"The old index {left} cannot be removed: delete it by hand.")
        if self._store.settings.milvus_uri or self._store.journal.get_meta(META_KEY):
            with self._lock:
                self._close()
                self._open(replace=True).catch_up()

    def after_purge(self) -> None:
        """Erase from the index what was purged from the journal."""
        if self._store.journal.get_meta(META_KEY) is None:
            return
        left = self._place_left()
        if left is not None:
            raise MemogradError(
                f"The journal is purged, but an index was once made at {left}, where the settings"
                " no longer look: run memograd memory reindex, and drop the collection if that is"
                " a server."
            )
        try:
            self._caught_up()
        except MemogradError as error:
            raise MemogradError(
                f"The journal is purged, but the index still has to be: {error} Then run memograd"
                " memory reindex."
            ) from error

    def _place_left(self) -> str | None:
        """Where an index was made under other settings, if anywhere."""
        made = self._store.journal.get_meta(META_KEY)
        return made if made is not None and made != self._uri() else None

    def _uri(self) -> str:
        settings = self._store.settings
        folder = Path(settings.path).expanduser().resolve()
        return settings.milvus_uri or str(folder / "index.db")

    def close(self) -> None:
        """Release the index for other processes."""
        with self._lock:
            self._close()

    def _caught_up(self) -> MilvusIndex:
        with self._lock:
            index = self._index or self._open(replace=False)
            index.catch_up()
            return index

    def _open(self, *, replace: bool) -> MilvusIndex:
        store, settings, uri = self._store, self._store.settings, self._uri()
        token = settings.milvus_token
        self._index = MilvusIndex.open(
            uri,
            token=token.get_secret_value() if token else None,
            collection=settings.milvus_collection_name,
            journal=store.journal,
            embed=store.texts.derive,
            embedder_name=store.embedder.name,
            dimension=store.embedder.dimension,
            replace=replace,
        )
        store.journal.set_meta(META_KEY, uri)
        return self._index

    def _close(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None

    def _state(self, items: list[MemoryItem], turns: list[tuple[str, str]]) -> MemoryState:
        """A state of these items, with the turns they came from and some (owner, id) more."""
        state, texts = MemoryState(self._store.embedder.dimension), self._store.texts
        state.proposed = True
        for item in sorted(items, key=lambda item: item.created_at):
            [(vector, terms)] = texts.derive(item.scope.owner, [item.text])
            state.add_item(item, vector, terms)
        sources = [(item.scope.owner, source) for item in items for source in item.sources]
        for owner, turn_id in dict.fromkeys((*turns, *sources)):
            turn = self._store.turn(owner, turn_id)
            if turn is not None and turn.id not in state.turns:
                [(vector, terms)] = texts.derive(owner, [turn.index_text()])
                state.add_turn(turn, vector, terms)
        return state


def _only(ids: frozenset[str] | None) -> str | None:
    """The one id that is possible, if there is just one."""
    return next(iter(ids)) if ids is not None and len(ids) == 1 else None
