"""Finding: from a request to items and the raw turns behind them, and to the text of a prompt.

    request ──► Reach: a state ──► the trained ranker, or rank fusion ──► items, turns ──► context

Invariant: what is found matches the filter, always.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Final

from memograd.errors import BadInput
from memograd.memory.analysis import analyse
from memograd.memory.filters import Filter
from memograd.memory.language import estimate_tokens
from memograd.memory.records.items import Kind, MemoryItem
from memograd.memory.records.notes import is_doubted, is_past
from memograd.memory.records.scope import check_unicode
from memograd.memory.records.turns import RawTurn
from memograd.memory.search.behind import turns_behind, with_positions
from memograd.memory.search.context import Context, Dates, build_context
from memograd.memory.search.hits import Hit, Query, SearchRequest, Why
from memograd.memory.search.own_name import asked_of_the_user
from memograd.memory.search.paging import Page, page_of
from memograd.memory.search.ranker.files import Ranker
from memograd.memory.search.ranker.question import read_question
from memograd.memory.search.ranker.trained import (
    FollowedRanking,
    Ranking,
    asked,
    candidates_of,
    judge_both,
    judge_items,
)
from memograd.memory.search.reach import Reach, Reached
from memograd.memory.search.rerank import Reranker
from memograd.memory.search.retriever import (
    DEPTH_PER_RESULT,
    Weighing,
    check_query,
    finish,
    retrieve,
)
from memograd.memory.state import MemoryState
from memograd.memory.state.store import MemoryStore

if TYPE_CHECKING:
    import numpy as np

WITH_NEIGHBOURS: Final = 3  # hits whose neighbours a context shows, too


@dataclass(frozen=True, slots=True)
class Found:
    """Items, best first, and the raw turns behind them, best first.

    warning: why the ranker that the settings ask for did not rank; empty where it did.
    """

    items: list[Hit[MemoryItem]]
    turns: list[Hit[RawTurn]]
    warning: str = ""


class Recall:
    """Answers queries over a store."""

    def __init__(self, store: MemoryStore, reranker: Reranker | None) -> None:
        self._store, self._reranker = store, reranker
        self._reach = Reach(store)
        settings = store.settings
        self._followed = FollowedRanking(settings.ranking, store.embedder.name)
        self._category_names: list[str] = list(settings.categories)
        self._category_vectors: np.ndarray | None = None

    @property
    def ranking(self) -> Ranking:
        """By what a search ranks at this moment."""
        return self._followed.now()

    def search(self, request: SearchRequest) -> Found:
        """The best items and raw turns that the filter lets through."""
        if request.rerank and self._reranker is None:
            raise BadInput("rerank=True needs a reranker: give one to Memory.open(reranker=...).")
        check_query(request.top_k, request.mode)
        query = self.query(request.query)
        reached = self._reach.of(request, query)
        found = self._found(request, query, reached)
        asked = _asked_of_the_user(request, reached, found)
        return found if asked is None else self._found(request, self.query(asked), reached)

    def _found(self, request: SearchRequest, query: Query, reached: Reached) -> Found:
        """What the words of the query find."""
        ranking = self._ranking_for(reached.state, request)
        reranker = self._reranker if request.rerank else None
        if ranking.ranker is not None:
            if request.asked_at is None:
                now = request.as_of or self._store.now().astimezone()
                request = replace(request, asked_at=now)
            return trained(request, query, reached, ranking.ranker, reranker)
        return fused(request, query, reached, ranking, reranker)

    def _ranking_for(self, state: MemoryState, request: SearchRequest) -> Ranking:
        """The ranking of this memory where it can rank what this search has."""
        ranking = self.ranking
        if ranking.ranker is None:
            return ranking
        if request.mode != "hybrid":
            return Ranking(None, f"the mode is {request.mode}")
        if state.proposed:
            return Ranking(None, "the index proposes candidates, and the ranker compares all turns")
        return ranking

    def context(self, request: SearchRequest, *, token_budget: int) -> Context:
        """The text that shows a prompt what is remembered, within the budget."""
        reached = self._reach.listing(request.wanted)
        seen = reached.items()
        core = [item for item in reversed(seen) if item.kind is Kind.CORE]
        found = self.search(request)
        behind = _with_neighbours(reached, found.turns)
        shown = {hit.record.id for hit in behind}
        facts: dict[str, list[MemoryItem]] = {}
        for item in seen:
            for source in item.sources:
                if source in shown:
                    facts.setdefault(source, []).append(item)
        dates: dict[str, Dates] = {}
        for item in chain((hit.record for hit in found.items), *facts.values()):
            if (known := dates_of(reached.state, item)) is not None:
                dates[item.id] = known
        asks = read_question(request.query, asked_at=None, names=(), years=()).asks
        return build_context(
            core,
            found.items,
            behind,
            token_budget=token_budget,
            count_tokens=estimate_tokens,
            core_budget=self._store.settings.core_token_budget,
            query=request.query,
            facts=facts,
            dates=dates,
            about_turns="you" in asks,
        )

    def all_items(
        self,
        wanted: Filter,
        *,
        as_of: datetime | None = None,
        show_expired: bool = False,
    ) -> list[MemoryItem]:
        """Every item that the filter lets through, in the order they were learnt."""
        items = self._reach.listing(wanted, as_of, show_expired=show_expired).items()
        items.sort(key=lambda item: item.created_at)
        return items

    def page(
        self,
        wanted: Filter,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        as_of: datetime | None = None,
        show_expired: bool = False,
    ) -> Page:
        """The first `limit` items (None: all) behind the cursor, in the order they were learnt."""
        reached = self._reach.listing(wanted, as_of, show_expired=show_expired)
        return page_of(reached.seen(), cursor, limit)

    def query(self, text: str) -> Query:
        """The query with its vector and search terms. Raises BadInput when it says nothing."""
        if not isinstance(text, str) or not text.strip():
            raise BadInput("The query is empty: say what you are looking for.")
        check_unicode(text, "the query")
        return Query(text, self._store.embedder.embed_queries([text])[0], analyse(text))

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
        self._reach.index.after_purge()

    def rebuild_index(self) -> None:
        """Fill the index anew, if there is one."""
        self._reach.index.rebuild()

    def close(self) -> None:
        """Let the index go."""
        self._reach.index.close()


def _asked_of_the_user(request: SearchRequest, reached: Reached, found: Found) -> str | None:
    """The question without the user's name; None where that is not known to be one's own.

    Where several users are asked about, or turns are said by one of that name, it tells them apart.
    """
    users = request.wanted.pinned("user_id")
    if users is None or len(users) != 1:
        return None
    asked = asked_of_the_user(request.query, [hit.record.text for hit in found.items])
    if asked is None:
        return None
    speakers = reached.state.turns.scored(None, ()).layout.columns.names
    named = read_question(request.query, asked_at=None, names=speakers, years=()).named
    return None if named else asked


def fused(
    request: SearchRequest,
    query: Query,
    reached: Reached,
    ranking: Ranking,
    reranker: Reranker | None,
) -> Found:
    """Items and turns by rank fusion, with the reason why."""
    weighing = Weighing(request.recency_half_life, reranker=reranker, not_trained=ranking.reason)
    hits = retrieve(
        reached.state.items,
        query,
        top_k=request.top_k,
        mode=request.mode,
        eligible=reached.eligible,
        threshold=request.threshold,
        weighing=weighing,
    )
    behind: list[Hit[RawTurn]] = []
    if request.turns:
        behind = turns_behind(
            reached.state,
            query,
            hits,
            top_k=request.turns,
            mode=request.mode,
            eligible=reached.turn_eligible(),
            threshold=request.threshold,
            weighing=weighing,
        )
    warning = f"Searched by rank fusion: {ranking.reason}" if ranking.failed else ""
    return Found(hits, behind, warning)


def trained(
    request: SearchRequest,
    query: Query,
    reached: Reached,
    ranker: Ranker,
    reranker: Reranker | None,
) -> Found:
    """Items and turns by the trained ranker."""
    state, turns = reached.state, request.turns > 0
    weighing = Weighing(request.recency_half_life, reranker=reranker)
    deeper = DEPTH_PER_RESULT if weighing.wants_more else 1
    seen = asked(
        state,
        query,
        asked_at=request.asked_at,
        item_eligible=reached.eligible,
        turn_eligible=reached.turn_eligible() if turns else None,
        with_turns=turns,
    )
    if turns:
        judged_items, judged_turns = judge_both(seen, ranker)
    else:
        judged_items, judged_turns = judge_items(seen, ranker.items), None
    items = candidates_of(
        judged_items,
        state.items,
        query,
        ranker.items,
        ranker.item_probability,
        most=deeper * request.top_k,
        threshold=request.threshold,
        explain=request.explain,
        newer=ranker.newer,
    )
    hits = finish(state.items, query, items, request.top_k, weighing)
    if not turns:
        return Found(hits, [])
    told = candidates_of(
        judged_turns,
        state.turns,
        query,
        ranker.turns,
        ranker.turn_probability,
        most=deeper * request.turns,
        threshold=request.threshold,
        explain=request.explain,
    )
    behind = finish(state.turns, query, told, request.turns, weighing)
    return Found(hits, with_positions(state, behind))


def dates_of(state: MemoryState, item: MemoryItem) -> Dates | None:
    """Since when an item is so, and when it was told; None where its own validity says it.

    What has ended or is in doubt says so in its text, and its present version began on that very
    day: it was told before, which only its first turn says. A text that names another day than it
    was told on ("she died in 2016") says all there is to know of that day, of which the validity
    would make 1 January.
    """
    over = is_past(item.text) or is_doubted(item.text)
    turn = state.turns.get(item.sources[0 if over else -1]) if item.sources else None
    if turn is None or turn.time is None:
        return Dates(None, None) if over else None
    since = item.valid_from
    if since and since.date() != turn.time.date() and (over or str(since.year) in item.text):
        since = None
    return Dates(since, turn.time)


def _with_neighbours(reached: Reached, hits: list[Hit[RawTurn]]) -> list[Hit[RawTurn]]:
    """The hits, and behind them the turns beside the best of them: an answer names no subject."""
    if not hits or not reached.whole:
        return hits
    turns = reached.state.turns.scored(None, ())
    joined = turns.layout.sittings().joined
    found = {hit.position: hit for hit in hits}
    for hit in hits[:WITH_NEIGHBOURS]:
        at = hit.position
        beside = [at - 1] * (at > 0 and bool(joined[at - 1]))
        beside += [at + 1] * (at < len(joined) and bool(joined[at]))
        for place in beside:
            why = Why(None, hit.why.similarity, None, 0.0, (), 0.0, beside=hit.record.id)
            if turns.record(place).id not in reached.hidden_turns:
                found.setdefault(place, Hit(turns.record(place), 0.0, why, place))
    return list(found.values())
