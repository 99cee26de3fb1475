"""How far the policy may move on tokens that an older policy drew.

With A the advantage of a rollout, or of its token t, r_t = policy / old policy of token t, and n
tokens in the rollout:

    token      min(r_t A, clip(r_t) A)            PPO, arXiv:1707.06347; GRPO, arXiv:2402.03300
    sequence   min(s A, clip(s) A)                GSPO, arXiv:2507.18071: s = (r_1 ... r_n)^(1/n)
    product    the same, s = r_1 ... r_n          RLOO, arXiv:2402.14740: an answer is one action
    weight     sg(min(r_t, 1 + high)) A log p_t   CISPO, arXiv:2506.13585: sg stops the gradient

clip(x) keeps x in [1 - epsilon, 1 + epsilon_high]; a high above epsilon leaves room for unlikely
tokens to grow (DAPO's clip-higher, arXiv:2503.14476). Where policy and old policy are equal, all
but `product` have the gradient A/n for every token's log-probability once a rollout's tokens are
averaged; that of `product` is A.

`importance_weights` corrects for a sampler that is another engine and gives the same tokens other
probabilities: min(old policy / sampler, cap) (truncated importance sampling; the cap bounds the
variance).

Invariant: a rollout that is cut into rows has the same ratios as in one row. Proved in
`tests/grpo/test_ratio.py`. May import torch only.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Surrogate:
    """Per token [R, T]: what is maximised, the ratio, and where clipping took the gradient away."""

    objective_RT: torch.Tensor
    ratio_RT: torch.Tensor
    clipped_RT: torch.Tensor


def surrogate(
    ratio: str,
    *,
    logprobs_RT: torch.Tensor,
    old_logprobs_RT: torch.Tensor,
    advantages_RT: torch.Tensor,
    mask_RT: torch.Tensor,
    rollouts_R: torch.Tensor,
    epsilon: float,
    epsilon_high: float,
) -> Surrogate:
    """The surrogate objective by the choice `ratio`.

    `advantages_RT` may be [R, 1]: one for all tokens. `rollouts_R` names each row's rollout; for
    `sequence` and `product` all rows of a rollout must be among these, and every token must be
    scored in one row only for `product`.
    """
    log_ratio_RT = (logprobs_RT - old_logprobs_RT) * mask_RT
    if ratio in ("sequence", "product"):
        log_ratio_RT = _over_rollouts(log_ratio_RT, mask_RT, rollouts_R, mean=ratio == "sequence")
    ratio_RT = log_ratio_RT.exp()
    too_high_RT = (ratio_RT > 1 + epsilon_high) & (advantages_RT > 0)
    if ratio == "weight":
        weight_RT = ratio_RT.detach().clamp(max=1 + epsilon_high)
        return Surrogate(weight_RT * advantages_RT * logprobs_RT, ratio_RT, too_high_RT)
    too_low_RT = (ratio_RT < 1 - epsilon) & (advantages_RT < 0)
    clipped_RT = ratio_RT.clamp(1 - epsilon, 1 + epsilon_high)
    objective_RT = torch.minimum(ratio_RT * advantages_RT, clipped_RT * advantages_RT)
    return Surrogate(objective_RT, ratio_RT, too_low_RT | too_high_RT)


def _over_rollouts(
    values_RT: torch.Tensor, mask_RT: torch.Tensor, rollouts_R: torch.Tensor, *, mean: bool
) -> torch.Tensor:
    """Every token's value [R, T] replaced by the sum, or mean, over its rollout's tokens."""
    _, local_R = torch.unique(rollouts_R, return_inverse=True)
    zeros_K = values_RT.new_zeros(int(local_R.max()) + 1 if len(local_R) else 0)
    total_K = zeros_K.index_add(0, local_R, values_RT.sum(dim=1))
    if mean:
        counts_K = zeros_K.index_add(0, local_R, mask_RT.sum(dim=1).to(values_RT.dtype))
        total_K = total_K / counts_K.clamp_min(1)
    return total_K[local_R][:, None].expand_as(values_RT)


def importance_weights(
    old_logprobs_RT: torch.Tensor, sampler_logprobs_RT: torch.Tensor, *, cap: float
) -> torch.Tensor:
    """min(exp(old - sampler), cap) of every token [R, T], without gradient."""
    return (old_logprobs_RT - sampler_logprobs_RT).detach().exp().clamp(max=cap)
