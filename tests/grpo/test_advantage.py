"""Every advantage against a plain implementation, and what holds for all of them."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memograd.grpo.advantage import group_advantages, normalise_each

rewards = arrays(
    np.float64, st.tuples(st.integers(1, 4), st.integers(2, 6)), elements=st.floats(-5, 5, width=16)
)
GROUP_BASELINES = ["group", "centred", "leave_one_out", "group_batch"]
ALL = [*GROUP_BASELINES, "batch"]


def plain(rewards_BG: list[list[float]], advantage: str) -> list[list[float]]:
    """The formulas, number by number, with the standard library."""
    everything = [r for group in rewards_BG for r in group]
    centred = [r - statistics.fmean(group) for group in rewards_BG for r in group]
    found = []
    for group in rewards_BG:
        mean = statistics.fmean(group)
        row = []
        for index, r in enumerate(group):
            others = group[:index] + group[index + 1 :]
            row.append(
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
        found.append(row)
    return found


@pytest.mark.parametrize("advantage", ALL)
@given(rewards_BG=rewards)
def test_they_equal_the_plain_formulas(advantage: str, rewards_BG: np.ndarray) -> None:
    found = group_advantages(rewards_BG, advantage).advantages_BG
    np.testing.assert_allclose(found, plain(rewards_BG.tolist(), advantage), atol=1e-9)


@pytest.mark.parametrize("advantage", ALL)
@given(rewards_BG=rewards)
def test_they_sum_to_zero_and_ignore_a_constant(advantage: str, rewards_BG: np.ndarray) -> None:
    advantages_BG = group_advantages(rewards_BG, advantage).advantages_BG
    axis = None if advantage == "batch" else 1
    np.testing.assert_allclose(advantages_BG.sum(axis=axis), 0, atol=1e-9)
    # A power of two shifts these half-precision values without rounding.
    shifted_BG = group_advantages(rewards_BG + 8.0, advantage).advantages_BG
    np.testing.assert_allclose(advantages_BG, shifted_BG, atol=1e-9)


def test_a_hand_computed_group() -> None:
    # mean 0.5, deviations -0.5 -0.5 0.5 0.5, sample std sqrt(1/3)
    advantages = group_advantages(np.array([[0.0, 0.0, 1.0, 1.0]])).advantages_BG
    np.testing.assert_allclose(advantages, [[-0.86588, -0.86588, 0.86588, 0.86588]], atol=1e-4)


@pytest.mark.parametrize("advantage", GROUP_BASELINES)
@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3])
def test_equal_rewards_are_exactly_zero_and_not_varied(advantage: str, value: float) -> None:
    rewards_BG = np.array([[value] * 8, [0, 0, 0, 0, 0, 0, 0, 1.0]])
    result = group_advantages(rewards_BG, advantage)
    assert (result.advantages_BG[0] == 0).all()
    assert result.varied_B.tolist() == [False, True]


def test_a_batch_baseline_tells_a_good_group_from_a_bad_one() -> None:
    result = group_advantages(np.array([[1.0, 1.0], [0.0, 0.0]]), "batch")
    assert (result.advantages_BG[0] > 0).all() and (result.advantages_BG[1] < 0).all()
    assert not result.varied_B.any()
    assert (group_advantages(np.full((2, 2), 1 / 3), "batch").advantages_BG == 0).all()


@pytest.mark.parametrize("advantage", GROUP_BASELINES)
def test_a_group_of_one_is_refused(advantage: str) -> None:
    with pytest.raises(ValueError, match="needs two rollouts"):
        group_advantages(np.zeros((3, 1)), advantage)


def test_a_group_of_one_is_enough_for_a_batch_baseline() -> None:
    result = group_advantages(np.array([[0.0], [1.0]]), "batch").advantages_BG
    np.testing.assert_allclose(result, [[-0.70701], [0.70701]], atol=1e-4)
    with pytest.raises(ValueError, match="needs two rollouts"):
        group_advantages(np.zeros((1, 1)), "batch")


@given(rewards)
def test_one_reward_normalised_alone_is_the_group_advantage(rewards_BG: np.ndarray) -> None:
    np.testing.assert_allclose(
        normalise_each([rewards_BG], [2.0]), 2 * group_advantages(rewards_BG).advantages_BG
    )


def test_a_reward_that_does_not_apply_is_left_out() -> None:
    nan = np.nan
    summed_BG = normalise_each([np.array([[0.0, 1.0, nan], [nan, nan, 3.0]])], [1.0])
    half = 0.5 / (0.5**0.5 + 1e-4)
    np.testing.assert_allclose(summed_BG, [[-half, half, 0.0], [0.0, 0.0, 0.0]])
