"""The replay buffer survives a checkpoint to the bit, and the file holds nothing but data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from test_experience import made_up

from memograd.grpo.batch import Draw, score_rows
from memograd.grpo.drawing import SingleTurn
from memograd.grpo.experience import Experience
from memograd.grpo.objective import Objective
from memograd.grpo.replay import KeptGroup, kept_groups, plain_groups
from memograd.rewards import WeightedReward
from memograd.rollout import Message, Rollout, Scenario


def through_a_file(kept: list[KeptGroup], scenarios, path) -> list[KeptGroup]:
    torch.save(plain_groups(kept), path)
    return kept_groups(torch.load(path, weights_only=True), scenarios)


def arrays(experience: Experience) -> list[np.ndarray]:
    found = [experience.compared_K, experience.advantages.advantages_K]
    for tree, rows in zip(experience.trees, experience.old_logprobs, strict=True):
        found += [tree.tokens_N, tree.parents_N, *tree.branches, *tree.scored, *rows]
    found += [turn.logprobs for rollout in experience.rollouts for turn in rollout.turns]
    return found


def in_words(rollout: Rollout) -> list[object]:
    """Everything but arrays."""
    turns = [
        (turn.observation_ids, turn.action_ids, turn.stop_reason, turn.starts_row)
        for turn in rollout.turns
    ]
    return [rollout.id, rollout.completion, rollout.reward, rollout.stop_reason, turns]


def check_equal(kept: list[KeptGroup], again: list[KeptGroup]) -> None:
    assert [(one.step, one.uses) for one in again] == [(one.step, one.uses) for one in kept]
    for before, after in zip(kept, again, strict=True):
        old, new = before.experience, after.experience
        for a, b in zip(arrays(old), arrays(new), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        assert [tree.trunk for tree in new.trees] == [tree.trunk for tree in old.trees]
        assert new.rollouts_of_tree == old.rollouts_of_tree
        assert new.rewards == old.rewards
        assert new.groups[0].scenario is old.groups[0].scenario
        for a, b in zip(old.rollouts, new.rollouts, strict=True):
            assert in_words(a) == in_words(b)


def test_sampled_answers(tiny_policy, scenarios, tmp_path) -> None:
    drawn = SingleTurn(tiny_policy, num_generations=3, max_completion_length=4)(
        scenarios[:2],
        Draw(1, generator=torch.Generator().manual_seed(0), sizes=[2, 5]),
    )
    experience = score_rows(
        drawn.groups,
        [
            WeightedReward("place", lambda completions: [k / 3 for k in range(len(completions))]),
            WeightedReward("never", lambda completions: [None for _ in completions]),
        ],
        Objective(),
        trees=drawn.trees,
        rollouts_of_tree=drawn.rollouts_of_tree,
        old_logprobs=drawn.old_logprobs,
    )
    kept = [KeptGroup(experience.single(group, "group"), 3 + group, group) for group in range(2)]
    check_equal(kept, through_a_file(kept, scenarios, tmp_path / "state"))


def test_episodes_of_several_rows_and_what_only_they_have(tmp_path) -> None:
    """Rows in several trees; an observation that is not scored; messages are left out."""
    experience = made_up([[0.0, 1.0]], rows=2)
    rollouts = tuple(
        replace(
            rollout,
            turns=(rollout.turns[0], replace(rollout.turns[1], starts_row=False)),
            reward=0.25,
            stopped_by="turns",
            messages=(Message(role="user", content="你"),),
            opening_length=1,
        )
        for rollout in experience.rollouts
    )
    tree = replace(
        experience.trees[0],
        scored=tuple(np.array([False, True]) for _ in experience.trees[0].branches),
    )
    experience = replace(
        experience,
        groups=(replace(experience.groups[0], rollouts=rollouts),),
        trees=(tree, experience.trees[1]),
    )
    scenario = experience.groups[0].scenario
    kept = [KeptGroup(experience, 2)]
    again = through_a_file(kept, [Scenario("other", ()), scenario], tmp_path / "state")
    check_equal(kept, again)
    turn = again[0].experience.rollouts[0].turns[1]
    assert not turn.starts_row and turn.stop_reason == "end"
    assert again[0].experience.rollouts[0].messages == ()
