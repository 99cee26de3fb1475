"""The tree forward: log-probabilities of all branches of token trees, each shared token once.

Two passes of the model's body. The *trunk* pass runs the prompts, keeping keys and values with
their graph. The *node* pass runs every inner node of the answer tries in one packed row a tree: a
node sees the whole trunk and its own ancestors (a 4-D mask), at the position it has in its branch.
Leaves are never run: nothing is predicted from them. Gradients reach the prompt through its keys
and values.

    tokens through the model:  rows  G * (P + C)      tree  P + (distinct answer prefixes)

The mask costs M x (P + M) for M inner nodes, which is small while answers are shorter than prompts.

Invariant (house contract 2): values and gradients equal `memograd.policy.row_forward` to float
rounding, for any trees. Proved by `tests/policy/test_forward.py`, measured on SmolLM2 by
`benchmarks/tree_exactness.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

from memograd.policy.branch_scores import score_branches
from memograd.policy.model_parts import body_of, head_of
from memograd.policy.token_logprobs import BranchLogprobs
from memograd.policy.value_head import ValueHead
from memograd.rollout.token_tree import TokenTree


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
    than the row forward; `memograd.policy.verify` finds that out before training starts.
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
