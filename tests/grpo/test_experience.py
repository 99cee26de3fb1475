"""Experience is taken apart and put together without mixing up rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from memograd.grpo.batch import score_rows
from memograd.grpo.experience import Experience, join
from memograd.grpo.loss import Objective
from memograd.rewards import WeightedReward
from memograd.rollout import Group, Rollout, Scenario, TokenTree, Turn


def made_up(
    rewards_BG: Sequence[Sequence[float]], *, name: str = "q", rows: int = 1, advantage="group"
) -> Experience:
    """Groups with these rewards; every rollout is `rows` equal rows, each in a tree per place."""
    groups, trees, rollouts_of_tree, old = [], [], [], []
    first = 0
    for index, rewards_G in enumerate(rewards_BG):
        size = len(rewards_G)
        answers = [(3 + row, 9) for row in range(size)]
        logprobs = [np.full(2, -float(first + row), dtype=np.float32) for row in range(size)]
        rollouts = tuple(
            Rollout(
                id=f"{name}{index}/{row}",
                turns=tuple(Turn((1, 2), answers[row], logprobs[row], "end") for _ in range(rows)),
                completion=str(reward),
            )
            for row, reward in enumerate(rewards_G)
        )
        groups.append(Group(Scenario(f"{name}{index}", ()), rollouts))
        for place in range(rows):
            trees.append(TokenTree.from_branches((place, 2), answers))
            rollouts_of_tree.append(tuple(range(first, first + size)))
            old.append(tuple(logprobs))
        first += size
    number = WeightedReward("number", lambda prompts, completions: [float(c) for c in completions])
    return score_rows(
        groups,
        [number],
        Objective(advantage=advantage),
        trees=trees,
        rollouts_of_tree=rollouts_of_tree,
        old_logprobs=old,
    )


def facts(experience: Experience) -> list[object]:
    """Everything that an experience says, in a form that compares."""
    return [
        [group.scenario.id for group in experience.groups],
        [rollout.id for rollout in experience.rollouts],
        [id(tree) for tree in experience.trees],
        experience.rollouts_of_tree,
        [[row.tolist() for row in rows] for rows in experience.old_logprobs],
        experience.rewards,
        experience.compared_K.tolist(),
        experience.advantages.advantages_K.tolist(),
        experience.advantages.varied_B.tolist(),
    ]


def test_the_groups_joined_are_the_experience() -> None:
    whole = made_up([[0, 1, 2], [1, 1], [5, 0, 0, 1]], rows=2)
    assert whole.sizes_B == (3, 2, 4)
    singles = [whole.single(group, "group") for group in range(3)]
    assert facts(join(singles, "group")) == facts(whole)
    assert singles[2].rollouts_of_tree == ((0, 1, 2, 3), (0, 1, 2, 3))
    assert singles[2].rewards.total == [5, 0, 0, 1]


def test_joined_groups_are_compared_anew() -> None:
    whole = made_up([[0, 1], [5, 5]], advantage="batch")
    parts = [whole.single(group, "batch") for group in (1, 0)]
    assert (parts[0].advantages.advantages_K == 0).all()
    joined = join(parts, "batch")
    there, here = np.split(whole.advantages.advantages_K, 2)
    np.testing.assert_allclose(joined.advantages.advantages_K, [*here, *there])


def test_tokens_are_counted_by_rollout_sampled_and_scored() -> None:
    experience = made_up([[0, 1], [2, 3, 4]], rows=3)
    assert experience.tokens_K.tolist() == experience.scored_K.tolist() == [6] * 5
    assert [experience.group_of(rollout) for rollout in range(5)] == [0, 0, 1, 1, 1]
    assert experience.fresh_K.tolist() == [True] * 5
    assert replace(experience, replayed=1).fresh_K.tolist() == [True, True, False, False, False]
