"""Generalised advantage estimation and the value loss against the formulas written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from memograd.grpo.advantage import advantages_by_gae, value_losses

numbers = st.floats(-3, 3, width=16)
rollouts = st.lists(
    st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6), min_size=1, max_size=4
)
shares = st.floats(0.125, 1, width=16)


def flat(made: list[list[tuple[float, float]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    pairs = np.array([pair for rollout in made for pair in rollout], dtype=np.float64)
    last_N = [place == len(rollout) - 1 for rollout in made for place in range(len(rollout))]
    return pairs[:, 0], pairs[:, 1], np.array(last_N)


def plain(rewards: list[float], values: list[float], gamma: float, lam: float) -> list[float]:
    """A_t as the sum over k of (gamma lambda)^k delta_(t+k), every term by itself."""
    following = [*values[1:], 0.0]
    deltas = [r + gamma * n - v for r, n, v in zip(rewards, following, values, strict=True)]
    return [
        sum((gamma * lam) ** k * delta for k, delta in enumerate(deltas[t:]))
        for t in range(len(deltas))
    ]


@given(made=rollouts, gamma=shares, gae_lambda=shares)
def test_advantages_equal_the_sum_of_discounted_surprises(made, gamma, gae_lambda) -> None:
    found = advantages_by_gae(*flat(made), gamma=gamma, gae_lambda=gae_lambda)
    expected = [
        advantage
        for rollout in made
        for advantage in plain(*map(list, zip(*rollout, strict=True)), gamma, gae_lambda)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@given(made=rollouts, gamma=shares)
def test_the_two_ends_of_lambda(made, gamma) -> None:
    """1: all that follows, discounted, minus the value; 0: one token's surprise."""
    rewards_N, values_N, last_N = flat(made)
    whole = advantages_by_gae(rewards_N, values_N, last_N, gamma=gamma, gae_lambda=1.0)
    short = advantages_by_gae(rewards_N, values_N, last_N, gamma=gamma, gae_lambda=0.0)
    following = 0.0
    for token in reversed(range(len(rewards_N))):
        following = rewards_N[token] + (0.0 if last_N[token] else gamma * following)
        assert whole[token] == pytest.approx(following - values_N[token], abs=1e-9)
        next_value = 0.0 if last_N[token] else values_N[token + 1]
        surprise = rewards_N[token] + gamma * next_value - values_N[token]
        assert short[token] == pytest.approx(surprise, abs=1e-9)


@given(made=rollouts, gamma=shares, gae_lambda=shares)
def test_nothing_surprises_whoever_knows_the_values(made, gamma, gae_lambda) -> None:
    rewards_N, _, last_N = flat(made)
    exact_N = advantages_by_gae(
        rewards_N, np.zeros(len(rewards_N)), last_N, gamma=gamma, gae_lambda=1.0
    )
    found = advantages_by_gae(rewards_N, exact_N, last_N, gamma=gamma, gae_lambda=gae_lambda)
    np.testing.assert_allclose(found, 0, atol=1e-9)


def tensors(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    values, old, targets = torch.randn((3, 4, 5), generator=generator, dtype=torch.float64)
    return values, old, targets


def test_the_value_loss_equals_the_plain_formula() -> None:
    values, old, targets = tensors(0)
    found = value_losses(values, old, targets, epsilon=0.2)
    for place in np.ndindex(4, 5):
        v, o, t = (float(tensor[place]) for tensor in (values, old, targets))
        clipped = o + max(-0.2, min(0.2, v - o))
        expected = max((v - t) ** 2, (clipped - t) ** 2) / 2
        assert float(found[place]) == pytest.approx(expected, abs=1e-12)


def test_its_gradient_equals_finite_differences_and_stops_where_it_is_clipped() -> None:
    values, old, targets = tensors(1)
    leaf = values.clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda moved: value_losses(moved, old, targets, epsilon=0.2).sum(), leaf
    )
    value_losses(leaf, old, targets, epsilon=0.2).sum().backward()
    # It stops where the value is already nearer to its target than the bound is.
    bound = old + (values - old).clamp(-0.2, 0.2)
    nearer = (values - targets).abs() < (bound - targets).abs()
    assert leaf.grad is not None and nearer.any() and not nearer.all()
    assert torch.equal(leaf.grad == 0, nearer)
