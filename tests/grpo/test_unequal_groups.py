"""Groups of different sizes: every rollout has its own reward, its group's baseline, its share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from test_drawing import EchoTask, drawing
from test_learner import PLAIN, gradient

from memograd.grpo.batch import Draw, score_rows
from memograd.grpo.distributed import World
from memograd.grpo.drawing import Attempts, SingleTurn, draw_share
from memograd.grpo.experience import Experience
from memograd.policy.language_model import LanguageModel
from memograd.rewards import WeightedReward

SIZES = [2, 5, 3]


def lengths(completions) -> list[float]:
    return [float(len(text)) + place % 3 for place, text in enumerate(completions)]


def attempts(policy, scenarios, sizes=SIZES, seed: int = 0) -> Attempts:
    return SingleTurn(policy, num_generations=4, max_completion_length=5)(
        scenarios[: len(sizes)],
        Draw(1, generator=torch.Generator().manual_seed(seed), sizes=sizes),
    )


def scored(drawn: Attempts, objective=PLAIN) -> Experience:
    return score_rows(
        drawn.groups,
        [WeightedReward("lengths", lengths)],
        objective,
        trees=drawn.trees,
        rollouts_of_tree=drawn.rollouts_of_tree,
        old_logprobs=drawn.old_logprobs,
    )


def check_numbering(drawn: Attempts, sizes: list[int]) -> None:
    """Rows belong to the rollouts whose tokens they hold, numbered group after group."""
    assert [len(group.rollouts) for group in drawn.groups] == sizes
    rollouts = [rollout for group in drawn.groups for rollout in group.rollouts]
    numbers = sorted(number for own in drawn.rollouts_of_tree for number in own)
    assert sorted(set(numbers)) == list(range(sum(sizes)))
    for tree, own in zip(drawn.trees, drawn.rollouts_of_tree, strict=True):
        for row, number in enumerate(own):
            scored_ids = np.asarray(tree.branch(row))[tree.scored[row]].tolist()
            actions = [token for turn in rollouts[number].turns for token in turn.action_ids]
            assert scored_ids == actions


def test_answers(tiny_policy, scenarios) -> None:
    drawn = attempts(tiny_policy, scenarios)
    check_numbering(drawn, SIZES)
    assert drawn.groups[1].rollouts[4].id == "step 1, group 1 (q1), rollout 4"
    experience = scored(drawn)
    assert experience.sizes_B == tuple(SIZES)
    completions = [rollout.completion for rollout in experience.rollouts]
    assert experience.rewards_K.tolist() == lengths(completions)
    assert [experience.group_of(k) for k in range(10)] == [0] * 2 + [1] * 5 + [2] * 3


def test_episodes(tiny_policy, tiny_config, scenarios, monkeypatch) -> None:
    """A random byte model hardly ever ends a turn by itself."""
    monkeypatch.setattr(LanguageModel, "end_ids", property(lambda self: frozenset(range(60, 258))))
    # Two or three turns, as the ids' lengths are even or odd.
    drawn = drawing(tiny_policy, tiny_config, EchoTask())(
        [replace(scenario, id="q" * turns) for turns, scenario in enumerate(scenarios[:3], 2)],
        Draw(1, 0.9, torch.Generator().manual_seed(1), SIZES),
    )
    check_numbering(drawn, SIZES)
    assert {len(rollout.turns) for group in drawn.groups for rollout in group.rollouts} >= {2, 3}


def test_ranks_draw_the_sizes_of_their_own_groups(tiny_policy, scenarios) -> None:
    for rank, own in [(0, [2]), (1, [5, 3])]:
        drawn = draw_share(
            World(rank, 2),
            SingleTurn(tiny_policy, num_generations=4, max_completion_length=2),
            scenarios[:3],
            Draw(1, sizes=SIZES),
        )
        assert [len(group.rollouts) for group in drawn.groups] == own


@pytest.mark.parametrize("advantage", ["group", "leave_one_out"])
@pytest.mark.parametrize("ratio", ["token", "sequence"])
def test_the_gradient_is_the_mean_over_rollouts(tiny_policy, scenarios, advantage, ratio) -> None:
    """So it is the mean of the groups' own gradients, weighted by how many rollouts they have."""
    objective = replace(PLAIN, advantage=advantage, ratio=ratio)
    whole = scored(attempts(tiny_policy, scenarios), objective)
    expected = sum(
        size / sum(SIZES) * gradient(tiny_policy, whole.single(group, advantage), objective)
        for group, size in enumerate(SIZES)
    )
    found = gradient(tiny_policy, whole, objective)
    assert found.norm() > 1e-3
    atol = 1e-6 * float(found.norm())
    torch.testing.assert_close(found, expected, atol=atol, rtol=1e-3)


def test_sizes_that_are_equal_draw_what_one_size_draws(tiny_policy, scenarios) -> None:
    given = attempts(tiny_policy, scenarios, [4] * 3)
    one_size = SingleTurn(tiny_policy, num_generations=4, max_completion_length=5)(
        scenarios[:3],
        Draw(1, generator=torch.Generator().manual_seed(0)),
    )
    for ours, theirs in zip(given.old_logprobs, one_size.old_logprobs, strict=True):
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(mine, other)
