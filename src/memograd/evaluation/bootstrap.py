"""How sure a mean over questions is: the percentile bootstrap (Efron 1979).

Draw as many questions as there are, with replacement, many times; the middle 95% of the means of
those draws is the interval. To compare two methods on the same questions, bootstrap the
*differences* per question: how hard a question is cancels out, so the interval is far narrower than
two separate ones suggest.

Questions about one conversation share what is hard about it. Where there are several conversations,
`clustered_interval` draws conversations first and then questions within each one drawn, so that the
interval is about other conversations too; with questions alone it would be too narrow.

The interval is about other questions of the same kind. It says nothing about another training seed,
and it is too narrow below about twenty questions (or a handful of conversations). Invariant: same
values and seed, same interval; coverage, clustered and not, is checked by simulation in
`tests/evaluation/test_bootstrap.py`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from memograd.errors import BadInput

_BLOCK: Final = 200  # resamples drawn at once, of few values
_DRAWN: Final = 1_000_000  # values drawn at once, of many
CONFIDENCE: Final = 0.95


def bootstrap_interval(
    values: Sequence[float], *, confidence: float = CONFIDENCE, resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of `values` [n], as (low, high).

    Raises:
        BadInput: no values, one that is not finite, `confidence` outside (0, 1), or no resamples.
    """
    values_N = np.asarray(values, dtype=np.float64)
    _check(values_N, confidence, resamples)
    rng = np.random.default_rng(seed)
    n = values_N.size
    block = max(1, min(_BLOCK, _DRAWN // n))  # memory stays at that however much is asked for
    means: list[float] = []
    while len(means) < resamples:
        drawn = rng.integers(0, n, size=(min(block, resamples - len(means)), n))
        means += values_N[drawn].mean(axis=1).tolist()
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


Interval = tuple[float, float, float]
"""Mean, low, high."""


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean of `values` [n] with its interval; raises as `bootstrap_interval` does."""
    low, high = bootstrap_interval(values)
    return sum(values) / len(values), low, high


def paired_bootstrap_difference(
    before: Sequence[float],
    after: Sequence[float],
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Mean of `after - before` over the same questions with its interval, as (mean, low, high).

    Raises:
        BadInput: the lists differ in length, or as for `bootstrap_interval`.
    """
    if len(before) != len(after):
        raise BadInput(
            f"Cannot pair {len(before)} values with {len(after)}; one each per question."
        )
    differences = np.subtract(after, before, dtype=np.float64)
    low, high = bootstrap_interval(differences.tolist(), resamples=resamples, seed=seed)
    return float(differences.mean()), low, high


def clustered_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    weights: Sequence[float] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile interval of the (weighted) mean of `values` [n], as (low, high).

    clusters: whose value each is, such as the id of a conversation: as many clusters as there are
    are drawn with replacement, then in each as many values as it has. With one cluster this is the
    bootstrap over values. weights: what each value counts, all the same by default.

    Raises:
        BadInput: lists that differ in length, no positive weight, or as for `bootstrap_interval`.
    """
    values_N = np.asarray(values, dtype=np.float64)
    weights_N = np.ones_like(values_N) if weights is None else np.asarray(weights, np.float64)
    if not len(values_N) == len(clusters) == len(weights_N):
        raise BadInput(
            f"Each of {len(values_N)} values needs its cluster and its weight; got "
            f"{len(clusters)} and {len(weights_N)}."
        )
    _check(values_N, CONFIDENCE, resamples)
    if not (np.isfinite(weights_N).all() and (weights_N >= 0).all() and weights_N.any()):
        raise BadInput("Weights must be finite, none below 0 and not all 0.")
    names = list(dict.fromkeys(clusters))
    number = {name: place for place, name in enumerate(names)}
    cluster_N = np.array([number[name] for name in clusters])
    order_N = np.argsort(cluster_N, kind="stable")
    sizes_C = np.bincount(cluster_N)
    starts_C = np.cumsum(sizes_C) - sizes_C
    weighed_N, weights_N = (values_N * weights_N)[order_N], weights_N[order_N]
    rng = np.random.default_rng(seed)
    means: list[float] = []
    while len(means) < resamples:
        count = min(_BLOCK, resamples - len(means))
        drawn = rng.integers(0, len(names), size=(count, len(names)))
        sizes = sizes_C[drawn.ravel()]
        within = (rng.random(int(sizes.sum())) * np.repeat(sizes, sizes)).astype(np.int64)
        rows = np.repeat(starts_C[drawn.ravel()], sizes) + within
        firsts = np.concatenate([[0], np.cumsum(sizes_C[drawn].sum(axis=1))[:-1]])
        total = np.add.reduceat(weights_N[rows], firsts)
        summed = np.add.reduceat(weighed_N[rows], firsts)
        # A resample without any weight (all of it in clusters not drawn) says nothing.
        means += (summed[total > 0] / total[total > 0]).tolist()
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def written_interval(estimate: Interval, sign: str = "") -> str:
    """`0.421 [0.390, 0.452]` of mean, low and high; `sign="+"` writes it where it is due."""
    mean, low, high = (format(value, f"{sign}.3f") for value in estimate)
    return f"{mean} [{low}, {high}]"


def _check(values_N: np.ndarray, confidence: float, resamples: int) -> None:
    if values_N.ndim != 1 or values_N.size == 0 or not np.isfinite(values_N).all():
        raise BadInput("A bootstrap interval needs a list of at least one finite number.")
    if not 0 < confidence < 1 or resamples < 1:
        raise BadInput(
            f"confidence must lie between 0 and 1 and resamples be at least 1; "
            f"got {confidence} and {resamples}."
        )
