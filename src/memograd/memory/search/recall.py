"""Finding: from a query and a filter to items and the raw turns behind them.

A query reaches the owners that its filter lets through. Up to `STATE_ITEMS` items are searched
exactly, in the states of these owners; beyond that the Milvus index proposes candidates. Both
answer from the journal as it is at that moment. Without a server the states go on much further,
since Milvus Lite needs 0.6 s for 100,000 items where a state needs 0.008 s (`docs/log.md`).

Invariant: what is found matches the filter, always.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from memograd.errors import BadInput, MemogradError
from memograd.memory.analysis import analyse
from memograd.memory.filters import Filter
from memograd.memory.language import estimate_tokens
from memograd.memory.records.items import Kind, MemoryItem
from memograd.memory.records.scope import check_unicode
from memograd.memory.records.turns import RawTurn
from memograd.memory.search import (
    DEPTH_PER_RESULT,
    Context,
    Hit,
    Mode,
    Query,
    Reranker,
    build_context,
    retrieve,
    turns_behind,
)
from memograd.memory.search.behind import with_positions
from memograd.memory.search.hits import T, Why
from memograd.memory.search.index_search import IndexSearch
from memograd.memory.search.ranker.trained import (
    Ranking,
    asked,
    candidates_of,
    choose_ranking,
    judge_items,
    judge_turns,
)
from memograd.memory.search.retriever import Weighing, check_query, finish
from memograd.memory.state import MemoryState
from memograd.memory.state.store import MemoryStore

if TYPE_CHECKING:
    import numpy as np

logger = logging.getLogger(__name__)

WITH_NEIGHBOURS: Final = 3  # hits whose neighbours a context shows, too
STATE_ITEMS: Final = 50_000  # with a Milvus server
STATE_ITEMS_WITHOUT_SERVER: Final = 200_000  # half a gigabyte at 384 dimensions


@dataclass(frozen=True, slots=True)
class Found:
    """Items, best first, and the raw turns behind them, best first."""

    items: list[Hit[MemoryItem]]
    turns: list[Hit[RawTurn]]


class Recall:
    """Answers queries over a store."""

    def __init__(self, store: MemoryStore, reranker: Reranker | None) -> None:
        self._store, self._reranker = store, reranker
        self._index = IndexSearch(store)
        settings = store.settings
        self.ranking = choose_ranking(settings.ranking, store.embedder.name)
        self._category_names: list[str] = list(settings.categories)
        self._category_vectors: np.ndarray | None = None

    def search(
        self,
        query: str,
        wanted: Filter,
        *,
        top_k: int,
        turns: int,
        threshold: float | None,
        as_of: datetime | None,
        mode: Mode,
        recency_half_life: timedelta | None,
        rerank: bool,
        asked_at: datetime | None = None,
        explain: bool = False,
    ) -> Found:
        """The best items (and `turns` raw turns) that the filter lets through.

        asked_at: what "last week" in the query counts from; `as_of` or the present if not given.
        """
        if rerank and self._reranker is None:
            raise BadInput("rerank=True needs a reranker: give one to Memory.open(reranker=...).")
        check_query(top_k, mode)
        query_asked = self.query(query)
        state, eligible = self.reach(
            wanted,
            as_of,
            query_asked,
            depth=DEPTH_PER_RESULT * top_k,
            turn_depth=DEPTH_PER_RESULT * turns,
            mode=mode,
        )
        reranker = self._reranker if rerank else None
        ranking = self._ranking_for(state, mode)
        if ranking.ranker is not None:
            return self._trained(
                state,
                query_asked,
                ranking,
                eligible,
                wanted,
                top_k=top_k,
                turns=turns,
                threshold=threshold,
                asked_at=asked_at or as_of or self._store.now().astimezone(),
                weighing=Weighing(recency_half_life, None, reranker),
                explain=explain,
            )
        hits = retrieve(
            state.items,
            query_asked,
            top_k=top_k,
            mode=mode,
            eligible=eligible,
            threshold=threshold,
            recency_half_life=recency_half_life,
            reranker=reranker,
        )
        behind = self._behind(state, query_asked, hits, eligible, turns, wanted)
        return Found(_because(hits, ranking), _because(behind, ranking))

    def _ranking_for(self, state: MemoryState, mode: Mode) -> Ranking:
        """The ranking of this memory where it can rank what this search has."""
        if self.ranking.ranker is None:
            return self.ranking
        if mode != "hybrid":
            return Ranking(None, f"the mode is {mode}")
        if state.proposed:
            return Ranking(None, "the index proposes candidates, and the ranker compares all turns")
        return self.ranking

    def _trained(
        self,
        state: MemoryState,
        query: Query,
        ranking: Ranking,
        eligible: Callable[[MemoryItem], bool] | None,
        wanted: Filter,
        *,
        top_k: int,
        turns: int,
        threshold: float | None,
        asked_at: datetime,
        weighing: Weighing,
        explain: bool,
    ) -> Found:
        """Items and turns by the trained ranker."""
        ranker = ranking.ranker
        assert ranker is not None
        most = DEPTH_PER_RESULT * max(top_k, turns) if weighing.wants_more else max(top_k, turns)

        seen = asked(
            state,
            query,
            asked_at=asked_at,
            item_eligible=eligible,
            turn_eligible=self._turn_eligible(state, eligible, wanted) if turns else None,
            with_turns=turns > 0,
        )
        items = candidates_of(
            judge_items(seen, ranker.items),
            state.items,
            query,
            ranker.items,
            ranker.item_probability,
            most=most,
            threshold=threshold,
            explain=explain,
        )
        hits = finish(state.items, query, items, top_k, weighing)
        if not turns:
            return Found(hits, [])
        told = candidates_of(
            judge_turns(seen, ranker.turns),
            state.turns,
            query,
            ranker.turns,
            ranker.turn_probability,
            most=most,
            threshold=threshold,
            explain=explain,
        )
        behind = finish(state.turns, query, told, turns, weighing)
        return Found(hits, with_positions(state, behind))

    def context(
        self, query: str, wanted: Filter, *, top_k: int, turns: int, token_budget: int
    ) -> Context:
        """The text that shows a prompt what is remembered, within the budget."""
        state, eligible = self.reach(wanted)
        seen = [item for item in state.items if eligible is None or eligible(item)]
        core = [item for item in reversed(seen) if item.kind is Kind.CORE]
        found = self.search(
            query,
            wanted,
            top_k=top_k,
            turns=turns,
            threshold=None,
            as_of=None,
            mode="hybrid",
            recency_half_life=None,
            rerank=False,
        )
        hits, behind = found.items, _with_neighbours(state, found.turns, eligible is None)
        shown = {hit.record.id for hit in behind}
        facts: dict[str, list[MemoryItem]] = {}
        for item in seen:
            for source in item.sources:
                if source in shown:
                    facts.setdefault(source, []).append(item)
        return build_context(
            core,
            hits,
            behind,
            token_budget=token_budget,
            count_tokens=estimate_tokens,
            core_budget=self._store.settings.core_token_budget,
            query=query,
            facts=facts,
        )

    def all_items(
        self, wanted: Filter, *, limit: int | None, as_of: datetime | None
    ) -> list[MemoryItem]:
        """Every item that the filter lets through, in the order they were learnt."""
        state, eligible = self.reach(wanted, as_of)
        items = [item for item in state.items if eligible is None or eligible(item)]
        items.sort(key=lambda item: item.created_at)
        return items if limit is None else items[:limit]

    def query(self, text: str) -> Query:
        """The query with its vector and search terms. Raises BadInput when it says nothing."""
        if not isinstance(text, str) or not text.strip():
            raise BadInput("The query is empty: say what you are looking for.")
        check_unicode(text, "the query")
        return Query(text, self._store.embedder.embed_queries([text])[0], analyse(text))

    def reach(
        self,
        wanted: Filter,
        as_of: datetime | None = None,
        query: Query | None = None,
        *,
        depth: int = 0,
        turn_depth: int = 0,
        mode: Mode = "hybrid",
    ) -> tuple[MemoryState, Callable[[MemoryItem], bool] | None]:
        """A state that holds all that the filter may let through, and what is left to check.

        With a query that reaches more items than states should hold, the state has the `depth` best
        candidates of the index instead, and the `turn_depth` best turns. `as_of` is always answered
        from the journal.
        """
        states, owners = self._store.states, self._store.owners(wanted)
        if as_of is not None:
            past = self._union([states.at(owner, as_of) for owner in owners])
            return past, self._left_to_check(wanted, owners)
        if query is not None and not states.holds(owners) and self._is_large(owners):
            try:
                everywhere = wanted.pinned("user_id") is None
                candidates = self._index.propose(
                    query,
                    wanted,
                    None if everywhere else owners,
                    depth=depth,
                    turn_depth=turn_depth,
                    mode=mode,
                )
                return candidates, self._left_to_check(wanted, owners)
            except MemogradError as error:
                logger.warning("Answering without the index, which takes longer: %s", error)
        found = [states.current(owner) for owner in owners]
        state = found[0] if len(found) == 1 else self._union(found)
        return state, self._left_to_check(wanted, owners)

    @staticmethod
    def _left_to_check(wanted: Filter, owners: list[str]) -> Callable[[MemoryItem], bool] | None:
        """None when everything of the one owner matches anyway."""
        return None if len(owners) == 1 and wanted.is_owner(owners[0]) else wanted.matches

    def _is_large(self, owners: list[str]) -> bool:
        server = (self._store.settings.milvus_uri or "").startswith(("http://", "https://"))
        limit = STATE_ITEMS if server else STATE_ITEMS_WITHOUT_SERVER
        journal = self._store.journal  # most journals are small as a whole, which is quick to tell
        return journal.count_added(None) > limit and journal.count_added(owners) > limit

    def _union(self, states: list[MemoryState]) -> MemoryState:
        return MemoryState.union(states, dimension=self._store.embedder.dimension)

    def _behind(
        self,
        state: MemoryState,
        asked: Query,
        hits: list[Hit[MemoryItem]],
        eligible: Callable[[MemoryItem], bool] | None,
        top_k: int,
        wanted: Filter,
    ) -> list[Hit[RawTurn]]:
        """The best raw turns, by rank fusion."""
        if not top_k:
            return []
        allowed = self._turn_eligible(state, eligible, wanted)
        return turns_behind(state, asked, hits, top_k=top_k, eligible=allowed)

    @staticmethod
    def _turn_eligible(
        state: MemoryState, eligible: Callable[[MemoryItem], bool] | None, wanted: Filter
    ) -> Callable[[RawTurn], bool] | None:
        """Under a filter, the turns that an item behind the filter came from.

        A filter by ids alone says of every turn whether it was heard there, an assistant's too.
        """
        if eligible is None:
            return None
        sources = {source for item in state.items if eligible(item) for source in item.sources}
        if not wanted.asks_ids_alone():
            return lambda turn: turn.id in sources

        def heard_there(turn: RawTurn) -> bool:
            known = turn.scope is not None and wanted.matches_scope(turn.scope)
            return known or turn.id in sources

        return heard_there

    def categorise(self, text: str) -> tuple[str, ...]:
        """The category whose description is nearest to the text, if categories are defined."""
        if not self._category_names:
            return ()
        embedder, settings = self._store.embedder, self._store.settings
        if self._category_vectors is None:
            self._category_vectors = embedder.embed(
                [f"{name}: {settings.categories[name]}" for name in self._category_names]
            )
        nearest = int((self._category_vectors @ embedder.embed([text])[0]).argmax())
        return (self._category_names[nearest],)

    def after_purge(self) -> None:
        """See to it that the index forgets, too, what was purged."""
        self._index.after_purge()

    def rebuild_index(self) -> None:
        """Fill the index anew, if there is one."""
        self._index.rebuild()

    def close(self) -> None:
        """Let the index go."""
        self._index.close()


def _because(hits: list[Hit[T]], ranking: Ranking) -> list[Hit[T]]:
    """The hits with the reason why rank fusion ordered them."""
    return [replace(hit, why=replace(hit.why, not_trained=ranking.reason)) for hit in hits]


def _with_neighbours(
    state: MemoryState, hits: list[Hit[RawTurn]], all_may_be_seen: bool
) -> list[Hit[RawTurn]]:
    """The hits, and behind them the turns beside the best of them: an answer names no subject."""
    if not hits or not all_may_be_seen:
        return hits
    turns = state.turns.scored(None, ())
    joined = turns.layout.sittings().joined
    found = {hit.position: hit for hit in hits}
    for hit in hits[:WITH_NEIGHBOURS]:
        at = hit.position
        beside = [at - 1] * (at > 0 and bool(joined[at - 1]))
        beside += [at + 1] * (at < len(joined) and bool(joined[at]))
        for place in beside:
            why = Why(None, hit.why.similarity, None, 0.0, (), 0.0, beside=hit.record.id)
            found.setdefault(place, Hit(turns.record(place), 0.0, why, place))
    return list(found.values())
