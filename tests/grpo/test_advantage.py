"""Every advantage against a plain implementation, and what holds for all of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memograd.grpo.advantage import (
    GroupAdvantages,
    by_group,
    group_advantages,
    normalise_each,
)

numbers = st.floats(-5, 5, width=16)
rewards = st.lists(st.lists(numbers, min_size=2, max_size=6), min_size=1, max_size=4)
rectangles = arrays(
    np.float64, st.tuples(st.integers(1, 4), st.integers(2, 20)), elements=st.floats(-5, 5)
)
GROUP_BASELINES = ["group", "centred", "leave_one_out", "group_batch"]
ALL = [*GROUP_BASELINES, "batch"]


def compare(groups: Sequence[Sequence[float]], advantage: str = "group") -> GroupAdvantages:
    """The advantages of rewards that stand group by group, of any sizes."""
    rewards_K = np.concatenate([np.asarray(group, dtype=np.float64) for group in groups])
    return group_advantages(rewards_K, [len(group) for group in groups], advantage)


def plain(rewards_BG: list[list[float]], advantage: str) -> list[float]:
    """The formulas, number by number, with the standard library."""
    everything = [r for group in rewards_BG for r in group]
    centred = [r - statistics.fmean(group) for group in rewards_BG for r in group]
    found: list[float] = []
    for group in rewards_BG:
        mean = statistics.fmean(group)
        for index, r in enumerate(group):
            others = group[:index] + group[index + 1 :]
            found.append(
                {
                    "group": lambda r=r, g=group, m=mean: (r - m) / (statistics.stdev(g) + 1e-4),
                    "centred": lambda r=r, m=mean: r - m,
                    "leave_one_out": lambda r=r, o=others: r - statistics.fmean(o),
                    "batch": lambda r=r: (
                        (r - statistics.fmean(everything)) / (statistics.stdev(everything) + 1e-4)
                    ),
                    "group_batch": lambda r=r, m=mean: (r - m) / (statistics.stdev(centred) + 1e-4),
                }[advantage]()
            )
    return found


@pytest.mark.parametrize("advantage", ALL)
@given(groups=rewards)
def test_they_equal_the_plain_formulas(advantage: str, groups: list[list[float]]) -> None:
    found = compare(groups, advantage).advantages_K
    np.testing.assert_allclose(found, plain(groups, advantage), atol=1e-9)


@pytest.mark.parametrize("advantage", ALL)
@given(groups=rewards)
def test_they_sum_to_zero_and_ignore_a_constant(advantage: str, groups: list[list[float]]) -> None:
    advantages_K = compare(groups, advantage).advantages_K
    parts = by_group(advantages_K, [len(group) for group in groups])
    for part in [advantages_K] if advantage == "batch" else parts:
        np.testing.assert_allclose(part.sum(), 0, atol=1e-9)
    # A power of two shifts these half-precision values without rounding.
    shifted_K = compare([[r + 8.0 for r in group] for group in groups], advantage).advantages_K
    np.testing.assert_allclose(advantages_K, shifted_K, atol=1e-9)


@pytest.mark.parametrize("advantage", ["group", "centred", "leave_one_out"])
@given(groups=rewards)
def test_a_group_takes_nothing_from_others(advantage: str, groups: list[list[float]]) -> None:
    alone = [compare([group], advantage).advantages_K for group in groups]
    np.testing.assert_array_equal(compare(groups, advantage).advantages_K, np.concatenate(alone))


def vectorised(rewards_BG: np.ndarray, advantage: str) -> np.ndarray:
    """Groups of one size as a rectangle, all at once."""
    centred_BG = rewards_BG - rewards_BG.mean(axis=1, keepdims=True)
    centred_BG[np.ptp(rewards_BG, axis=1) == 0] = 0.0
    size = rewards_BG.shape[1]
    if advantage == "group":
        return centred_BG / (rewards_BG.std(axis=1, ddof=1, keepdims=True) + 1e-4)
    if advantage == "leave_one_out":
        return centred_BG * (size / (size - 1))
    if advantage == "batch":
        return vectorised(rewards_BG.reshape(1, -1), "group").reshape(rewards_BG.shape)
    return centred_BG / (centred_BG.std(ddof=1) + 1e-4) if "_" in advantage else centred_BG


@pytest.mark.parametrize("advantage", ALL)
@given(rewards_BG=rectangles)
def test_groups_of_one_size_have_the_numbers_of_a_rectangle_to_the_bit(
    advantage: str, rewards_BG: np.ndarray
) -> None:
    found = compare(rewards_BG, advantage)
    np.testing.assert_array_equal(found.advantages_K, vectorised(rewards_BG, advantage).flatten())


def test_a_hand_computed_group() -> None:
    # mean 0.5, deviations -0.5 -0.5 0.5 0.5, sample std sqrt(1/3)
    advantages = compare([[0.0, 0.0, 1.0, 1.0]]).advantages_K
    np.testing.assert_allclose(advantages, [-0.86588, -0.86588, 0.86588, 0.86588], atol=1e-4)


@pytest.mark.parametrize("advantage", GROUP_BASELINES)
@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3])
def test_equal_rewards_are_exactly_zero_and_not_varied(advantage: str, value: float) -> None:
    result = compare([[value] * 8, [0, 0, 0, 1.0]], advantage)
    assert (result.advantages_K[:8] == 0).all()
    assert result.varied_B.tolist() == [False, True]


def test_a_batch_baseline_tells_a_good_group_from_a_bad_one() -> None:
    result = compare([[1.0, 1.0], [0.0, 0.0, 0.0]], "batch")
    assert (result.advantages_K[:2] > 0).all() and (result.advantages_K[2:] < 0).all()
    assert not result.varied_B.any()
    assert (compare([[1 / 3] * 2, [1 / 3] * 2], "batch").advantages_K == 0).all()


@pytest.mark.parametrize("advantage", GROUP_BASELINES)
def test_a_group_of_one_is_refused(advantage: str) -> None:
    with pytest.raises(ValueError, match="needs two rollouts"):
        compare([[0.0, 1.0], [0.0]], advantage)


def test_a_group_of_one_is_enough_for_a_batch_baseline() -> None:
    result = compare([[0.0], [1.0]], "batch").advantages_K
    np.testing.assert_allclose(result, [-0.70701, 0.70701], atol=1e-4)
    with pytest.raises(ValueError, match="needs two rollouts"):
        compare([[0.0]], "batch")


def test_sizes_that_are_not_those_of_the_rewards_are_refused() -> None:
    with pytest.raises(ValueError, match=r"3 rewards are not groups of \[2, 2\]"):
        group_advantages(np.zeros(3), [2, 2])


@given(rewards)
def test_one_reward_normalised_alone_is_the_group_advantage(groups: list[list[float]]) -> None:
    rewards_K, sizes_B = np.concatenate(groups), [len(group) for group in groups]
    expected_K = 2 * group_advantages(rewards_K, sizes_B).advantages_K
    np.testing.assert_allclose(normalise_each([rewards_K], sizes_B, [2.0]), expected_K)


def test_a_reward_that_does_not_apply_is_left_out() -> None:
    nan = np.nan
    summed_K = normalise_each([np.array([0.0, 1.0, nan, nan, 3.0])], [3, 2], [1.0])
    half = 0.5 / (0.5**0.5 + 1e-4)
    np.testing.assert_allclose(summed_K, [-half, half, 0.0, 0.0, 0.0])
