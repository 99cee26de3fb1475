"""From tokens to one loss: the weight belongs to the rollout, however many rows it became.

A rollout is one row, or several (a conversation whose later prompts do not continue the earlier
tokens), in one token tree or in several. With K rollouts of n_k sampled tokens, the share of k is

    rollout     1 / K                       GRPO, arXiv:2402.03300: every rollout weighs the same
    token       n_k / (n_1 + ... + n_K)     DAPO, arXiv:2503.14476: every sampled token does
    constant    n_k / (K * L)               Dr.GRPO, arXiv:2503.20783: the same, and the loss does
                                            not shrink when answers grow (L: most tokens an answer
                                            may have)

and is spread evenly over the rollout's scored tokens, wherever they are. Shares come from what was
sampled and never from rows, so frameworks' mistake of weighing rows is not expressible here.

Invariant (house contract 3), for every aggregation: splitting a rollout in rows, reordering or
padding rows, cutting them into micro-batches, and giving every row of a rollout twice leave loss
and gradient unchanged. What token-level aggregation does *not* promise: two batches that are
averaged do not weigh as their union does, since its normaliser is the whole batch's tokens. Proved
in `tests/grpo/test_aggregation.py`. May import numpy and torch.
"""

from __future__ import annotations

import numpy as np
import torch


def rollout_shares(
    aggregation: str, tokens_K: np.ndarray, *, max_completion_length: int
) -> np.ndarray:
    """Each rollout's share of the loss [K], from the number of tokens it sampled [K]."""
    tokens_K = np.asarray(tokens_K, dtype=np.float64)
    rollouts = len(tokens_K)
    shares_by_name = {
        "rollout": np.full(rollouts, 1 / rollouts),
        "token": tokens_K / max(1.0, tokens_K.sum()),
        "constant": tokens_K / (rollouts * max_completion_length),
    }
    return np.asarray(shares_by_name[aggregation])


def token_weights(
    mask_RT: torch.Tensor,
    *,
    rollouts_R: torch.Tensor,
    shares_K: torch.Tensor,
    counts_K: torch.Tensor,
) -> torch.Tensor:
    """Weights [R, T] fp32 that spread every rollout's share evenly over its scored tokens.

    `rollouts_R` [R] names each row's rollout; `counts_K` [K] counts the scored tokens of all rows
    of a rollout, also those that are not among these. A rollout without tokens weighs nothing.
    """
    weights_K = shares_K / counts_K.clamp_min(1)
    return mask_RT * weights_K[rollouts_R].float()[:, None]
