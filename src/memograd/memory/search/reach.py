"""How far a query reaches: the state that holds all it may see.

A query reaches the owners that its filter lets through. Up to `STATE_ITEMS` items are searched
exactly, in the states of these owners; beyond that the Milvus index proposes candidates, opened
when it is first needed and caught up before every answer. Which of them a query may see, and how
they rank, is decided from the journal as for any other search, so an index that is behind or wrong
can miss an item but never show one. Without a server the states go on much further, since Milvus
Lite needs 0.6 s for 100,000 items where a state needs 0.008 s (`docs/log.md`).

Invariant: a state that is reached holds all that the filter may let through, or what the index
proposes of it (`proposed`); what it holds beyond that, and what has expired, `eligible` refuses.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from memograd.errors import MemogradError, Unfinished
from memograd.memory.filters import Filter
from memograd.memory.index import IndexUnavailable, MilvusIndex
from memograd.memory.index.schema import MAX_HITS
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.turns import RawTurn
from memograd.memory.search.hits import Mode, Query, SearchRequest
from memograd.memory.search.retriever import DEPTH_PER_RESULT
from memograd.memory.state import MemoryState
from memograd.memory.state.store import MemoryStore

logger = logging.getLogger(__name__)
STATE_ITEMS: Final = 50_000  # with a Milvus server
STATE_ITEMS_WITHOUT_SERVER: Final = 200_000  # half a gigabyte at 384 dimensions
META_KEY: Final = "index"  # where the index is, once there is one
FIRST_DEPTH: Final = 200


@dataclass(frozen=True, slots=True)
class Reached:
    """state: of one owner or of several. eligible: which of its items may be seen, None for all.

    whole: the filter lets all of them through. hidden_turns: ids of turns that have expired.
    """

    state: MemoryState
    wanted: Filter
    eligible: Callable[[MemoryItem], bool] | None
    whole: bool
    hidden_turns: frozenset[str] = frozenset()

    def items(self) -> list[MemoryItem]:
        """The items that the filter lets through, in the order of the state."""
        return list(self.seen())

    def seen(self) -> Iterator[MemoryItem]:
        """The same, one by one."""
        return (one for one in self.state.items if self.eligible is None or self.eligible(one))

    def turn_eligible(self) -> Callable[[RawTurn], bool] | None:
        """Under a filter, the turns that an item behind the filter came from.

        A filter by ids and metadata says of every turn whether it was heard there, an assistant's
        too.
        """
        hidden = self.hidden_turns
        if self.whole:
            return (lambda turn: turn.id not in hidden) if hidden else None
        sources = {source for item in self.items() for source in item.sources} - hidden
        if not self.wanted.can_ask_of_turns():
            return lambda turn: turn.id in sources

        def heard_there(turn: RawTurn) -> bool:
            known = turn.scope is not None and self.wanted.matches_heard(turn.scope, turn.metadata)
            return (known or turn.id in sources) and turn.id not in hidden

        return heard_there


class Reach:
    """Finds the states of a store, and its index where states would be too large."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.index = IndexSearch(store)

    def listing(
        self, wanted: Filter, as_of: datetime | None = None, *, show_expired: bool = False
    ) -> Reached:
        """All that the filter may let through, to be listed; no vector of a turn is waited for."""
        owners = self._store.owners(wanted)
        state = self._state(owners, as_of, turn_vectors=False)
        return self._reached(state, wanted, owners, as_of, show_expired)

    def of(self, request: SearchRequest, query: Query) -> Reached:
        """What a search looks at.

        Where it reaches more items than states should hold, the state has the best candidates of
        the index instead. The past is always answered from the journal.
        """
        wanted, states = request.wanted, self._store.states
        owners = self._store.owners(wanted)
        if request.as_of is None and not states.holds(owners) and self._is_large(owners):
            everywhere = wanted.pinned("user_id") is None
            try:
                candidates = self.index.propose(
                    query,
                    wanted,
                    None if everywhere else owners,
                    depth=DEPTH_PER_RESULT * request.top_k,
                    turn_depth=DEPTH_PER_RESULT * request.turns,
                    mode=request.mode,
                )
                return self._reached(candidates, wanted, owners, None, request.show_expired)
            except MemogradError as error:
                logger.warning("Answering without the index, which takes longer: %s", error)
        state = self._state(owners, request.as_of, turn_vectors=True)
        return self._reached(state, wanted, owners, request.as_of, request.show_expired)

    def _state(
        self, owners: list[str], as_of: datetime | None, *, turn_vectors: bool
    ) -> MemoryState:
        states = self._store.states
        if as_of is not None:
            found = [states.at(owner, as_of) for owner in owners]
        else:
            found = [states.current(owner, turn_vectors=turn_vectors) for owner in owners]
        if len(found) == 1:
            return found[0]
        return MemoryState.union(found, dimension=self._store.embedder.dimension)

    def _reached(
        self,
        state: MemoryState,
        wanted: Filter,
        owners: list[str],
        as_of: datetime | None,
        show_expired: bool,
    ) -> Reached:
        check = _left_to_check(wanted, owners)
        if show_expired:
            return Reached(state, wanted, check, check is None)
        moment = as_of or self._store.now()
        gone = state.expired_items(moment)

        def shown(item: MemoryItem) -> bool:
            return item.id not in gone and (check is None or check(item))

        eligible = shown if gone else check
        return Reached(state, wanted, eligible, check is None, state.expired_turns(moment))

    def _is_large(self, owners: list[str]) -> bool:
        server = (self._store.settings.milvus_uri or "").startswith(("http://", "https://"))
        limit = STATE_ITEMS if server else STATE_ITEMS_WITHOUT_SERVER
        journal = self._store.journal  # most journals are small as a whole, which is quick to tell
        return journal.count_added(None) > limit and journal.count_added(owners) > limit


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
            raise Unfinished(
                f"The journal is purged, but an index was once made at {left}, where the settings"
                " no longer look: run memograd memory reindex, and drop the collection if that is"
                " a server."
            )
        try:
            self._caught_up()
        except MemogradError as error:
            raise Unfinished(
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


def _left_to_check(wanted: Filter, owners: list[str]) -> Callable[[MemoryItem], bool] | None:
    """None when everything of the one owner matches anyway."""
    return None if len(owners) == 1 and wanted.is_owner(owners[0]) else wanted.matches
