"""Which scenarios a step asks, and that every reward reaches the rollout that earned it."""

from __future__ import annotations

from collections import Counter

import pytest

from memograd.grpo.batch import sample_groups, scenarios_of_step, score_groups
from memograd.rewards import RewardError, WeightedReward


def test_a_step_is_a_function_of_seed_and_step(scenarios) -> None:
    first, again, other = (
        [
            scenario.id
            for step in range(1, 6)
            for scenario in scenarios_of_step(scenarios, step=step, count=2, seed=seed)
        ]
        for seed in (0, 0, 1)
    )
    assert first == again != other


def test_an_epoch_asks_every_scenario_once(scenarios) -> None:
    asked = [
        scenario.id
        for step in range(1, 11)
        for scenario in scenarios_of_step(scenarios, step=step, count=2, seed=3)
    ]
    for epoch in range(4):
        assert sorted(asked[epoch * 5 : epoch * 5 + 5]) == ["q0", "q1", "q2", "q3", "q4"]


def sampled(policy, scenarios):
    return sample_groups(
        policy,
        scenarios,
        step=7,
        num_generations=3,
        temperature=1.0,
        max_completion_length=4,
        generator=None,
    )


def test_rewards_stay_with_their_rollouts(tiny_policy, scenarios) -> None:
    groups, trees = sampled(tiny_policy, scenarios[:2])
    lengths = WeightedReward(
        "length", lambda prompts, completions, **columns: [float(len(c)) for c in completions], 2.0
    )
    experience = score_groups(groups, trees, [lengths])
    for group, rewards in zip(experience.groups, experience.rewards_BG, strict=True):
        assert [2.0 * len(r.completion) for r in group.rollouts] == rewards.tolist()
    ids = Counter(rollout.id for rollout in experience.rollouts)
    assert set(ids.values()) == {1}
    for group, tree in zip(groups, trees, strict=True):
        for row, rollout in enumerate(group.rollouts):
            (turn,) = rollout.turns
            assert turn.action_ids == tree.tree.branch(row)
            assert list(turn.observation_ids) == tiny_policy.encode(group.scenario.messages)


@pytest.mark.parametrize("bad", [None, float("nan"), float("inf")])
def test_a_reward_that_is_no_number_names_function_and_rollout(tiny_policy, scenarios, bad) -> None:
    groups, trees = sampled(tiny_policy, scenarios[:2])

    def broken(prompts, completions, **columns):
        return [0.5] * 4 + [bad] + [0.5]

    with pytest.raises(RewardError, match=r"broken.*step 7, group 1 \(q1\), rollout 1"):
        score_groups(groups, trees, [WeightedReward("broken", broken)])
