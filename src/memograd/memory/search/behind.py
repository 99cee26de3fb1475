"""The second layer: raw turns that answer the query themselves or stand behind the items found.

Up to four rankings are fused: the turns by meaning and by words, and the turns that the items found
came from, at their item's rank by meaning and by words. On LoCoMo that finds more evidence than the
turns alone or the items alone (`docs/log.md`). Invariant: only turns that the memory still holds
for search are returned, each once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memograd.memory.records.items import MemoryItem
from memograd.memory.records.turns import RawTurn
from memograd.memory.search.hits import Hit, Mode, Query, Why
from memograd.memory.search.retriever import (
    BY_FUSION,
    DEPTH_PER_RESULT,
    LEAST_DEPTH,
    Candidate,
    Weighing,
    check_query,
    find,
    finish,
    fuse,
    ordered,
)

if TYPE_CHECKING:
    from memograd.memory.state import MemoryState


def turns_behind(
    state: MemoryState,
    query: Query,
    item_hits: Sequence[Hit[MemoryItem]],
    *,
    top_k: int,
    mode: Mode = "hybrid",
    eligible: Callable[[RawTurn], bool] | None = None,
    threshold: float | None = None,
    weighing: Weighing = BY_FUSION,
) -> list[Hit[RawTurn]]:
    """The raw turns that show a query's answer best, at most `top_k`, best first.

    item_hits: the items found for the query, best first. A source that was forgotten or purged
    is not among `state.turns` and is left out. The other arguments are those of `retrieve`, and
    `threshold` and `eligible` hold for the sources of items too.
    """
    check_query(top_k, mode)
    depth = max(DEPTH_PER_RESULT * top_k, LEAST_DEPTH)
    direct = find(state.turns, query, depth, mode, eligible, threshold)[:depth]
    candidates = {candidate.record.id: candidate for candidate in direct}
    sources = _sources(state, item_hits, eligible)
    new = [id for id in sources if id not in candidates]
    for id, similarity in zip(new, state.turns.similarities(query.vector, new), strict=True):
        if threshold is None or similarity >= threshold:
            candidates[id] = Candidate(sources[id][0], similarity)
    scores = fuse(
        [
            {turn.record.id: turn.dense_rank for turn in direct if turn.dense_rank is not None},
            {turn.record.id: turn.lexical_rank for turn in direct if turn.lexical_rank is not None},
            _source_ranks(candidates, item_hits, lambda why: why.dense_rank),
            _source_ranks(candidates, item_hits, lambda why: why.lexical_rank),
        ]
    )
    for id, candidate in candidates.items():
        candidate.fused = scores[id]
        candidate.source_rank = sources[id][1] if id in sources else None
    hits = finish(state.turns, query, ordered(list(candidates.values())), top_k, weighing)
    return with_positions(state, hits)


def _sources(
    state: MemoryState,
    item_hits: Sequence[Hit[MemoryItem]],
    eligible: Callable[[RawTurn], bool] | None,
) -> dict[str, tuple[RawTurn, int]]:
    """The turns that the items came from, each with the rank of its best item."""
    sources: dict[str, tuple[RawTurn, int]] = {}
    for rank, hit in enumerate(item_hits, start=1):
        for id in hit.record.sources:
            turn = state.turns.get(id)
            if turn is not None and (eligible is None or eligible(turn)):
                sources.setdefault(id, (turn, rank))
    return sources


def _source_ranks(
    candidates: Mapping[str, Candidate[RawTurn]],
    item_hits: Sequence[Hit[MemoryItem]],
    rank_of: Callable[[Why], int | None],
) -> dict[str, int]:
    """The best rank of the items that a turn is the source of, in one of the items' rankings."""
    ranks: dict[str, int] = {}
    for hit in item_hits:
        rank = rank_of(hit.why)
        for id in hit.record.sources:
            if rank is not None and id in candidates:
                ranks[id] = min(rank, ranks.get(id, rank))
    return ranks


def with_positions(state: MemoryState, hits: Sequence[Hit[RawTurn]]) -> list[Hit[RawTurn]]:
    """The hits with the places of their turns in the order they were heard."""
    places = state.turns.numbers([hit.record.id for hit in hits])
    return [replace(hit, position=place) for hit, place in zip(hits, places, strict=True)]
