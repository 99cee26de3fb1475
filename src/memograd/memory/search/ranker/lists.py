"""The five lists that candidates come from, over all living records at once.

Turns by meaning and by words, turns by the words of the turn and its neighbours, and the turns that
the items found came from, by the items' meaning and words. Items have the first two and, through
their sources, the third. What was told on the days that a question names is a candidate as well
("What did I do last Saturday?" has no word that would find it). Invariant: every rank counts from
1; what a list does not hold has an infinite rank there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np

from memograd.memory.search.ranker.asked_dates import Span, days_since_1970
from memograd.memory.state.bm25 import Matches
from memograd.memory.state.scored import Scored

DEPTH: Final = 64
OF_THE_DAYS: Final = 16  # candidates for their date alone
K: Final = 20  # of rank fusion

Eligible = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Words:
    """By words: BM25 and cover (the idf-weighted share of the query's terms), each float64: of the
    records and of them with their neighbours `[n]`, of whole sittings `[sittings]`, which are not
    there for records that stand alone."""

    bm25: np.ndarray
    cover: np.ndarray
    window: np.ndarray
    window_cover: np.ndarray
    sitting: np.ndarray
    sitting_cover: np.ndarray


def words_of(scored: Scored[Any], *, around: bool) -> Words:
    """Words of the record and, with `around`, of it with its neighbours and of its sitting."""
    words = scored.words
    bm25 = words.bm25
    sat = scored.layout.sittings() if around else None
    alone = np.zeros(len(sat.starts) if sat else 0)
    if not len(words.matches.place):
        zeros = np.zeros(len(bm25))
        return Words(bm25, zeros, zeros, zeros, alone, alone)
    cover = words.matches.cover(len(bm25), words.idf)
    if sat is None:
        return Words(bm25, cover, bm25, cover, alone, alone)
    window, near_cover = _window(scored, sat.linked)
    near = np.flatnonzero(window)  # everywhere else all is 0
    talk = sat.talk[near]
    for around_it, own in ((window, bm25[near]), (near_cover, cover[near])):
        around_it[near] = own + talk * (around_it[near] - own)
    lengths = scored.layout.sitting_lengths()
    sitting, sitting_cover = words.matches.grouped(sat.of[words.matches.place], lengths, words.idf)
    return Words(bm25, cover, window, near_cover, sitting, sitting_cover)


def _window(scored: Scored[Any], linked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """BM25 and cover of every turn with the ones beside it, of the same sitting, as one text."""
    matches = scored.words.matches
    term, place, count = matches.term, matches.place, matches.count
    behind = np.where(linked[place + 1], place + 1, -1)
    before = np.where(linked[place], place - 1, -1)
    tripled = Matches(
        np.concatenate([term, term, term]),
        place,
        np.concatenate([count, count, count]),
        matches.repeats,
    )
    around = np.concatenate([place, behind, before])
    return tripled.grouped(around, scored.layout.window_lengths(), scored.words.idf)


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


@dataclass(frozen=True, slots=True)
class Sources:
    """What the items that stand in any list came from.

    items: int64 `[c]`, their numbers, rising. ranks: float64 `[2, c]`, their places in the lists by
    meaning and by words. item, turn: int64 `[sources]`, a place in `items` and the number of a
    turn, -1 where it is not here. last: int64 `[c]`, the turn of the last source.
    """

    items: np.ndarray
    ranks: np.ndarray
    item: np.ndarray
    turn: np.ndarray
    last: np.ndarray


def sources_of(items: Seen, turns: Seen) -> Sources:
    """The sources of the best items, looked up once for both kinds of candidates."""
    lists = (items.dense_best, items.words_best)
    numbers = _distinct(*lists)
    told = [record.sources for record in items.scored.records(numbers)]
    counts = np.fromiter(map(len, told), np.int64, len(told))
    of = np.arange(len(told)).repeat(counts)
    turn = turns.scored.numbers(list(chain.from_iterable(told)))
    last = np.full(len(numbers), -1, np.int64)
    some = counts > 0
    last[some] = turn[counts.cumsum()[some] - 1]
    return Sources(numbers, _ranks(numbers, lists, 2), of, turn, last)


def _distinct(*numbers: np.ndarray) -> np.ndarray:
    """int64, rising: every number once."""
    rising = np.concatenate(numbers, dtype=np.int64)
    rising.sort()
    new = np.ones(len(rising), bool)
    np.not_equal(rising[1:], rising[:-1], out=new[1:])
    return rising[new]


def _ranks(numbers: np.ndarray, lists: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """float64 `[rows, c]`: the places of the numbers (rising) in lists of the best, one a row,
    infinite outside them and in the rows behind them."""
    ranks = np.full((rows, len(numbers)), np.inf)
    for row, best in zip(ranks, lists, strict=False):
        row[numbers.searchsorted(best)] = np.arange(1.0, len(best) + 1)
    return ranks


def _of_the_days(own: Seen, spans: Sequence[Span]) -> np.ndarray:
    """The numbers of records that were told within the spans, the nearest by meaning."""
    if not spans:
        return np.zeros(0, np.int64)
    day = own.scored.layout.columns.day
    within = np.zeros(len(day), bool)
    for begin, end in spans:
        within |= (day >= days_since_1970(begin)) & (day < days_since_1970(end))
    numbers = np.flatnonzero(within)
    if own.allowed is not None:
        numbers = np.array([one for one in numbers.tolist() if own.allowed(one)], np.int64)
    order = np.argsort(-own.scored.dense[numbers], kind="stable")[:OF_THE_DAYS]
    return numbers[order]


def turn_lists(turns: Seen, items: Seen, sources: Sources, spans: Sequence[Span]) -> Lists:
    """The candidates among turns. spans: the stretches of time that the question names."""
    window_best = best_of(turns.words.window, turns.allowed, positive=True)
    known = sources.turn >= 0
    if turns.allowed is not None:
        known[known] = [turns.allowed(place) for place in sources.turn[known].tolist()]
    of, came_from = sources.item[known], sources.turn[known]
    dated = _of_the_days(turns, spans)
    numbers = _distinct(turns.dense_best, turns.words_best, window_best, came_from, dated)
    ranks = _ranks(numbers, (turns.dense_best, turns.words_best, window_best), 5)
    at, item = numbers.searchsorted(came_from), sources.items[of]
    for row, of_items in zip(ranks[3:], sources.ranks, strict=True):
        np.minimum.at(row, at, of_items[of])
    values = np.zeros((3, len(numbers)))
    values[0] = -1.0
    seen_of_items = (items.scored.dense, items.words.bm25, items.words.cover)
    for row, value in zip(values, seen_of_items, strict=True):
        np.maximum.at(row, at, value[item])
    return Lists(numbers, ranks, values[0], values[1], values[2], numbers, _fused(ranks))


def item_lists(items: Seen, turns: Seen, sources: Sources) -> Lists:
    """The candidates among items."""
    ranks = np.full((5, len(sources.items)), np.inf)
    ranks[:2] = sources.ranks
    window = window_of_items(items, turns, sources.items, sources.last)
    order = np.argsort(-window, kind="stable")
    order = order[window[order] > 0]
    ranks[2, order] = np.arange(1, len(order) + 1)
    nothing = np.zeros(len(sources.items))
    return Lists(
        sources.items, ranks, nothing - 1.0, nothing, nothing, sources.last, _fused(ranks[:3])
    )


def window_of_items(items: Seen, turns: Seen, numbers: np.ndarray, last: np.ndarray) -> np.ndarray:
    """float64 `[c]`: by words, the turn that each item came from last with its neighbours.

    No less than the item itself: what was rewritten may hold words that its last source has not.
    """
    window: np.ndarray = items.words.bm25[numbers].astype(float)
    known = last >= 0
    window[known] = np.maximum(window[known], turns.words.window[last[known]])
    return window


def _fused(ranks: np.ndarray) -> np.ndarray:
    scores: np.ndarray = ((K + 1) / (K + ranks)).sum(axis=0)
    return scores
