"""From the states of inner nodes to scores of branches: what both tree forwards end with.

A node's state predicts its children. Each scored node is predicted once, however many branches run
through it, and then spread over them.

Invariant: tokens that are not scored (observations) never meet the output layer, and their numbers
are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from memograd.policy.token_logprobs import BranchLogprobs, token_logprobs
from memograd.policy.value_head import ValueHead
from memograd.rollout.allowed_tokens import TokenMask
from memograd.rollout.token_tree import TokenTree


def score_branches(
    trees: Sequence[TokenTree],
    hidden_SD: torch.Tensor,
    places: Sequence[np.ndarray],
    head: Callable[[torch.Tensor], torch.Tensor],
    *,
    temperature: float,
    entropy_gradient: bool,
    value_head: ValueHead | None,
) -> BranchLogprobs:
    """Scores of every branch of `trees`, tree after tree.

    `places[t]` says where in `hidden_SD` the states of tree t's inner nodes are, in the order of
    its `inner_M`.
    """
    device = hidden_SD.device
    rows, tokens, branches = [], [], []
    states: list[np.ndarray] = []
    allowed: list[TokenMask | None] = []
    base = nodes = 0
    for tree, place_M in zip(trees, places, strict=True):
        predicted = tree.scored_nodes
        parents = np.searchsorted(tree.inner_M, tree.parents_N[predicted])
        predicting, parent_rows = np.unique(parents, return_inverse=True)
        states.append(place_M[predicting])
        allowed += [tree.allowed.get(int(node)) for node in tree.inner_M[predicting]]
        rows.append(base + parent_rows)
        tokens.append(tree.tokens_N[predicted])
        for branch, scored in zip(tree.branches, tree.scored, strict=True):
            # Where a token is not scored the index is never read.
            index = np.zeros(len(branch), dtype=np.int64)
            index[scored] = nodes + np.searchsorted(predicted, branch[scored])
            branches.append((index, scored))
        base += len(predicting)
        nodes += len(predicted)
    rows_N = torch.from_numpy(np.concatenate(rows)).to(device)
    hidden_MD = hidden_SD[torch.from_numpy(np.concatenate(states)).to(device)]
    logprobs_N, entropies_M = token_logprobs(
        hidden_MD,
        head,
        rows_N,
        torch.from_numpy(np.concatenate(tokens)).to(device),
        temperature=temperature,
        entropy_gradient=entropy_gradient,
        allowed=allowed,
    )
    values_N = None if value_head is None else value_head(hidden_MD)[rows_N]
    return _gather_branches(logprobs_N, entropies_M[rows_N], values_N, branches)


def _gather_branches(
    logprobs_N: torch.Tensor,
    entropies_N: torch.Tensor,
    values_N: torch.Tensor | None,
    branches: Sequence[tuple[np.ndarray, np.ndarray]],
) -> BranchLogprobs:
    """Spread node scores over the branches that run through them, padded with zeros.

    A branch is, for each of its tokens, an index into the nodes and whether the token is scored.
    """
    longest = max((len(index) for index, _ in branches), default=0)
    index_RT = np.zeros((len(branches), longest), dtype=np.int64)
    mask_RT = np.zeros((len(branches), longest), dtype=bool)
    for row, (index, scored) in enumerate(branches):
        index_RT[row, : len(index)] = index
        mask_RT[row, : len(index)] = scored
    device = logprobs_N.device
    mask = torch.from_numpy(mask_RT).to(device)
    if not mask_RT.any():
        # Nothing is scored: nothing to gather, but the shape still says how many branches there
        # are.
        nothing = logprobs_N.new_zeros(mask.shape)
        return BranchLogprobs(nothing, nothing, mask, None if values_N is None else nothing)
    chosen = torch.from_numpy(index_RT).to(device)
    return BranchLogprobs(
        logprobs_N[chosen] * mask,
        entropies_N[chosen] * mask,
        mask,
        None if values_N is None else values_N[chosen] * mask,
    )
