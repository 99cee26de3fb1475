"""The bootstrap on cases with known answers, against scipy, and its coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.evaluation import bootstrap_interval, paired_bootstrap_difference
from memograd.evaluation.bootstrap import clustered_interval

SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def test_constant_values_have_no_width() -> None:
    assert bootstrap_interval([0.25] * 7) == (0.25, 0.25)
    assert bootstrap_interval([0.5]) == (0.5, 0.5)


def test_two_values_reach_both_ends() -> None:
    # Means of two draws are 0, 1/2, 1 with probability 1/4, 1/2, 1/4: the tails hold 0 and 1,
    # and the middle 40% holds 1/2 only.
    assert bootstrap_interval([0, 1]) == (0, 1)
    assert bootstrap_interval([0, 1], confidence=0.4) == (0.5, 0.5)


def test_coin_flips_match_the_binomial_quantiles() -> None:
    # 100 coins, half heads: the resampled count is Binomial(100, 1/2), 95% in [40, 60].
    low, high = bootstrap_interval([0.0, 1.0] * 50, resamples=4000)
    assert low == pytest.approx(0.40, abs=0.011)
    assert high == pytest.approx(0.60, abs=0.011)


def test_agrees_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(3).exponential(size=60)
    low, high = bootstrap_interval(values.tolist(), resamples=4000)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(5)
    ).confidence_interval
    assert (low, high) == pytest.approx(tuple(theirs), abs=0.03)


def test_covers_the_true_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    hits = 0
    for seed in range(300):
        values = rng.beta(0.5, 1.0, size=60)  # like F1 scores: many near 0, some near 1; mean 1/3
        low, high = bootstrap_interval(values.tolist(), resamples=300, seed=seed)
        hits += low <= 1 / 3 <= high
    assert 0.90 <= hits / 300 <= 0.98


@given(SCORES, st.integers(0, 5))
def test_stays_within_the_values_and_repeats(values: list[float], seed: int) -> None:
    low, high = bootstrap_interval(values, resamples=50, seed=seed)
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12
    assert (low, high) == bootstrap_interval(values, resamples=50, seed=seed)


@given(SCORES)
def test_moves_with_the_values(values: list[float]) -> None:
    low, high = bootstrap_interval(values, resamples=50)
    moved = bootstrap_interval([2 * value + 1 for value in values], resamples=50)
    assert moved == pytest.approx((2 * low + 1, 2 * high + 1))


def test_more_confidence_is_wider() -> None:
    values = np.random.default_rng(0).random(40).tolist()
    low_80, high_80 = bootstrap_interval(values, confidence=0.8)
    low_99, high_99 = bootstrap_interval(values, confidence=0.99)
    assert low_99 < low_80 < high_80 < high_99


def test_pairing_removes_how_hard_the_questions_are() -> None:
    rng = np.random.default_rng(1)
    hardness = rng.random(50)
    before = hardness.tolist()
    after = (hardness + 0.1 + rng.normal(0, 0.01, size=50)).tolist()
    mean, low, high = paired_bootstrap_difference(before, after)
    assert mean == pytest.approx(np.mean(after) - np.mean(before))
    assert 0.09 < low < mean < high < 0.11
    unpaired_low, unpaired_high = bootstrap_interval(after)
    assert high - low < 0.2 * (unpaired_high - unpaired_low)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12))
def test_swapping_before_and_after_flips_the_sign(pairs: list[tuple[float, float]]) -> None:
    before, after = [a for a, _ in pairs], [b for _, b in pairs]
    mean, low, high = paired_bootstrap_difference(before, after, resamples=51)
    flipped = paired_bootstrap_difference(after, before, resamples=51)
    assert flipped == pytest.approx((-mean, -high, -low), abs=1e-12)
    assert paired_bootstrap_difference(before, before, resamples=20) == (0, 0, 0)


@pytest.mark.parametrize("values", [[], [float("nan")], [1.0, float("inf")]])
def test_values_must_be_finite_numbers(values: list[float]) -> None:
    with pytest.raises(BadInput, match="at least one finite number"):
        bootstrap_interval(values)


def test_settings_must_make_sense() -> None:
    for settings in ({"confidence": 1.0}, {"confidence": 0.0}, {"resamples": 0}):
        with pytest.raises(BadInput, match="confidence must lie between 0 and 1"):
            bootstrap_interval([1.0], **settings)  # type: ignore[arg-type]


def test_pairs_must_match() -> None:
    with pytest.raises(BadInput, match="Cannot pair 1 values with 2"):
        paired_bootstrap_difference([1.0], [1.0, 2.0])


def test_one_cluster_is_the_bootstrap_over_values() -> None:
    values = np.random.default_rng(2).random(40).tolist()
    clustered = clustered_interval(values, ["a"] * 40, resamples=3000)
    assert clustered == pytest.approx(bootstrap_interval(values, resamples=3000), abs=0.01)


def test_equal_questions_of_a_conversation_count_once() -> None:
    """Ten copies of each value in a cluster of its own say no more than the values."""
    values = np.random.default_rng(4).random(8).tolist()
    copies = [value for value in values for _ in range(10)]
    clusters = [number for number in range(8) for _ in range(10)]
    low, high = clustered_interval(copies, clusters, resamples=4000)
    assert (low, high) == pytest.approx(bootstrap_interval(values, resamples=4000), abs=0.02)
    plain = bootstrap_interval(copies)
    assert plain[1] - plain[0] < 0.6 * (high - low)


def test_clustered_intervals_cover_where_plain_ones_do_not() -> None:
    rng = np.random.default_rng(12)
    hits = {"clustered": 0, "plain": 0}
    for seed in range(150):
        hardness = rng.uniform(0, 1, size=20)
        values = np.clip(rng.normal(hardness[:, None], 0.1, size=(20, 15)), -1, 2).ravel().tolist()
        clusters = [number for number in range(20) for _ in range(15)]
        low, high = clustered_interval(values, clusters, resamples=200, seed=seed)
        hits["clustered"] += low <= 0.5 <= high
        low, high = bootstrap_interval(values, resamples=200, seed=seed)
        hits["plain"] += low <= 0.5 <= high
    assert 0.86 <= hits["clustered"] / 150 <= 0.99
    assert hits["plain"] / 150 < 0.6


def test_weights_count() -> None:
    low, high = clustered_interval([0.0, 1.0, 1.0], "abc", weights=[0.0, 1.0, 2.0])
    assert (low, high) == (1.0, 1.0)
    with pytest.raises(BadInput, match="not all 0"):
        clustered_interval([1.0], ["a"], weights=[0.0])
    with pytest.raises(BadInput, match="needs its cluster and its weight; got 1 and 2"):
        clustered_interval([1.0, 0.0], ["a"])
    with pytest.raises(BadInput, match="at least one finite number"):
        clustered_interval([], [])


@given(SCORES, st.integers(0, 5))
def test_clustered_intervals_repeat_and_stay_within(values: list[float], seed: int) -> None:
    clusters = [row % 3 for row in range(len(values))]
    low, high = clustered_interval(values, clusters, resamples=50, seed=seed)
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12
    assert (low, high) == clustered_interval(values, clusters, resamples=50, seed=seed)
