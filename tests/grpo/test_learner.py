"""The gradient step on a real (tiny) model."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from memograd.errors import MemogradError
from memograd.grpo.batch import sample_groups, score_groups
from memograd.grpo.learner import Objective, learn
from memograd.rewards import WeightedReward

OBJECTIVE = Objective(
    epsilon=0.2, beta=0.1, entropy_coef=0.01, temperature=1.0, num_iterations=1, max_grad_norm=1e9
)


def experience(policy, scenarios, reward):
    groups, sampled = sample_groups(
        policy,
        scenarios,
        step=1,
        num_generations=4,
        temperature=1.0,
        max_completion_length=5,
        generator=torch.Generator().manual_seed(0),
    )
    return score_groups(groups, sampled, [WeightedReward("reward", reward)])


def by_index(prompts, completions, **columns):
    return [float(index % 4) for index in range(len(completions))]


def gradient(policy, batch) -> torch.Tensor:
    """The accumulated gradient, seen by an optimiser that moves nothing."""
    seen: list[torch.Tensor] = []

    class Spy(torch.optim.SGD):
        def step(self, closure=None):
            seen.append(torch.cat([p.grad.flatten() for p in policy.parameters()]).clone())

    learn(policy, Spy(policy.parameters(), lr=0.0), batch, OBJECTIVE)
    return seen[0]


def test_micro_batches_change_nothing_but_rounding(tiny_policy, scenarios, monkeypatch) -> None:
    batch = experience(tiny_policy, scenarios[:4], by_index)
    gradients = []
    for pieces in ([[0, 1, 2, 3]], [[2], [0, 3], [1]], [[3], [2], [1], [0]]):
        monkeypatch.setattr(tiny_policy, "microbatches", lambda trees, pieces=pieces: pieces)
        gradients.append(gradient(tiny_policy, batch))
    assert gradients[0].norm() > 1e-3
    for other in gradients[1:]:
        torch.testing.assert_close(other, gradients[0], atol=1e-6, rtol=1e-4)


def test_tree_and_rows_give_the_same_gradient(tiny_policy, scenarios) -> None:
    batch = experience(tiny_policy, scenarios[:4], by_index)
    tree = gradient(tiny_policy, batch)
    tiny_policy.forward = "rows"
    torch.testing.assert_close(gradient(tiny_policy, batch), tree, atol=1e-6, rtol=1e-4)


def test_a_group_without_differences_is_skipped(tiny_policy, scenarios) -> None:
    """It adds no gradient, and the other groups keep their share of the loss."""

    def first_group_equal(prompts, completions, **columns):
        return [0.3] * 4 + [0.0, 1.0, 2.0, 3.0]

    batch = experience(tiny_policy, scenarios[:2], first_group_equal)
    assert batch.advantages.informative_B.tolist() == [False, True]
    skipped = gradient(tiny_policy, batch)
    alone = experience(tiny_policy, scenarios[:2], first_group_equal)
    object.__setattr__(alone.advantages, "informative_B", np.array([True, True]))
    # At the start the policy is its reference, so the KL term has no gradient, and without an
    # entropy bonus a skipped group would have added exactly nothing.
    plain = Objective(**{**OBJECTIVE.__dict__, "entropy_coef": 0.0})
    update = learn(tiny_policy, torch.optim.SGD(tiny_policy.parameters(), lr=0.0), alone, plain)
    again = learn(tiny_policy, torch.optim.SGD(tiny_policy.parameters(), lr=0.0), batch, plain)
    assert update.grad_norm == pytest.approx(again.grad_norm, rel=1e-4)
    assert skipped.norm() > 0


def test_only_equal_rewards_move_nothing(tiny_policy, scenarios) -> None:
    batch = experience(tiny_policy, scenarios[:2], lambda prompts, completions, **c: [1.0] * 8)
    before = [p.detach().clone() for p in tiny_policy.parameters()]
    update = learn(
        tiny_policy, torch.optim.AdamW(tiny_policy.parameters(), lr=1.0), batch, OBJECTIVE
    )
    assert (update.loss, update.grad_norm, update.kl) == (0.0, 0.0, None)
    assert all(torch.equal(a, b) for a, b in zip(before, tiny_policy.parameters(), strict=True))


def test_old_log_probabilities_are_the_samplers(tiny_policy, scenarios) -> None:
    """On the first pass nothing is clipped; after a large step on the same batch something is."""
    batch = experience(tiny_policy, scenarios[:4], by_index)
    optimizer = torch.optim.SGD(tiny_policy.parameters(), lr=5.0)
    assert learn(tiny_policy, optimizer, batch, OBJECTIVE).clip_fraction == 0.0
    assert learn(tiny_policy, optimizer, batch, OBJECTIVE).clip_fraction > 0.0


def test_a_gradient_that_is_not_finite_stops_before_the_weights_move(
    tiny_policy, scenarios
) -> None:
    batch = experience(tiny_policy, scenarios[:2], by_index)
    batch.advantages.advantages_BG[1, 2] = np.nan
    before = [p.detach().clone() for p in tiny_policy.parameters()]
    with pytest.raises(MemogradError, match=r"not finite.*q0, q1"):
        learn(tiny_policy, torch.optim.AdamW(tiny_policy.parameters()), batch, OBJECTIVE)
    assert all(torch.equal(a, b) for a, b in zip(before, tiny_policy.parameters(), strict=True))
