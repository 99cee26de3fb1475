"""Advantages are relative to the group, and to nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memograd.grpo.advantage import group_advantages

rewards = arrays(
    np.float64, st.tuples(st.integers(1, 4), st.integers(2, 6)), elements=st.floats(-5, 5, width=16)
)


@given(rewards)
def test_they_sum_to_zero_and_ignore_a_constant(rewards_BG: np.ndarray) -> None:
    advantages_BG = group_advantages(rewards_BG).advantages_BG
    np.testing.assert_allclose(advantages_BG.sum(axis=1), 0, atol=1e-9)
    # A power of two shifts these half-precision values without rounding.
    shifted_BG = group_advantages(rewards_BG + 8.0).advantages_BG
    np.testing.assert_allclose(advantages_BG, shifted_BG, atol=1e-9)


@given(rewards)
def test_they_equal_the_formula_of_trl(rewards_BG: np.ndarray) -> None:
    """(r - mean) / (std + 1e-4) with torch's sample standard deviation."""
    r = torch.from_numpy(rewards_BG)
    expected = (r - r.mean(1, keepdim=True)) / (r.std(1, keepdim=True) + 1e-4)
    np.testing.assert_allclose(
        group_advantages(rewards_BG).advantages_BG, expected.numpy(), atol=1e-9
    )


def test_a_hand_computed_group() -> None:
    # mean 0.5, deviations -0.5 -0.5 0.5 0.5, sample std sqrt(1/3)
    advantages = group_advantages(np.array([[0.0, 0.0, 1.0, 1.0]])).advantages_BG
    np.testing.assert_allclose(advantages, [[-0.86588, -0.86588, 0.86588, 0.86588]], atol=1e-4)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3])
def test_equal_rewards_are_exactly_zero_and_not_informative(value: float) -> None:
    result = group_advantages(np.array([[value] * 8, [0, 0, 0, 0, 0, 0, 0, 1.0]]))
    assert (result.advantages_BG[0] == 0).all()
    assert result.informative_B.tolist() == [False, True]


def test_a_group_of_one_is_refused() -> None:
    with pytest.raises(ValueError, match="two rollouts"):
        group_advantages(np.zeros((3, 1)))
