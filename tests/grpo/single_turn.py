"""Scoring groups of single answers, as the trainer does through its drawing."""

from __future__ import annotations

from collections.abc import Sequence

from memograd.grpo.batch import answer_rows, score_rows
from memograd.grpo.experience import Experience
from memograd.grpo.loss import Objective
from memograd.policy.protocol import SampledGroup
from memograd.rewards import WeightedReward
from memograd.rollout.types import Group


def score_groups(
    groups: Sequence[Group],
    sampled: Sequence[SampledGroup],
    rewards: Sequence[WeightedReward],
    objective: Objective,
) -> Experience:
    """`score_rows` for answers to one prompt each: a group is a tree, a rollout is a row."""
    return score_rows(
        groups,
        rewards,
        objective,
        trees=[group.tree for group in sampled],
        rollouts_of_tree=answer_rows(groups),
        old_logprobs=[group.logprobs for group in sampled],
    )
