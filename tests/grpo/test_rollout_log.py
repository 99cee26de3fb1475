"""The readable log shows prompt, answers, rewards and advantages in their places."""

from __future__ import annotations

from memograd.grpo.batch import sample_groups, score_groups
from memograd.grpo.rollout_log import render_experience
from memograd.rewards import WeightedReward


def test_every_rollout_is_shown_with_its_own_numbers(tiny_policy, scenarios) -> None:
    groups, sampled = sample_groups(
        tiny_policy,
        scenarios[:2],
        step=3,
        num_generations=2,
        temperature=1.0,
        max_completion_length=3,
        generator=None,
    )
    reward = WeightedReward("rank", lambda prompts, completions, **c: [0.0, 1.0, 2.0, 3.0])
    text = render_experience(3, score_groups(groups, sampled, [reward]))
    assert text.startswith("step 3: 2 groups")
    first, second = text.split("=== q1 ===")
    assert "[user] say " in first and "answer: x" in first
    for part, numbers in ((first, ("0.000", "1.000")), (second, ("2.000", "3.000"))):
        lines = [line for line in part.splitlines() if "advantage" in line]
        assert [number in line for number, line in zip(numbers, lines, strict=True)] == [True, True]
    for group in groups:
        for rollout in group.rollouts:
            assert repr(rollout.completion) in text
