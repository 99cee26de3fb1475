"""How far a query reaches: the state that holds all it may see.

A query reaches the owners that its filter lets through. Up to `STATE_ITEMS` items are searched
exactly, in the states of these owners; beyond that the Milvus index proposes candidates. Both
answer from the journal as it is at that moment. Without a server the states go on much further,
since Milvus Lite needs 0.6 s for 100,000 items where a state needs 0.008 s (`docs/log.md`).

Invariant: a state that is reached holds all that the filter may let through, or what the index
proposes of it (`proposed`); what it holds beyond that, and what has expired, `eligible` refuses.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memograd.errors import MemogradError
from memograd.memory.filters import Filter
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.turns import RawTurn
from memograd.memory.search.hits import Query, SearchRequest
from memograd.memory.search.index_search import IndexSearch
from memograd.memory.search.retriever import DEPTH_PER_RESULT
from memograd.memory.state import MemoryState
from memograd.memory.state.store import MemoryStore

logger = logging.getLogger(__name__)

STATE_ITEMS: Final = 50_000  # with a Milvus server
STATE_ITEMS_WITHOUT_SERVER: Final = 200_000  # half a gigabyte at 384 dimensions


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

        A filter by ids alone says of every turn whether it was heard there, an assistant's too.
        """
        hidden = self.hidden_turns
        if self.whole:
            return (lambda turn: turn.id not in hidden) if hidden else None
        sources = {source for item in self.items() for source in item.sources} - hidden
        if not self.wanted.asks_ids_alone():
            return lambda turn: turn.id in sources

        def heard_there(turn: RawTurn) -> bool:
            known = turn.scope is not None and self.wanted.matches_scope(turn.scope)
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


def _left_to_check(wanted: Filter, owners: list[str]) -> Callable[[MemoryItem], bool] | None:
    """None when everything of the one owner matches anyway."""
    return None if len(owners) == 1 and wanted.is_owner(owners[0]) else wanted.matches
