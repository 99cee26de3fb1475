"""What a query makes of every living record of a corpus, and the best k of many scores.

Records are numbered in the order of their insertion, as in a corpus built afresh; a `Scored` reads
the view that it was made of, whatever is written meanwhile. For `best`, scores come twice: fast
ones for every place, and exact ones that are computed only for the places that can still win. The
order is total (exact score, then place), so it does not depend on how the fast scores were
computed, and the best k are always the beginning of the best k + 1.

Invariant: `best` equals sorting everything and filtering.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import repeat
from typing import Final, Generic

import numpy as np

from memograd.memory.state.bm25 import WordScores
from memograd.memory.state.corpus_view import CorpusView, Layout, gathered
from memograd.memory.state.segment import T

LEAST_SPREAD: Final = 0.008  # of the cosines of a memory of few turns
Exact = Callable[[np.ndarray], np.ndarray]  # places, rising, int64 [m] -> scores float64 [m]


class Scored(Generic[T]):
    """What a query makes of every living record of a corpus, in the order of insertion.

    dense: float32 `[n]`, cosines (exact to about 1e-6). words: `bm25` of the same records
    and the query's idf. layout: lengths and columns of the records.
    """

    def __init__(
        self, view: CorpusView[T], layout: Layout, dense: np.ndarray, words: WordScores
    ) -> None:
        self._view, self.layout, self.dense, self.words = view, layout, dense, words
        self._starts = view.starts()
        self._pending = view.pending()
        self._in_tail = {pending.record.id: at for at, pending in enumerate(self._pending)}
        self._rows = [part.segment.rows for part in view.parts]
        self._dead = [part.dead for part in view.parts]

    def __len__(self) -> int:
        return len(self.layout.lengths)

    @cached_property
    def spread(self) -> float:
        """Standard deviation of the cosines, at least `LEAST_SPREAD`."""
        return max(float(self.dense.std()) if len(self) else 0.0, LEAST_SPREAD)

    @cached_property
    def mean(self) -> float:
        """Mean of the cosines, 0 without any."""
        return float(self.dense.mean()) if len(self) else 0.0

    def record(self, at: int) -> T:
        """The record at one number in the order of insertion."""
        place = at if self.layout.places is None else int(self.layout.places[at])
        if place >= self._starts[-1]:
            return self._pending[place - self._starts[-1]].record
        number = bisect_right(self._starts, place) - 1
        return self._view.parts[number].segment.records[place - self._starts[number]]

    def records(self, numbers: np.ndarray) -> list[T]:
        """The records at these numbers, rising."""
        places = numbers if self.layout.places is None else self.layout.places[numbers]
        cuts = np.searchsorted(places, [*self._starts, self._starts[-1] + len(self._pending)])
        held: list[T] = []
        for number, part in enumerate(self._view.parts):
            records, start = part.segment.records, self._starts[number]
            held += [records[at - start] for at in places[cuts[number] : cuts[number + 1]].tolist()]
        tail, start = self._pending, self._starts[-1]
        return held + [tail[at - start].record for at in places[cuts[-2] :].tolist()]

    def vectors(self, numbers: np.ndarray) -> np.ndarray:
        """float32 `[len(numbers), d]`: the unit vectors of the records at these numbers, of which
        there are some and none is below the one before it."""
        places = numbers if self.layout.places is None else self.layout.places[numbers]
        return gathered(self._view, self._starts, self._pending, places)

    def numbers(self, ids: Sequence[str]) -> np.ndarray:
        """int64 `[ids]`: where their records stand in the order of insertion, -1 for one that is
        not here."""
        found = np.full(len(ids), -1, np.int64)
        for rows, dead, start in zip(self._rows, self._dead, self._starts, strict=False):
            here = np.fromiter(map(rows.get, ids, repeat(-1)), np.int64, len(ids))
            alive = here >= 0 if dead is None else (here >= 0) & ~dead[here]
            np.copyto(found, here + start, where=alive)
        if self.layout.places is not None:
            found = np.where(found < 0, -1, np.searchsorted(self.layout.places, found))
        if self._in_tail:
            first = len(self) - len(self._in_tail)
            tail = np.fromiter((self._in_tail.get(id, -1) for id in ids), np.int64, len(ids))
            found = np.where(tail < 0, found, first + tail)
        return found


def best(
    scores: np.ndarray,
    k: int,
    margin: float,
    exact: Exact,
    eligible: Callable[[int], bool] | None,
) -> list[tuple[int, float]]:
    """The k best places among the eligible ones, with their exact scores, best first.

    `eligible` is asked from the best place downwards, at most once a place, and stops being asked
    when k are found; only where few places are eligible is it asked about all of them.
    """
    if k <= 0 or not len(scores):
        return []
    if eligible is None:
        places, values = top(scores, k, margin, exact)
        return list(zip(places.tolist(), values.tolist(), strict=True))
    chosen: list[tuple[int, float]] = []
    asked = np.zeros(0, np.int64)
    depth = max(64, 4 * k)
    while depth <= len(scores) // 8:
        places, values = top(scores, depth, margin, exact)
        for place, value in zip(
            places[len(asked) :].tolist(), values[len(asked) :].tolist(), strict=True
        ):
            if eligible(place):
                chosen.append((place, value))
                if len(chosen) == k:
                    return chosen
        asked = places
        depth *= 4
    rest = scores.copy()
    rest[asked] = -np.inf
    for place in np.flatnonzero(np.isfinite(rest)).tolist():
        if not eligible(place):
            rest[place] = -np.inf
    return chosen + best(rest, k - len(chosen), margin, exact, None)


def top(scores: np.ndarray, k: int, margin: float, exact: Exact) -> tuple[np.ndarray, np.ndarray]:
    """Places and exact scores of the k best of `scores` (float `[n]`; -inf takes no part).

    margin: at least twice the largest difference between a fast score and its exact one. Equal
    exact scores keep the order of their places.
    """
    floor = float("-inf")
    if k < len(scores):
        floor = float(np.partition(scores, len(scores) - k)[len(scores) - k]) - margin
    reach = scores >= floor if np.isfinite(floor) else np.isfinite(scores)
    places = np.flatnonzero(reach)
    if not len(places):
        return places, np.zeros(0, np.float64)
    values = exact(places)
    order = np.argsort(-values, kind="stable")[:k]
    return places[order], values[order]
