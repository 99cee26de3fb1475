"""Attempts of several ranks are numbered as if one had drawn them all."""

from __future__ import annotations

import torch

from memograd.grpo.batch import Draw
from memograd.grpo.drawing import Attempts, SingleTurn, join_attempts


def drawn(policy, scenarios, first: int = 0) -> Attempts:
    drawing = SingleTurn(policy, num_generations=2, max_completion_length=3)
    generator = torch.Generator().manual_seed(0)
    return drawing(scenarios, Draw(4, generator=generator, attempt=1, first=first))


def test_parts_are_numbered_and_named_through(tiny_policy, scenarios) -> None:
    whole = drawn(tiny_policy, scenarios[:3])
    joined = join_attempts(
        [drawn(tiny_policy, scenarios[:2]), drawn(tiny_policy, scenarios[2:3], first=2)]
    )
    assert joined.rollouts_of_tree == whole.rollouts_of_tree == ((0, 1), (2, 3), (4, 5))
    assert [group.scenario.id for group in joined.groups] == ["q0", "q1", "q2"]
    names = [[rollout.id for rollout in group.rollouts] for group in joined.groups]
    assert names == [[rollout.id for rollout in group.rollouts] for group in whole.groups]
    assert names[2][1] == "step 4, attempt 2, group 2 (q2), rollout 1"
    for group, tree, old in zip(joined.groups, joined.trees, joined.old_logprobs, strict=True):
        for row, rollout in enumerate(group.rollouts):
            assert tree.branch(row) == rollout.turns[0].action_ids
            assert (old[row] == rollout.turns[0].logprobs).all()
