"""`Experience`: what one step learns from, and how it is taken apart and put together by groups.

B groups make K rollouts, numbered group after group; groups may be of different sizes, so what
belongs to rollouts is flat, [K], and `sizes_B` cuts it into groups. What the policy computes are
*rows*: branches of token trees. A rollout is one row or several, in one tree or in several; a tree
holds rows of one group only.

A number that is not finite would spread into every weight, so it stops the run (`NotFinite`) and
names the groups that it came from: a sampled log-probability here, a reward, the loss or the
gradient where they are computed.

Invariants: `join` of all `single(b)` is the experience itself, rollout numbers included; nothing
that is not finite moves the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from memograd.errors import MemogradError
from memograd.grpo.advantage import GroupAdvantages, group_advantages
from memograd.rewards import RewardTable
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import UNSAID, Group, Rollout, versions_of


@dataclass(frozen=True)
class Experience:
    """Groups with their rows, rewards and advantages.

    Branch i of `trees[t]` is a row of rollout `rollouts_of_tree[t][i]`; `old_logprobs[t][i]` are
    the sampler's log-probabilities, aligned with the branch's tokens; those of tokens that are not
    scored are ignored. `rewards` has one number a rollout. `compared_K` [K] is what advantages were
    computed from: total rewards, or their normalised sum. The last `replayed` groups were sampled
    in an earlier step, by an older policy. `on_policy`: the others were sampled by the very weights
    that are about to learn from them.
    """

    groups: tuple[Group, ...]
    trees: tuple[TokenTree, ...]
    rollouts_of_tree: tuple[tuple[int, ...], ...]
    old_logprobs: tuple[tuple[np.ndarray, ...], ...]
    rewards: RewardTable
    compared_K: np.ndarray
    advantages: GroupAdvantages
    replayed: int = 0
    on_policy: bool = False

    @cached_property
    def sizes_B(self) -> tuple[int, ...]:
        """How many rollouts each group has."""
        return tuple(len(group.rollouts) for group in self.groups)

    @property
    def rewards_K(self) -> np.ndarray:
        """Total rewards [K]."""
        return np.asarray(self.rewards.total)

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
        counts_K = np.zeros(len(self.compared_K), dtype=np.int64)
        for tree, rollouts in zip(self.trees, self.rollouts_of_tree, strict=True):
            for scored, rollout in zip(tree.scored, rollouts, strict=True):
                counts_K[rollout] += scored.sum()
        return counts_K

    def group_of(self, rollout: int) -> int:
        """The index of the group that rollout number `rollout` belongs to."""
        return int(self.group_K[rollout])

    def group_of_tree(self, tree: int) -> int:
        """The index of the group whose rows are in tree number `tree`."""
        return self.group_of(self.rollouts_of_tree[tree][0])

    @property
    def fresh_K(self) -> np.ndarray:
        """Which rollouts were sampled in this step [K], bool."""
        return self.group_K < len(self.groups) - self.replayed

    @cached_property
    def group_K(self) -> np.ndarray:
        """The index of each rollout's group [K]."""
        return np.repeat(np.arange(len(self.groups)), self.sizes_B)

    @cached_property
    def versions(self) -> tuple[tuple[np.ndarray, ...], ...]:
        """The version that drew each token, by tree and branch [C_i] int64; `UNSAID` where a token
        is not scored, or its turn does not say.

        The rows of a rollout hold its actions in their order, each token once.
        """
        drawn = [
            np.concatenate([versions_of(turn.versions, len(turn.action_ids)) for turn in one.turns])
            for one in self.rollouts
        ]
        taken = [0] * len(drawn)
        found: list[tuple[np.ndarray, ...]] = []
        for tree, rollouts in zip(self.trees, self.rollouts_of_tree, strict=True):
            rows = []
            for scored, rollout in zip(tree.scored, rollouts, strict=True):
                row = np.full(len(scored), UNSAID, dtype=np.int64)
                first, count = taken[rollout], int(scored.sum())
                row[scored] = drawn[rollout][first : first + count]
                taken[rollout] += count
                rows.append(row)
            found.append(tuple(rows))
        return tuple(found)

    def cut(self, branches_of: Callable[[TokenTree], list[list[int]]]) -> Experience:
        """The same experience with each tree cut into those of the parts of its branches that
        `branches_of` names, in their order; rows, rollouts and what they weigh are as before."""
        trees: list[TokenTree] = []
        rollouts: list[tuple[int, ...]] = []
        old: list[tuple[np.ndarray, ...]] = []
        for place, tree in enumerate(self.trees):
            parts = branches_of(tree)
            for part in parts:
                trees.append(tree if len(parts) == 1 else tree.part(part))
                rollouts.append(tuple(self.rollouts_of_tree[place][row] for row in part))
                old.append(tuple(self.old_logprobs[place][row] for row in part))
        return replace(
            self, trees=tuple(trees), rollouts_of_tree=tuple(rollouts), old_logprobs=tuple(old)
        )

    def single(self, group: int, advantage: str) -> Experience:
        """The experience of one group alone, compared as `advantage` says."""
        size = self.sizes_B[group]
        first = sum(self.sizes_B[:group])
        chosen = [
            tree
            for tree, rollouts in enumerate(self.rollouts_of_tree)
            if rollouts and self.group_of(rollouts[0]) == group
        ]
        rows = slice(first, first + size)
        compared_K = self.compared_K[rows]
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
            compared_K=compared_K,
            advantages=group_advantages(compared_K, [size], advantage),
        )


def join(parts: Sequence[Experience], advantage: str) -> Experience:
    """The experience of all `parts`, group after group, compared as `advantage` says."""
    offsets = np.cumsum([0, *(len(part.compared_K) for part in parts)])
    compared_K = np.concatenate([part.compared_K for part in parts])
    sizes_B = [size for part in parts for size in part.sizes_B]
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
        compared_K=compared_K,
        advantages=group_advantages(compared_K, sizes_B, advantage),
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


class NotFinite(MemogradError):
    """`what` is NaN or infinite; `groups` are the places in the step's batch that it came from."""

    def __init__(self, what: str, groups: Sequence[int]) -> None:
        super().__init__(f"{what} is not a finite number")
        self.what = what
        self.groups = tuple(int(group) for group in groups)


def check_sampled(groups: Sequence[Group]) -> None:
    """Raise `NotFinite` if the sampler gave a token a log-probability that is not finite."""
    bad = [
        index
        for index, group in enumerate(groups)
        if not all(
            np.isfinite(turn.logprobs).all() for rollout in group.rollouts for turn in rollout.turns
        )
    ]
    if bad:
        raise NotFinite("the sampler's log-probability of a token", bad)
