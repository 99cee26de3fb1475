"""How sure a mean over questions is: the percentile bootstrap (Efron 1979).

Draw as many questions as there are, with replacement, many times; the middle 95% of the means of
those draws is the interval. To compare two methods on the same questions, bootstrap the
*differences* per question: how hard a question is cancels out, so the interval is far narrower than
two separate ones suggest.

The interval is about other questions of the same kind. It says nothing about another training seed,
and it is too narrow below about twenty questions. Invariant: same values and seed, same interval;
coverage is checked by simulation in `tests/evaluation/test_bootstrap.py`. May import: errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memograd.errors import BadInput


def bootstrap_interval(
    values: Sequence[float], *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of `values` [n], as (low, high).

    Raises:
        BadInput: no values, one that is not finite, `confidence` outside (0, 1), or no resamples.
    """
    values_N = np.asarray(values, dtype=np.float64)
    if values_N.ndim != 1 or values_N.size == 0 or not np.isfinite(values_N).all():
        raise BadInput("A bootstrap interval needs a list of at least one finite number.")
    if not 0 < confidence < 1 or resamples < 1:
        raise BadInput(
            f"confidence must lie between 0 and 1 and resamples be at least 1; "
            f"got {confidence} and {resamples}."
        )
    rng = np.random.default_rng(seed)
    n = values_N.size
    # One draw at a time: memory stays at n however many resamples are asked for.
    means = [values_N[rng.integers(0, n, size=n)].mean() for _ in range(resamples)]
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def paired_bootstrap_difference(
    before: Sequence[float],
    after: Sequence[float],
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Mean of `after - before` over the same questions with its interval, as (mean, low, high).

    Raises:
        BadInput: the lists differ in length, or as for `bootstrap_interval`.
    """
    if len(before) != len(after):
        raise BadInput(
            f"Cannot pair {len(before)} values with {len(after)}; one each per question."
        )
    differences = np.subtract(after, before, dtype=np.float64)
    low, high = bootstrap_interval(
        differences.tolist(), confidence=confidence, resamples=resamples, seed=seed
    )
    return float(differences.mean()), low, high
