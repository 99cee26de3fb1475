"""`TokenTree`: the tokens of a group, each shared one once; and how rollouts grow into trees.

The G rollouts of a group share their whole prompt, and often the beginnings of their answers too. A
token tree holds the prompt as a trunk and the answers as a trie below it; a model can then compute
every distinct prefix once, in sampling and in the loss, however many rollouts run through it.

    prompt (trunk) ──root──┬─ 7 ─┬─ May ── 2023 ── <end>      rollout 0 and rollout 3
                           │     └─ June ── <end>             rollout 1
                           └─ Sweden ── <end>                 rollout 2

Node 0 is the *root*: the last token of the prompt, whose output predicts every first answer token.
The other nodes are answer tokens; a parent's index is always smaller than its child's.

A rollout is one row of tokens as long as every turn continues the tokens of the turn before it, and
several rows where the chat template rewrote the conversation. A row is a prompt (all that the model
saw before its first action) and a branch below it: actions, which `scored` marks, and observations.
That belongs to the branch and not to the node, because the same tokens can be an action in one
branch and quoted history in another.

    rollout 0   [prompt] action observation action                 one row
    rollout 1   [prompt] action | [rewritten prompt] action        two rows, one share of the loss

`grow_trees` makes trees of the rows of finished rollouts. Rows of a group whose prompts begin alike
share a tree, so their beginnings are computed once.

Invariants (house contract 1): `prompt + branch(i)` is the exact sequence of token ids that branch i
consists of, and that the model saw, for any answers, also equal or empty ones, or one that is a
prefix of another; what is scored in one branch says nothing about another. Every action token is
scored exactly once over all trees and observations never; each branch knows its rollout; the rows
of a rollout come in their order, tree after tree and branch after branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from memograd.errors import BadInput
from memograd.rollout.types import Rollout, TokenMask, TokenMasks


@dataclass(frozen=True, eq=False)
class TokenTree:
    """A prompt and the trie of its answers.

    `tokens_N`, `parents_N` [N] int64: nodes in topological order; node 0 is the root with parent
    -1. `branches`: for each rollout the node indices [C_i] of its answer tokens, in order.
    `scored`: for each branch [C_i] bool, True where the policy chose the token; observations are
    False. Left out, every token is scored. `allowed`: for each node whose next tokens were held to
    a grammar, the tokens that could come; a node is held to one grammar in all branches.
    """

    trunk: tuple[int, ...]
    tokens_N: np.ndarray
    parents_N: np.ndarray
    branches: tuple[np.ndarray, ...]
    scored: tuple[np.ndarray, ...] = ()
    allowed: Mapping[int, TokenMask] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.scored:
            everything = tuple(np.ones(len(branch), dtype=bool) for branch in self.branches)
            object.__setattr__(self, "scored", everything)
        lengths = [len(branch) for branch in self.branches]
        if [len(scored) for scored in self.scored] != lengths:
            raise ValueError(f"`scored` must have one bool for each token of branches of {lengths}")

    @classmethod
    def from_branches(
        cls,
        prompt: Sequence[int],
        answers: Sequence[Sequence[int]],
        scored: Sequence[Sequence[bool]] | None = None,
        allowed: Sequence[TokenMasks] | None = None,
    ) -> TokenTree:
        """Build the tree of `answers` (token ids, one sequence a rollout) below `prompt`.

        `scored`: which tokens of each answer are the policy's own; all of them if left out.
        `allowed`: what each of these tokens could have been, if not anything. Raises `BadInput` if
        the prompt is empty: there would be nothing to predict from; ValueError where two answers
        were held to different grammars in one place.
        """
        builder = TreeBuilder(prompt)
        branches = [builder.insert(answer) for answer in answers]
        held: dict[int, TokenMask | None] = {}
        for number, masks in enumerate(allowed or ()):
            own = [True] * len(masks) if scored is None else scored[number]
            before = [0, *branches[number]]
            for node, mask, mine in zip(before, masks, own, strict=False):
                if mine and held.setdefault(node, mask) != mask:
                    raise ValueError(f"the token after node {node} was held to two grammars")
        kept = {node: mask for node, mask in held.items() if mask is not None}
        return builder.build(branches, scored, kept)

    @property
    def prompt(self) -> tuple[int, ...]:
        """All prompt tokens: the trunk and the root."""
        return (*self.trunk, int(self.tokens_N[0]))

    def branch(self, index: int) -> tuple[int, ...]:
        """The answer tokens of rollout `index`."""
        return tuple(int(token) for token in self.tokens_N[self.branches[index]])

    def allowed_in(self, index: int) -> TokenMasks:
        """What each answer token of rollout `index` could have been; None: anything."""
        before = [0, *self.branches[index].tolist()][: len(self.branches[index])]
        own = self.scored[index]
        return tuple(
            self.allowed.get(node) if mine else None for node, mine in zip(before, own, strict=True)
        )

    @cached_property
    def scored_nodes(self) -> np.ndarray:
        """Indices of the nodes that are scored in some branch: the only ones to predict."""
        chosen = [branch[own] for branch, own in zip(self.branches, self.scored, strict=True)]
        return np.unique(np.concatenate(chosen)) if chosen else np.zeros(0, dtype=np.int64)

    @cached_property
    def depths_N(self) -> np.ndarray:
        """Edges from the root [N]: a node's position in the sequence is `len(trunk) + depth`."""
        depths_N = np.zeros(len(self.tokens_N), dtype=np.int64)
        for node in range(1, len(depths_N)):
            depths_N[node] = depths_N[self.parents_N[node]] + 1
        return depths_N

    @cached_property
    def inner_M(self) -> np.ndarray:
        """Indices of the nodes that have children [M]: only they must pass through a model."""
        return np.unique(self.parents_N[1:])

    @cached_property
    def ancestors_MM(self) -> np.ndarray:
        """Which inner node sees which [M, M] bool: itself and those on its way to the root."""
        row_of = {int(node): row for row, node in enumerate(self.inner_M)}
        seen_MM = np.eye(len(self.inner_M), dtype=bool)
        for row, node in enumerate(self.inner_M):
            if node != 0:
                seen_MM[row] |= seen_MM[row_of[int(self.parents_N[node])]]
        return seen_MM

    def part(self, rows: Sequence[int]) -> TokenTree:
        """The tree of these branches alone, in this order."""
        return TokenTree.from_branches(
            self.prompt,
            [self.branch(row) for row in rows],
            [self.scored[row].tolist() for row in rows],
            [self.allowed_in(row) for row in rows],
        )

    @property
    def rows_tokens(self) -> int:
        """Tokens that row-by-row processing would compute, for comparison with `tree_tokens`."""
        return sum(len(self.trunk) + 1 + len(branch) for branch in self.branches)

    @property
    def tree_tokens(self) -> int:
        """Tokens that pass through a model when each shared one is computed once."""
        return len(self.trunk) + len(self.inner_M)


class TreeBuilder:
    """Grows a `TokenTree` token by token; the sampler uses it while it samples."""

    def __init__(self, prompt: Sequence[int]) -> None:
        if not prompt:
            raise BadInput("an empty prompt has no token to predict an answer from; give it text")
        self._trunk = tuple(prompt[:-1])
        self._tokens = [prompt[-1]]
        self._parents = [-1]
        self._children: list[dict[int, int]] = [{}]

    def child(self, parent: int, token: int) -> int:
        """The node of `token` below `parent`, made if it is not there yet."""
        node = self._children[parent].get(token)
        if node is None:
            node = self._children[parent][token] = len(self._tokens)
            self._tokens.append(token)
            self._parents.append(parent)
            self._children.append({})
        return node

    def find(self, parent: int, token: int) -> int | None:
        """The node of `token` below `parent`, if it is there."""
        return self._children[parent].get(token)

    def insert(self, answer: Sequence[int]) -> list[int]:
        """Add one answer; returns its nodes."""
        nodes, node = [], 0
        for token in answer:
            node = self.child(node, token)
            nodes.append(node)
        return nodes

    def token(self, node: int) -> int:
        """The token id of `node`."""
        return self._tokens[node]

    def parent(self, node: int) -> int:
        """The parent of `node`; -1 for the root."""
        return self._parents[node]

    def build(
        self,
        branches: Sequence[Sequence[int]],
        scored: Sequence[Sequence[bool]] | None = None,
        allowed: Mapping[int, TokenMask] | None = None,
    ) -> TokenTree:
        """The finished tree; `branches` are the node lists of the rollouts, in their order."""
        return TokenTree(
            trunk=self._trunk,
            tokens_N=np.asarray(self._tokens, dtype=np.int64),
            parents_N=np.asarray(self._parents, dtype=np.int64),
            branches=tuple(np.asarray(branch, dtype=np.int64) for branch in branches),
            scored=tuple(np.asarray(own, dtype=bool) for own in scored or ()),
            allowed=dict(allowed or {}),
        )


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
