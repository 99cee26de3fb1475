"""The tree forwards: log-probabilities of all branches of token trees, each shared token once.

    packed_logprobs   all trees of a call stand in one depth-first row (`policy.tree_attention`)
                      and go through the model's body once, without a cache, under the attention of
                      `memograd.policy.tree_attention`. Whatever works on a plain pass (sharding,
                      computing layers again, compiling) works on it, and nothing is padded
    tree_logprobs     two passes, for attention that cannot be exchanged: the *trunk* pass runs the
                      prompts and keeps keys and values with their graph; the *node* pass runs every
                      inner node in one row a tree, where it sees the trunk and its own ancestors (a
                      4-D mask of M x (P + M) for M inner nodes)

    tokens through the model:  rows  G * (P + C)      trees  P + (distinct answer prefixes)

Both end with `score_branches`: a node's state predicts its children, each once, however many
branches run through them. Leaves are never run, since nothing is predicted from them, and tokens
that are not scored (observations) never meet the output layer; their numbers are 0.

Invariant (house contract 2): values and gradients equal `memograd.policy.rows` to float rounding,
for any trees. Proved by `tests/policy/test_forward.py`, measured on SmolLM2 by
`benchmarks/tree_exactness.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

from memograd.policy.token_logprobs import (
    BranchLogprobs,
    ValueHead,
    body_of,
    head_of,
    token_logprobs,
)
from memograd.policy.tree_attention import attending, pack
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import TokenMask


def packed_logprobs(
    model: PreTrainedModel,
    trees: Sequence[TokenTree],
    *,
    temperature: float,
    entropy_gradient: bool = False,
    value_head: ValueHead | None = None,
) -> BranchLogprobs:
    """Log-probabilities of every branch of `trees`; as `memograd.policy.tree_forward`.

    `model` must attend by `TREE` (`use_tree_attention`).
    """
    row = pack(trees)
    with attending(row):
        hidden_ND = body_of(model)(
            input_ids=torch.from_numpy(row.tokens_N)[None].to(model.device),
            position_ids=torch.from_numpy(row.positions_N)[None].to(model.device),
            use_cache=False,
        ).last_hidden_state[0]
    return score_branches(
        trees,
        hidden_ND,
        row.nodes,
        head_of(model),
        temperature=temperature,
        entropy_gradient=entropy_gradient,
        value_head=value_head,
    )


def tree_logprobs(
    model: PreTrainedModel,
    trees: Sequence[TokenTree],
    *,
    temperature: float,
    entropy_gradient: bool = False,
    value_head: ValueHead | None = None,
) -> BranchLogprobs:
    """Log-probabilities of every branch of `trees`, in order, tree after tree (R branches in all).

    With a `value_head` there are values too.

    `model` is a causal language model whose output is `head(body(ids))`; its body must take a 4-D
    additive mask. Models that do something else (sliding windows, scaled logits) give other numbers
    than the row forward; `memograd.policy.forward_choice` finds that out before training starts.
    """
    device = model.device
    body, head = body_of(model), head_of(model)
    # At least one, if only of padding: the passes are the same ones for all trees.
    trunk_length = max(1, *(len(tree.trunk) for tree in trees))
    inner_count = max(1, *(len(tree.inner_M) for tree in trees))

    cache = DynamicCache()
    # Right padding needs no mask: attention is causal, and the node pass masks what is padded.
    trunks_BP = np.zeros((len(trees), trunk_length), dtype=np.int64)
    for row, tree in enumerate(trees):
        trunks_BP[row, : len(tree.trunk)] = tree.trunk
    body(input_ids=torch.from_numpy(trunks_BP).to(device), past_key_values=cache, use_cache=True)

    nodes_BM = np.zeros((len(trees), inner_count), dtype=np.int64)
    positions_BM = np.zeros((len(trees), inner_count), dtype=np.int64)
    visible_BMK = np.zeros((len(trees), inner_count, trunk_length + inner_count), dtype=bool)
    for row, tree in enumerate(trees):
        count = len(tree.inner_M)
        nodes_BM[row, :count] = tree.tokens_N[tree.inner_M]
        positions_BM[row, :count] = len(tree.trunk) + tree.depths_N[tree.inner_M]
        visible_BMK[row, :count, : len(tree.trunk)] = True
        visible_BMK[row, :count, trunk_length : trunk_length + count] = tree.ancestors_MM
        # A padded row must see something, or its softmax is NaN and poisons the gradients.
        visible_BMK[row, count:, trunk_length] = True
    hidden_BMD = body(
        input_ids=torch.from_numpy(nodes_BM).to(device),
        position_ids=torch.from_numpy(positions_BM).to(device),
        attention_mask=additive_mask(visible_BMK, model.dtype, device),
        past_key_values=cache,
        use_cache=True,
    ).last_hidden_state

    places = [row * inner_count + np.arange(len(tree.inner_M)) for row, tree in enumerate(trees)]
    return score_branches(
        trees,
        hidden_BMD.flatten(0, 1),
        places,
        head,
        temperature=temperature,
        entropy_gradient=entropy_gradient,
        value_head=value_head,
    )


def additive_mask(
    visible_BQK: np.ndarray, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    """A 4-D mask [B, 1, Q, K] in the form every attention implementation adds to its scores."""
    visible = torch.from_numpy(visible_BQK).to(device)[:, None]
    mask = torch.zeros(visible.shape, dtype=dtype, device=device)
    return mask.masked_fill_(~visible, torch.finfo(dtype).min)


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
        # are, and a gradient of zero still comes back through the layers, as FSDP2 expects.
        nothing = logprobs_N.sum() * mask
        return BranchLogprobs(nothing, nothing, mask, None if values_N is None else nothing)
    chosen = torch.from_numpy(index_RT).to(device)
    return BranchLogprobs(
        logprobs_N[chosen] * mask,
        entropies_N[chosen] * mask,
        mask,
        None if values_N is None else values_N[chosen] * mask,
    )
