"""The best k of many scores, exactly, and no more work than that needs.

Scores come twice: fast ones for every place, and exact ones that are computed only for the places
that can still win. The order is total (exact score, then place), so it does not depend on how the
fast scores were computed, and the best k are always the beginning of the best k + 1.

Invariant: `best` equals sorting everything and filtering. Pure functions over numpy arrays;
imported lazily.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Exact = Callable[[np.ndarray], np.ndarray]  # places, rising, int64 [m] -> scores float64 [m]


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
