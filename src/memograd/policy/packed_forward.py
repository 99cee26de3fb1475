"""The packed forward: log-probabilities of all branches of trees by one pass over one row.

All trees of a call stand in one depth-first row (`memograd.policy.packed_row`), which goes through
the model's body once, without a cache of keys and values, under the attention of
`memograd.policy.tree_attention`. So whatever works on a plain pass of a model (sharding, computing
layers again, compiling) works on it, nothing is padded, and long answers do not pay for each other.

    tokens through the model:  rows  G * (P + C)      packed  P + (distinct answer prefixes)

Invariant (house contract 2): values and gradients equal `memograd.policy.row_forward` to float
rounding, for any trees. Proved by `tests/policy/test_forward.py`, measured on SmolLM2 by
`benchmarks/tree_exactness.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from memograd.policy.branch_scores import score_branches
from memograd.policy.model_parts import body_of, head_of
from memograd.policy.packed_row import pack
from memograd.policy.token_logprobs import BranchLogprobs
from memograd.policy.tree_attention import attending
from memograd.policy.value_head import ValueHead
from memograd.rollout.token_tree import TokenTree


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
