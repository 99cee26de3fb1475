"""The five lists that candidates come from, over all living records at once.

Turns by meaning and by words, turns by the words of the turn and its neighbours, and the turns that
the items found came from, by the items' meaning and words. Items have the first two and, through
their sources, the third. Invariant: every rank counts from 1; what a list does not hold has an
infinite rank there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from memograd.memory.records.items import MemoryItem
from memograd.memory.state.bm25 import Matches
from memograd.memory.state.scored import Scored

DEPTH: Final = 64
K: Final = 20  # of rank fusion

Eligible = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Words:
    """By words: bm25, cover (the idf-weighted share of the query's terms), each float64 `[n]`."""

    bm25: np.ndarray
    cover: np.ndarray
    window: np.ndarray
    window_cover: np.ndarray
    session: np.ndarray
    session_cover: np.ndarray


def words_of(scored: Scored[Any], *, around: bool) -> Words:
    """Words of the record and, with `around`, of it with its neighbours and of its sitting."""
    words = scored.words
    bm25, held = words.bm25, words.held
    if not len(bm25) or not held.any():
        zeros = np.zeros(len(bm25))
        return Words(bm25, zeros, zeros, zeros, zeros, zeros)
    cover = _cover(held, words.idf)
    if not around:
        return Words(bm25, cover, bm25, cover, bm25, cover)
    sat = scored.layout.sittings()
    window, near_cover = _window(scored, sat.joined)
    of, lengths = sat.of, scored.layout.sitting_lengths()
    session, session_cover = words.matches.grouped(of[words.matches.place], lengths, words.idf)
    return Words(
        bm25,
        cover,
        bm25 + sat.talk * (window - bm25),
        cover + sat.talk * (near_cover - cover),
        session[of],
        session_cover[of],
    )


def _window(scored: Scored[Any], joined: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """BM25 and cover of every turn with the ones beside it, of the same sitting, as one text."""
    matches = scored.words.matches
    place = matches.place
    linked = np.concatenate([joined, [False]])
    behind = np.where(linked[place], place + 1, -1)
    before = np.where((place > 0) & linked[np.maximum(place - 1, 0)], place - 1, -1)
    tripled = Matches(np.tile(matches.term, 3), place, np.tile(matches.count, 3), matches.repeats)
    around = np.concatenate([place, behind, before])
    return tripled.grouped(around, scored.layout.window_lengths(), scored.words.idf)


def _cover(held: np.ndarray, idf: np.ndarray) -> np.ndarray:
    cover = np.zeros(len(held))
    some = np.flatnonzero(held)
    masks = held[some]
    total = np.zeros(len(some))
    for bit, weight in enumerate(idf[:62].tolist()):
        total += weight * ((masks >> bit) & 1)
    cover[some] = total / max(float(idf.sum()), 1e-9)
    return cover


def best_of(
    scores: np.ndarray, allowed: Callable[[int], bool] | None, *, positive: bool = False
) -> np.ndarray:
    """The numbers of the `DEPTH` best that are allowed, best first; equal ones keep their order."""
    some = np.flatnonzero(scores > 0) if positive else None
    values = scores if some is None else scores[some]
    n = len(values)
    depth = min(DEPTH if allowed is None else 4 * DEPTH, n)
    while True:
        if depth < n:
            # All that equal the last one, so that their order decides and not the partition's.
            least = np.partition(values, n - depth)[n - depth]
            top = np.flatnonzero(values >= least)
        else:
            top = np.arange(n)
        order = top[np.argsort(-values[top], kind="stable")]
        order = order if some is None else some[order]
        if allowed is None:
            return order[:DEPTH]
        chosen = [at for at in order.tolist() if allowed(at)][:DEPTH]
        if len(chosen) == DEPTH or depth >= n:
            return np.array(chosen, np.int64)
        depth = min(4 * depth, n)


@dataclass(frozen=True, slots=True)
class Lists:
    """What candidates stand in. numbers: int64 `[c]` of the candidates among their records, rising.

    ranks: float64 `[5, c]`: dense, bm25, window, items by meaning, items by words. item_dense
    (cosine, -1 for none), item_bm25, item_cover: float64 `[c]` of the best item that came from it.
    turn: int64 `[c]`, number of the turn (of an item: its last source), -1 for none. fused: float64
    `[c]`, reciprocal ranks.
    """

    numbers: np.ndarray
    ranks: np.ndarray
    item_dense: np.ndarray
    item_bm25: np.ndarray
    item_cover: np.ndarray
    turn: np.ndarray
    fused: np.ndarray


@dataclass(frozen=True, slots=True)
class Seen:
    """A corpus as a query sees it."""

    scored: Scored[Any]
    words: Words
    dense_best: np.ndarray
    words_best: np.ndarray
    allowed: Callable[[int], bool] | None


def seen(
    scored: Scored[Any], eligible: Eligible | None, *, around: bool, best: bool = True
) -> Seen:
    """A corpus with its best by meaning and by words, which are left empty without `best`.

    around: its records stand among others (turns do, items do not).
    """
    allowed = _allowed(scored, eligible)
    words = words_of(scored, around=around)
    if not best:
        none = np.zeros(0, np.int64)
        return Seen(scored, words, none, none, allowed)
    dense = best_of(scored.dense, allowed)
    return Seen(scored, words, dense, best_of(words.bm25, allowed, positive=True), allowed)


def _allowed(scored: Scored[Any], eligible: Eligible | None) -> Callable[[int], bool] | None:
    if eligible is None:
        return None
    answers: dict[int, bool] = {}

    def allowed(at: int) -> bool:
        if at not in answers:
            answers[at] = eligible(scored.record(at))
        return answers[at]

    return allowed


def turn_lists(turns: Seen, items: Seen) -> Lists:
    """The candidates among turns."""
    window_best = best_of(turns.words.window, turns.allowed, positive=True)
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    item_values: dict[int, list[float]] = {}
    came_from: dict[int, list[int]] = {}
    for name, best in (("dense", items.dense_best), ("words", items.words_best)):
        places, ranks = [], []
        for rank, at in enumerate(best.tolist(), start=1):
            if at not in came_from:
                came_from[at] = _sources(items, at, turns)
            for place in came_from[at]:
                places.append(place)
                ranks.append(rank)
                value = item_values.setdefault(place, [-1.0, 0.0, 0.0])
                value[0] = max(value[0], float(items.scored.dense[at]))
                value[1] = max(value[1], float(items.words.bm25[at]))
                value[2] = max(value[2], float(items.words.cover[at]))
        found[name] = (np.array(places, np.int64), np.array(ranks, np.float64))
    numbers = np.unique(
        np.concatenate(
            [turns.dense_best, turns.words_best, window_best, found["dense"][0], found["words"][0]]
        )
    ).astype(np.int64)
    ranks_of = np.full((5, len(numbers)), np.inf)
    for row, best in enumerate((turns.dense_best, turns.words_best, window_best)):
        ranks_of[row, np.searchsorted(numbers, best)] = np.arange(1, len(best) + 1)
    for row, (found_at, found_ranks) in enumerate((found["dense"], found["words"]), start=3):
        np.minimum.at(ranks_of[row], np.searchsorted(numbers, found_at), found_ranks)
    values = np.tile([[-1.0], [0.0], [0.0]], (1, len(numbers)))
    if item_values:
        told = np.array(list(item_values.values())).T
        values[:, np.searchsorted(numbers, list(item_values))] = told
    return Lists(numbers, ranks_of, values[0], values[1], values[2], numbers, _fused(ranks_of))


def _sources(items: Seen, at: int, turns: Seen) -> list[int]:
    """The numbers of the turns that an item came from and that may be found."""
    item: MemoryItem = items.scored.record(at)
    found = (turns.scored.number(source) for source in item.sources)
    allowed = turns.allowed
    return [place for place in found if place is not None and (allowed is None or allowed(place))]


def item_lists(items: Seen, turns: Seen) -> Lists:
    """The candidates among items; their window is that of the turn they came from last."""
    numbers = np.unique(np.concatenate([items.dense_best, items.words_best])).astype(np.int64)
    ranks = np.full((5, len(numbers)), np.inf)
    for row, best in enumerate((items.dense_best, items.words_best)):
        ranks[row, np.searchsorted(numbers, best)] = np.arange(1, len(best) + 1)
    places = np.full(len(numbers), -1, np.int64)
    for at, number in enumerate(numbers.tolist()):
        item: MemoryItem = items.scored.record(number)
        for source in item.sources:
            place = turns.scored.number(source)
            places[at] = -1 if place is None else place
    some = np.flatnonzero(places >= 0)
    window = turns.words.window[places[some]]
    order = some[np.argsort(-window, kind="stable")]
    order = order[turns.words.window[places[order]] > 0]
    ranks[2, order] = np.arange(1, len(order) + 1)
    nothing = np.zeros(len(numbers))
    return Lists(numbers, ranks, nothing - 1.0, nothing, nothing, places, _fused(ranks[:3]))


def _fused(ranks: np.ndarray) -> np.ndarray:
    scores: np.ndarray = ((K + 1) / (K + ranks)).sum(axis=0)
    return scores
