"""`Experience`: what one step learns from, and how it is taken apart and put together by groups.

B groups of G rollouts make K = B * G rollouts, numbered group after group. What the policy computes
are *rows*: branches of token trees. A rollout is one row or several, in one tree or in several;
a tree holds rows of one group only.

Invariant: `join` of all `single(b)` is the experience itself, rollout numbers included. Proved in
`tests/grpo/test_experience.py`. May import numpy, rollout, rewards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memograd.grpo.advantage import GroupAdvantages, group_advantages
from memograd.rewards import RewardTable
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import Group, Rollout


@dataclass(frozen=True)
class Experience:
    """Groups with their rows, rewards and advantages.

    Branch i of `trees[t]` is a row of rollout `rollouts_of_tree[t][i]`; `old_logprobs[t][i]` are
    the sampler's log-probabilities, aligned with the branch's tokens; those of tokens that are not
    scored are ignored. `rewards` has one number a rollout. `compared_BG` [B, G] is what advantages
    were computed from: total rewards, or their normalised sum.
    """

    groups: tuple[Group, ...]
    trees: tuple[TokenTree, ...]
    rollouts_of_tree: tuple[tuple[int, ...], ...]
    old_logprobs: tuple[tuple[np.ndarray, ...], ...]
    rewards: RewardTable
    compared_BG: np.ndarray
    advantages: GroupAdvantages

    @property
    def rewards_BG(self) -> np.ndarray:
        """Total rewards [B, G]."""
        return np.asarray(self.rewards.total).reshape(len(self.groups), -1)

    @property
    def rollouts(self) -> list[Rollout]:
        """All rollouts, group after group."""
        return [rollout for group in self.groups for rollout in group.rollouts]

    @property
    def tokens_K(self) -> np.ndarray:
        """How many tokens each rollout sampled [K]."""
        return np.array([rollout.tokens for rollout in self.rollouts])

    @property
    def scored_K(self) -> np.ndarray:
        """How many scored tokens each rollout has in all of its rows [K]."""
        counts_K = np.zeros(self.compared_BG.size, dtype=np.int64)
        for tree, rollouts in zip(self.trees, self.rollouts_of_tree, strict=True):
            for scored, rollout in zip(tree.scored, rollouts, strict=True):
                counts_K[rollout] += scored.sum()
        return counts_K

    def group_of(self, rollout: int) -> int:
        """The index of the group that rollout number `rollout` belongs to."""
        return rollout // int(self.compared_BG.shape[1])

    def single(self, group: int, advantage: str) -> Experience:
        """The experience of one group alone, compared as `advantage` says."""
        size = self.compared_BG.shape[1]
        first = group * size
        chosen = [
            tree
            for tree, rollouts in enumerate(self.rollouts_of_tree)
            if rollouts and self.group_of(rollouts[0]) == group
        ]
        rows = slice(first, first + size)
        compared_BG = self.compared_BG[group : group + 1]
        return Experience(
            groups=(self.groups[group],),
            trees=tuple(self.trees[tree] for tree in chosen),
            rollouts_of_tree=tuple(
                tuple(rollout - first for rollout in self.rollouts_of_tree[tree]) for tree in chosen
            ),
            old_logprobs=tuple(self.old_logprobs[tree] for tree in chosen),
            rewards=RewardTable(
                total=self.rewards.total[rows],
                by_name={name: values[rows] for name, values in self.rewards.by_name.items()},
            ),
            compared_BG=compared_BG,
            advantages=group_advantages(compared_BG, advantage),
        )


def join(parts: Sequence[Experience], advantage: str) -> Experience:
    """The experience of all `parts`, group after group, compared as `advantage` says."""
    offsets = np.cumsum([0, *(part.compared_BG.size for part in parts)])
    compared_BG = np.concatenate([part.compared_BG for part in parts])
    return Experience(
        groups=tuple(group for part in parts for group in part.groups),
        trees=tuple(tree for part in parts for tree in part.trees),
        rollouts_of_tree=tuple(
            tuple(int(offset) + rollout for rollout in rollouts)
            for part, offset in zip(parts, offsets[:-1], strict=True)
            for rollouts in part.rollouts_of_tree
        ),
        old_logprobs=tuple(rows for part in parts for rows in part.old_logprobs),
        rewards=joined_tables([part.rewards for part in parts]),
        compared_BG=compared_BG,
        advantages=group_advantages(compared_BG, advantage),
    )


def joined_tables(tables: Sequence[RewardTable]) -> RewardTable:
    """The rewards of all `tables`, which have the same names, rollout after rollout."""
    return RewardTable(
        total=[value for table in tables for value in table.total],
        by_name={
            name: [value for table in tables for value in table.by_name[name]]
            for name in tables[0].by_name
        },
    )
