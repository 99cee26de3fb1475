"""Returns and generalised advantages of walks, against sums written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.tasks.memory_ops.learning.algorithms import discounted_returns, gae


def followers(lengths: list[int]) -> np.ndarray:
    rows, start = [], 0
    for length in lengths:
        rows += [*range(start + 1, start + length), -1]
        start += length
    return np.array(rows)


@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    gamma=st.floats(0, 1),
    lambda_=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_equal_sums_written_out(
    lengths: list[int], gamma: float, lambda_: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rewards, values = rng.normal(size=sum(lengths)), rng.normal(size=sum(lengths))
    following = followers(lengths)
    start, returns, advantages = 0, [], []
    for length in lengths:
        r = rewards[start : start + length]
        v = np.append(values[start : start + length], 0.0)
        delta = r + gamma * v[1:] - v[:-1]
        for t in range(length):
            ahead = range(length - t)
            returns.append(sum(gamma**k * r[t + k] for k in ahead))
            advantages.append(sum((gamma * lambda_) ** k * delta[t + k] for k in ahead))
        start += length
    assert np.allclose(discounted_returns(rewards, following, gamma), returns)
    found = gae(rewards, values, following, gamma=gamma, lambda_=lambda_)
    assert np.allclose(found, advantages)


def test_with_lambda_one_gae_is_return_minus_value() -> None:
    rewards, values = np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.25, 1.0])
    following = np.array([1, 2, -1])
    returns = discounted_returns(rewards, following, 0.5)
    assert returns.tolist() == [3.0, 4.0, 4.0]
    found = gae(rewards, values, following, gamma=0.5, lambda_=1.0)
    assert found == pytest.approx(returns - values)
