"""Ratios by hand, where they clip, and what their gradients are."""

from __future__ import annotations

import math

import pytest
import torch

from memograd.grpo.loss import LossTerms, importance_weights, surrogate


def run(
    ratio: str,
    ratios: list[list[float]],
    advantages: list[float],
    rollouts: list[int] | None = None,
):
    """The surrogate of tokens with these ratios, and its gradient by log-probability."""
    logprobs_RT = torch.tensor(ratios, dtype=torch.float64).log().requires_grad_()
    found = surrogate(
        LossTerms(ratio, epsilon=0.2, epsilon_high=0.4),
        logprobs_RT=logprobs_RT,
        old_logprobs_RT=torch.zeros_like(logprobs_RT),
        advantages_RT=torch.tensor(advantages, dtype=torch.float64)[:, None],
        mask_RT=torch.ones_like(logprobs_RT).bool(),
        rollouts_R=torch.tensor(rollouts if rollouts else range(len(ratios))),
    )
    (gradient,) = torch.autograd.grad(found.objective_RT.sum(), logprobs_RT)
    return found, gradient


def test_tokens_are_clipped_where_the_objective_would_gain_by_going_on() -> None:
    found, gradient = run("token", [[0.5, 1.3, 1.5], [0.5, 1.3, 1.5]], [2.0, -2.0])
    torch.testing.assert_close(
        found.objective_RT,
        torch.tensor([[1.0, 2.6, 2.8], [-1.6, -2.6, -3.0]], dtype=torch.float64),
    )
    assert found.clipped_RT.tolist() == [[False, False, True], [True, False, False]]
    torch.testing.assert_close(
        gradient, torch.tensor([[1.0, 2.6, 0.0], [0.0, -2.6, -3.0]], dtype=torch.float64)
    )


def test_a_sequence_has_one_ratio_and_is_clipped_as_one() -> None:
    found, gradient = run("sequence", [[0.5, 2.0, 1.0], [2.0, 2.0, 2.0]], [1.0, 1.0])
    torch.testing.assert_close(
        found.ratio_RT, torch.tensor([[1.0] * 3, [2.0] * 3], dtype=torch.float64)
    )
    assert found.clipped_RT.tolist() == [[False] * 3, [True] * 3]
    # Three tokens share each of the three equal terms.
    torch.testing.assert_close(gradient, torch.tensor([[1.0] * 3, [0.0] * 3], dtype=torch.float64))


def test_a_product_is_the_ratio_of_the_whole_answer() -> None:
    found, gradient = run("product", [[0.9, 1.1, 1.2]], [1.0])
    whole = 0.9 * 1.1 * 1.2
    assert found.ratio_RT[0].tolist() == pytest.approx([whole] * 3)
    assert gradient[0].tolist() == pytest.approx([3 * whole] * 3)


@pytest.mark.parametrize("ratio", ["sequence", "product"])
def test_rows_of_one_rollout_share_its_ratio(ratio: str) -> None:
    whole, _ = run(ratio, [[0.9, 1.1, 1.2, 0.7]], [1.0])
    split, _ = run(ratio, [[1.2, 0.7], [5.0, 5.0], [0.9, 1.1]], [1.0] * 3, rollouts=[7, 2, 7])
    assert split.ratio_RT[[0, 2]].flatten().tolist() == pytest.approx(whole.ratio_RT[0].tolist())


def test_a_weight_keeps_every_gradient_and_bounds_it() -> None:
    found, gradient = run("weight", [[0.1, 1.0, 3.0]], [2.0])
    torch.testing.assert_close(gradient, torch.tensor([[0.2, 2.0, 2.8]], dtype=torch.float64))
    assert found.clipped_RT.tolist() == [[False, False, True]]


@pytest.mark.parametrize("ratio", ["token", "sequence", "weight"])
def test_on_policy_all_have_the_policy_gradient(ratio: str) -> None:
    _, gradient = run(ratio, [[1.0] * 4, [1.0] * 4], [0.5, -1.5])
    torch.testing.assert_close(gradient, torch.tensor([[0.5] * 4, [-1.5] * 4], dtype=torch.float64))


def test_importance_weights_are_capped_and_carry_no_gradient() -> None:
    old = torch.tensor([[-1.0, -1.0, -1.0]], requires_grad=True)
    sampler = torch.tensor([[-1.0, -3.0, -0.5]])
    weights = importance_weights(old, sampler, cap=2.0)
    assert weights.tolist()[0] == pytest.approx([1.0, 2.0, math.exp(-0.5)])
    assert not weights.requires_grad
