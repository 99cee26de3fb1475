"""Which scenarios a step asks, that every reward reaches its rollout, and the length penalty."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from single_turn import score_groups

from memograd.grpo.advantage import by_group
from memograd.grpo.batch import (
    Draw,
    epoch_order,
    overlong_penalty,
    replacement_scenarios,
    sample_groups,
    scenarios_of_step,
)
from memograd.grpo.loss import Objective
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


def test_an_epoch_is_shuffled_once_and_as_it_ever_was(scenarios) -> None:
    """Runs that began before the order was remembered go on with the same questions."""
    epoch_order.cache_clear()
    asked = [
        scenario.id
        for step in range(1, 4)
        for scenario in scenarios_of_step(scenarios, step=step, count=4, seed=3)
    ]
    began = []
    for epoch in range(3):
        order = list(range(len(scenarios)))
        random.Random(f"3/{epoch}").shuffle(order)
        began += [scenarios[place].id for place in order]
    assert asked == began[:12]
    assert epoch_order.cache_info().misses == 3


def sampled(policy, scenarios):
    return sample_groups(
        policy,
        scenarios,
        [3] * len(scenarios),
        Draw(7),
        max_completion_length=4,
    )


def test_rewards_stay_with_their_rollouts(tiny_policy, scenarios) -> None:
    groups, trees = sampled(tiny_policy, scenarios[:2])
    lengths = WeightedReward(
        "length", lambda prompts, completions, **columns: [float(len(c)) for c in completions], 2.0
    )
    experience = score_groups(groups, trees, [lengths], Objective())
    earned = by_group(experience.rewards_K, experience.sizes_B)
    for group, rewards in zip(experience.groups, earned, strict=True):
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
        score_groups(groups, trees, [WeightedReward("broken", broken)], Objective())


def test_replacements_are_a_function_of_seed_step_and_attempt(scenarios) -> None:
    def ids(**where: int) -> list[str]:
        asked = replacement_scenarios(scenarios, **{"step": 1, "attempt": 1, "seed": 0} | where)
        return [scenario.id for scenario in asked]

    assert ids(count=40) == ids(count=40)
    assert len({tuple(ids(count=40, **{key: 2})) for key in ("step", "attempt", "seed")}) == 3
    assert set(ids(count=40)) == {"q0", "q1", "q2", "q3", "q4"}


def test_a_length_penalty_is_a_reward_with_a_name(tiny_policy, scenarios) -> None:
    groups, trees = sampled(tiny_policy, scenarios[:1])
    ones = WeightedReward("one", lambda prompts, completions, **columns: [1.0] * len(completions))
    objective = Objective(max_completion_length=4, overlong_share=0.5)
    rewards = score_groups(groups, trees, [ones], objective).rewards
    expected = [{0: 0, 1: 0, 2: 0, 3: -0.5, 4: -1}[r.tokens] for r in groups[0].rollouts]
    assert rewards.by_name["overlong"] == expected
    assert rewards.total == [1 + penalty for penalty in expected]


def test_rewards_normalised_each_weigh_alike_whatever_their_scale(tiny_policy, scenarios) -> None:
    groups, trees = sampled(tiny_policy, scenarios[:1])
    small = WeightedReward("small", lambda prompts, completions, **columns: [0.0, 0.0, 0.001], 1.0)
    large = WeightedReward("large", lambda prompts, completions, **columns: [50.0, -50.0, None], 2)
    total = score_groups(groups, trees, [small, large], Objective())
    each = score_groups(
        groups, trees, [small, large], Objective(reward_normalisation="each", advantage="centred")
    )
    assert total.rewards == each.rewards
    std_small, std_large = 0.001 / 3**0.5, 50 * 2**0.5
    expected = [-1 / 3, -1 / 3, 2 / 3]
    expected = [0.001 * value / (std_small + 1e-4) for value in expected]
    expected[0] += 2 * 50 / (std_large + 1e-4)
    expected[1] -= 2 * 50 / (std_large + 1e-4)
    assert each.advantages.advantages_K == pytest.approx(expected, abs=1e-9)


def test_the_papers_own_lengths() -> None:
    """20,480 tokens with a buffer of 4,096: free up to 16,384."""
    lengths = np.array([0, 16_384, 18_432, 20_480, 30_000])
    penalties = overlong_penalty(lengths, longest=20_480, share=0.2)
    np.testing.assert_allclose(penalties, [0, 0, -0.5, -1, -1])


@given(st.integers(1, 5000), st.floats(0.01, 1.0))
def test_it_never_rises_and_stays_in_its_range(longest: int, share: float) -> None:
    penalties = overlong_penalty(np.arange(0, longest + 2), longest=longest, share=share)
    assert (np.diff(penalties) <= 0).all()
    assert penalties[0] == 0 and penalties.min() == penalties[-1] == -1
