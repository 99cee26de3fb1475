"""One step's experience: which scenarios are asked, and what came of them.

`score_rows` rewards the rollouts and compares them. With `overlong_share`, an answer that comes
near the length limit costs something: DAPO's soft punishment (arXiv:2503.14476), with L the most
tokens an answer may have and a buffer of `share` * L tokens before it,

    0                                up to L - buffer tokens
    (L - buffer - tokens) / buffer   within the buffer
    -1                               at L, and beyond it

which is continuous and never rises with length.

Invariants: the scenarios of a step are a pure function of (seed, step), so a resumed run asks what
the uninterrupted one would have asked; every epoch asks each scenario once; rewards stay in rollout
order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from memograd.errors import BadInput
from memograd.grpo.advantage import group_advantages, normalise_each
from memograd.grpo.distributed import ALONE, World
from memograd.grpo.experience import Experience, joined_tables
from memograd.grpo.loss import Objective
from memograd.policy.protocol import Policy, SampledGroup
from memograd.rewards import RewardTable, WeightedReward, compute_rewards, environment_column
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import Group, Rollout, Scenario, Turn, one_or_each

if TYPE_CHECKING:
    import torch


def overlong_penalty(tokens_K: np.ndarray, *, longest: int, share: float) -> np.ndarray:
    """What is added to each rollout's reward [K]; `share` is above 0 and at most 1."""
    buffer = share * longest
    return np.clip((longest - buffer - tokens_K) / buffer, -1.0, 0.0)


OVERLONG = "overlong"
"""The name under which the length penalty stands among the rewards."""


def scenarios_of_step(
    scenarios: Sequence[Scenario], *, step: int, count: int, seed: int
) -> list[Scenario]:
    """The `count` scenarios of training step `step` (from 1), from one shuffle an epoch."""
    chosen = []
    for position in range((step - 1) * count, step * count):
        epoch, index = divmod(position, len(scenarios))
        chosen.append(scenarios[epoch_order(len(scenarios), epoch=epoch, seed=seed)[index]])
    return chosen


@lru_cache(maxsize=4)  # a step may reach into the next epoch
def epoch_order(count: int, *, epoch: int, seed: int) -> tuple[int, ...]:
    """The order in which an epoch asks its `count` scenarios; shuffled once, then remembered."""
    order = list(range(count))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return tuple(order)


def replacement_scenarios(
    scenarios: Sequence[Scenario], *, step: int, attempt: int, count: int, seed: int
) -> list[Scenario]:
    """`count` scenarios drawn at random, asked in place of those that taught nothing.

    A pure function of (seed, step, attempt), so they too are the same in a resumed run.
    """
    return random.Random(f"{seed}/{step}/{attempt}").choices(scenarios, k=count)


@dataclass(frozen=True)
class Draw:
    """How scenarios are attempted, and what the rollouts' ids tell of it.

    temperature, generator: of sampling. sizes: of each group in rollouts; None: as whoever draws
    has them. step, attempt (above 0: in place of others), first (number of the first group): for
    the ids.
    """

    step: int
    temperature: float = 1.0
    generator: torch.Generator | None = None
    sizes: Sequence[int] | None = None
    attempt: int = 0
    first: int = 0

    def sizes_of(self, scenarios: Sequence[Scenario], usual: int) -> Sequence[int]:
        """The sizes of the groups; `usual` each where none are given."""
        return self.sizes or [usual] * len(scenarios)


def sample_groups(
    policy: Policy,
    scenarios: Sequence[Scenario],
    sizes: Sequence[int],
    draw: Draw,
    *,
    max_completion_length: int,
) -> tuple[list[Group], list[SampledGroup]]:
    """Let the policy attempt each scenario as often as `sizes` says."""
    ids = rollout_ids(scenarios, sizes, draw)
    prompts = [policy.encode(scenario.prompt) for scenario in scenarios]
    sampled = policy.sample(
        prompts,
        num_generations=one_or_each(sizes),
        temperature=draw.temperature,
        max_completion_length=max_completion_length,
        generator=draw.generator,
    )
    groups = []
    for scenario, names, group in zip(scenarios, ids, sampled, strict=True):
        rollouts = tuple(
            Rollout(
                id=names[row],
                turns=(
                    Turn(
                        observation_ids=group.tree.prompt,
                        action_ids=group.tree.branch(row),
                        logprobs=group.logprobs[row],
                        stop_reason=group.stop_reasons[row],
                        versions=group.versions[row] if group.versions else (),
                    ),
                ),
                completion=group.texts[row],
            )
            for row in range(len(names))
        )
        groups.append(Group(scenario, rollouts))
    return groups, sampled


def rollout_ids(scenarios: Sequence[Scenario], sizes: Sequence[int], draw: Draw) -> list[list[str]]:
    """What the rollouts of a step are called, one of `sizes` a scenario, wherever it is spoken of
    them."""
    when = f"step {draw.step}" + (f", attempt {draw.attempt + 1}" if draw.attempt else "")
    return [
        [f"{when}, group {index} ({scenario.id}), rollout {row}" for row in range(size)]
        for index, (scenario, size) in enumerate(
            zip(scenarios, sizes, strict=True), start=draw.first
        )
    ]


def answer_rows(groups: Sequence[Group]) -> tuple[tuple[int, ...], ...]:
    """`Experience.rollouts_of_tree` where a group is a tree and a rollout is a row."""
    ends = list(accumulate(len(group.rollouts) for group in groups))
    return tuple(tuple(range(start, end)) for start, end in pairwise([0, *ends]))


def score_rows(
    groups: Sequence[Group],
    rewards: Sequence[WeightedReward],
    objective: Objective,
    *,
    trees: Sequence[TokenTree],
    rollouts_of_tree: Sequence[Sequence[int]],
    old_logprobs: Sequence[Sequence[np.ndarray]],
    world: World = ALONE,
) -> Experience:
    """Reward every rollout and compare it with others; raises what the rewards raise.

    Rows are as in `Experience`. Each rank of `world` has all groups and rewards its share of them.
    """
    pairs = [(group.scenario, rollout) for group in groups for rollout in group.rollouts]
    table = _rewarded_by_ranks(rewards, groups, world)
    weights = {reward.name: reward.weight for reward in rewards}
    if objective.overlong_share > 0:
        table = _with_overlong(table, [rollout for _, rollout in pairs], objective)
        weights[OVERLONG] = 1.0
    sizes_B = [len(group.rollouts) for group in groups]
    if objective.reward_normalisation == "each":
        compared_K = normalise_each(
            [np.asarray(table.by_name[name], dtype=np.float64) for name in weights],
            sizes_B,
            list(weights.values()),
        )
    else:
        compared_K = np.asarray(table.total)
    return Experience(
        groups=tuple(groups),
        trees=tuple(trees),
        rollouts_of_tree=tuple(tuple(rollouts) for rollouts in rollouts_of_tree),
        old_logprobs=tuple(tuple(rows) for rows in old_logprobs),
        rewards=table,
        compared_K=compared_K,
        advantages=group_advantages(compared_K, sizes_B, objective.advantage),
    )


def _rewarded_by_ranks(
    rewards: Sequence[WeightedReward], groups: Sequence[Group], world: World
) -> RewardTable:
    """Every reward of every rollout, each computed on one rank; raises what the rewards raise."""
    share = world.share(len(groups))
    own = [
        (group.scenario, rollout)
        for group in groups[share.start : share.stop]
        for rollout in group.rollouts
    ]
    tables = world.together(lambda: reward_rollouts(rewards, own) if own else None)
    return joined_tables([table for table in tables if table is not None])


def reward_rollouts(
    rewards: Sequence[WeightedReward], pairs: Sequence[tuple[Scenario, Rollout]]
) -> RewardTable:
    """Every reward of every rollout; raises what the rewards raise.

    Of an episode, functions that read messages see what the policy was shown first as the prompt,
    and the whole conversation from there on as the completion.
    """
    rollouts = [rollout for _, rollout in pairs]
    return compute_rewards(
        rewards,
        rollout_ids=[rollout.id for rollout in rollouts],
        prompts=[
            list(rollout.opening) if rollout.messages else scenario.prompt
            for scenario, rollout in pairs
        ],
        completions=[rollout.completion for rollout in rollouts],
        conversations=[rollout.attempt for rollout in rollouts],
        columns={
            **{name: [scenario.columns[name] for scenario, _ in pairs] for name in _columns(pairs)},
            **environment_column(
                [rollout.id for rollout in rollouts], [r.reward for r in rollouts]
            ),
        },
    )


def _with_overlong(
    table: RewardTable, rollouts: Sequence[Rollout], objective: Objective
) -> RewardTable:
    penalties_K = overlong_penalty(
        np.array([len(rollout.turns[-1].action_ids) for rollout in rollouts]),
        longest=objective.max_completion_length,
        share=objective.overlong_share,
    )
    return RewardTable(
        total=[total + float(extra) for total, extra in zip(table.total, penalties_K, strict=True)],
        by_name={**table.by_name, OVERLONG: penalties_K.tolist()},
    )


def _columns(pairs: Sequence[tuple[Scenario, Rollout]]) -> list[str]:
    """The columns of the batch; `BadInput` if its scenarios have different ones."""
    first = pairs[0][0]
    for scenario, _ in pairs:
        if set(scenario.columns) != set(first.columns):
            raise BadInput(
                f"{scenario.id} has the columns {sorted(scenario.columns)} and {first.id} has "
                f"{sorted(first.columns)}; give all scenarios the same ones"
            )
    return sorted(first.columns)
