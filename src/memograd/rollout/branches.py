"""From finished rollouts to what training scores: rows of tokens, grown into token trees.

A rollout is one row of tokens as long as every turn continues the tokens of the turn before it, and
several rows where the chat template rewrote the conversation. A row is a prompt (all that the model
saw before its first action) and a branch below it: actions, which are scored, and observations,
which are not.

    rollout 0   [prompt] action observation action                 one row
    rollout 1   [prompt] action | [rewritten prompt] action        two rows, one share of the loss

Rows of a group whose prompts begin alike share a tree, so their beginnings are computed once.

Invariants: every action token is scored exactly once over all trees and observations never; `prompt
+ branch` is what the model saw; each branch knows its rollout; the rows of a rollout come in their
order, tree after tree and branch after branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from memograd.rollout.token_tree import TokenTree, TreeBuilder
from memograd.rollout.types import Rollout, TokenMask, TokenMasks


@dataclass(frozen=True)
class Branches:
    """The trees of all groups, with what belongs to each of their branches.

    Rollouts are numbered group after group. Branch i of `trees[t]` is a row of rollout
    `rollouts_of_tree[t][i]`; a tree holds rows of one group. `old_logprobs[t][i]` [C_i] float32 are
    the sampler's log-probabilities, 0 where a token is not scored.
    """

    trees: tuple[TokenTree, ...]
    rollouts_of_tree: tuple[tuple[int, ...], ...]
    old_logprobs: tuple[tuple[np.ndarray, ...], ...]


@dataclass(frozen=True)
class BranchRow:
    """One sequence of tokens: a prompt and what follows, [C] each; `allowed` is empty where nothing
    was held to a grammar."""

    prompt: tuple[int, ...]
    ids: tuple[int, ...]
    scored: np.ndarray
    logprobs: np.ndarray
    allowed: TokenMasks = ()


def rows_of(rollout: Rollout) -> Iterator[BranchRow]:
    """The rows of a rollout, in order."""
    starts = [place for place, turn in enumerate(rollout.turns) if turn.starts_row]
    for start, end in zip(starts, [*starts[1:], len(rollout.turns)], strict=True):
        prompt = rollout.turns[start].observation_ids
        ids: list[int] = []
        scored: list[bool] = []
        logprobs: list[np.ndarray] = []
        allowed: list[TokenMask | None] = []
        for place in range(start, end):
            turn = rollout.turns[place]
            seen = () if place == start else turn.observation_ids
            ids += [*seen, *turn.action_ids]
            scored += [False] * len(seen) + [True] * len(turn.action_ids)
            logprobs += [np.zeros(len(seen), dtype=np.float32), turn.logprobs]
            allowed += [*[None] * len(seen), *(turn.allowed or [None] * len(turn.action_ids))]
        yield BranchRow(
            prompt,
            tuple(ids),
            np.asarray(scored, dtype=bool),
            np.concatenate(logprobs),
            tuple(allowed) if any(mask is not None for mask in allowed) else (),
        )


def grow_trees(groups: Sequence[Sequence[Rollout]]) -> Branches:
    """The token trees of all groups' rollouts.

    A row joins the first tree of its group, from that of the row before it on, whose prompt its own
    prompt begins with; what its prompt has beyond that becomes unscored tokens of its branch. Rows
    that were held to different grammars in one place are in different trees.
    """
    grown: list[_Grown] = []
    number = 0
    for group in groups:
        of_group: list[_Grown] = []
        for rollout in group:
            place = 0
            for row in rows_of(rollout):
                # From the tree of the row before on, so that rows keep their order.
                while place < len(of_group) and not of_group[place].takes(row):
                    place += 1
                if place == len(of_group):
                    of_group.append(_Grown(row.prompt))
                of_group[place].add(row, number)
            number += 1
        grown += of_group
    return Branches(
        trees=tuple(
            TokenTree.from_branches(tree.prompt, tree.ids, tree.scored, tree.allowed)
            for tree in grown
        ),
        rollouts_of_tree=tuple(tuple(tree.rollouts) for tree in grown),
        old_logprobs=tuple(tuple(tree.logprobs) for tree in grown),
    )


class _Grown:
    """A tree's rows while they are collected."""

    def __init__(self, prompt: tuple[int, ...]) -> None:
        self.prompt = prompt
        self.ids: list[tuple[int, ...]] = []
        self.scored: list[list[bool]] = []
        self.logprobs: list[np.ndarray] = []
        self.rollouts: list[int] = []
        self.allowed: list[TokenMasks] = []
        self._builder = TreeBuilder(prompt)
        self._held: dict[int, TokenMask | None] = {}

    def takes(self, row: BranchRow) -> bool:
        if row.prompt[: len(self.prompt)] != self.prompt:
            return False
        node: int | None = 0
        for token, mask, mine in self._predictions(row):
            if node is None:
                return True
            if mine and self._held.get(node, mask) != mask:
                return False
            node = self._builder.find(node, token)
        return True

    def _predictions(self, row: BranchRow) -> Iterator[tuple[int, TokenMask | None, bool]]:
        """Each token below the tree's prompt, what it could have been, and whether it is scored."""
        more = row.prompt[len(self.prompt) :]
        masks = row.allowed or (None,) * len(row.ids)
        yield from ((token, None, False) for token in more)
        yield from zip(row.ids, masks, row.scored.tolist(), strict=True)

    def add(self, row: BranchRow, rollout: int) -> None:
        more = row.prompt[len(self.prompt) :]
        self.ids.append((*more, *row.ids))
        self.scored.append([False] * len(more) + row.scored.tolist())
        nothing = np.zeros(len(more), dtype=np.float32)
        self.logprobs.append(np.concatenate([nothing, row.logprobs]))
        self.rollouts.append(rollout)
        before = (None,) * len(more)
        self.allowed.append((*before, *(row.allowed or (None,) * len(row.ids))))
        node = 0
        for token, mask, mine in self._predictions(row):
            if mine:
                self._held[node] = mask
            node = self._builder.child(node, token)
