"""One step's experience: which scenarios are asked, and what came of them.

Invariants: the scenarios of a step are a pure function of (seed, step), so a resumed run asks what
the uninterrupted one would have asked; every epoch asks each scenario once; rewards stay in rollout
order. Tested in `tests/grpo/test_batch.py`. May import numpy, rollout, policy, rewards.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memograd.errors import BadInput
from memograd.grpo.advantage import GroupAdvantages, group_advantages
from memograd.policy.protocol import Policy, SampledGroup
from memograd.rewards import RewardTable, WeightedReward, compute_rewards
from memograd.rollout.types import Group, Rollout, Scenario, Turn

if TYPE_CHECKING:
    import torch


def scenarios_of_step(
    scenarios: Sequence[Scenario], *, step: int, count: int, seed: int
) -> list[Scenario]:
    """The `count` scenarios of training step `step` (from 1), from one shuffle an epoch."""
    chosen = []
    for position in range((step - 1) * count, step * count):
        epoch, index = divmod(position, len(scenarios))
        order = list(range(len(scenarios)))
        random.Random(f"{seed}/{epoch}").shuffle(order)
        chosen.append(scenarios[order[index]])
    return chosen


@dataclass(frozen=True)
class Experience:
    """B groups of G rollouts: their trees, rewards and advantages, all in the same order."""

    groups: tuple[Group, ...]
    sampled: tuple[SampledGroup, ...]
    rewards: RewardTable
    advantages: GroupAdvantages

    @property
    def rewards_BG(self) -> np.ndarray:
        """Total rewards [B, G]."""
        return np.asarray(self.rewards.total).reshape(len(self.groups), -1)

    @property
    def rollouts(self) -> list[Rollout]:
        """All rollouts, group after group."""
        return [rollout for group in self.groups for rollout in group.rollouts]


def sample_groups(
    policy: Policy,
    scenarios: Sequence[Scenario],
    *,
    step: int,
    num_generations: int,
    temperature: float,
    max_completion_length: int,
    generator: torch.Generator | None,
) -> tuple[list[Group], list[SampledGroup]]:
    """Let the policy attempt each scenario `num_generations` times."""
    prompts = [policy.encode(scenario.messages) for scenario in scenarios]
    sampled = policy.sample(
        prompts,
        num_generations=num_generations,
        temperature=temperature,
        max_completion_length=max_completion_length,
        generator=generator,
    )
    groups = []
    for index, (scenario, group) in enumerate(zip(scenarios, sampled, strict=True)):
        rollouts = tuple(
            Rollout(
                id=f"step {step}, group {index} ({scenario.id}), rollout {row}",
                turns=(
                    Turn(
                        observation_ids=group.tree.prompt,
                        action_ids=group.tree.branch(row),
                        logprobs=group.logprobs[row],
                        stop_reason=group.stop_reasons[row],
                    ),
                ),
                completion=group.texts[row],
            )
            for row in range(num_generations)
        )
        groups.append(Group(scenario, rollouts))
    return groups, sampled


def score_groups(
    groups: Sequence[Group], sampled: Sequence[SampledGroup], rewards: Sequence[WeightedReward]
) -> Experience:
    """Reward every rollout and compare it with its group; raises what the rewards raise."""
    pairs = [(group.scenario, rollout) for group in groups for rollout in group.rollouts]
    columns = {name: [scenario.columns[name] for scenario, _ in pairs] for name in _columns(groups)}
    table = compute_rewards(
        rewards,
        rollout_ids=[rollout.id for _, rollout in pairs],
        prompts=[list(scenario.messages) for scenario, _ in pairs],
        completions=[rollout.completion for _, rollout in pairs],
        columns=columns,
    )
    rewards_BG = np.asarray(table.total).reshape(len(groups), -1)
    return Experience(tuple(groups), tuple(sampled), table, group_advantages(rewards_BG))


def _columns(groups: Sequence[Group]) -> list[str]:
    """The columns of the batch; `BadInput` if its scenarios have different ones."""
    first = groups[0].scenario
    for group in groups[1:]:
        if set(group.scenario.columns) != set(first.columns):
            raise BadInput(
                f"{group.scenario.id} has the columns {sorted(group.scenario.columns)} and "
                f"{first.id} has {sorted(first.columns)}; give all scenarios the same ones"
            )
    return sorted(first.columns)
