"""The GRPO loss as a pure function of tensors.

Per token, with ratio = exp(logprob - old_logprob) and advantage A of its rollout:

    objective = min(ratio * A, clip(ratio, 1 - epsilon, 1 + epsilon) * A)
                - beta * k3(reference, policy) + entropy_coef * entropy
    k3 = exp(ref - logprob) - (ref - logprob) - 1    >= 0, unbiased (Schulman, "Approximating KL")

The loss is minus the sum of objectives weighted by `weights_RT`. A rollout's weights sum to its
share of the batch, whatever its length and however many rows or micro-batches it is cut into.

Invariant (house contract 3): splitting, reordering or padding rows leaves loss and gradient
unchanged. Proved in `tests/grpo/test_loss.py`, against an independent implementation and finite
differences too. Sources: GRPO arXiv:2402.03300; PPO's clipped objective arXiv:1707.06347. May
import torch only.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class LossParts:
    """The loss and what a log wants to know, each weighted by `weights_RT` (0-d tensors).

    `loss` carries the gradient; `kl` (k3, nats a token), `entropy` (nats a token) and
    `clip_fraction` (share of tokens whose ratio was clipped) do not.
    """

    loss: torch.Tensor
    kl: torch.Tensor
    entropy: torch.Tensor
    clip_fraction: torch.Tensor


def rollout_weights(mask_RT: torch.Tensor, share: float) -> torch.Tensor:
    """Weights [R, T] that give every rollout `share`, spread evenly over its tokens.

    A rollout without tokens gets none: there is nothing to weigh.
    """
    lengths_R1 = mask_RT.sum(dim=1, keepdim=True).clamp_min(1)
    return mask_RT * (share / lengths_R1)


def grpo_loss(
    *,
    logprobs_RT: torch.Tensor,
    old_logprobs_RT: torch.Tensor,
    reference_logprobs_RT: torch.Tensor | None,
    entropies_RT: torch.Tensor,
    advantages_R: torch.Tensor,
    weights_RT: torch.Tensor,
    epsilon: float,
    beta: float,
    entropy_coef: float,
) -> LossParts:
    """The loss of R rows of T tokens; padding is where `weights_RT` is 0.

    `reference_logprobs_RT` may be None when `beta` is 0 and the KL is not wanted (it is reported
    as 0 then).
    """
    ratio_RT = (logprobs_RT - old_logprobs_RT).exp()
    clipped_RT = ratio_RT.clamp(1 - epsilon, 1 + epsilon)
    advantages_R1 = advantages_R[:, None]
    objective_RT = torch.minimum(ratio_RT * advantages_R1, clipped_RT * advantages_R1)
    kl_RT = torch.zeros_like(logprobs_RT)
    if reference_logprobs_RT is not None:
        gap_RT = reference_logprobs_RT - logprobs_RT
        kl_RT = gap_RT.exp() - gap_RT - 1
    total_RT = objective_RT - beta * kl_RT + entropy_coef * entropies_RT
    was_clipped_RT = ((ratio_RT < 1 - epsilon) & (advantages_R1 < 0)) | (
        (ratio_RT > 1 + epsilon) & (advantages_R1 > 0)
    )
    return LossParts(
        loss=-(total_RT * weights_RT).sum(),
        kl=(kl_RT * weights_RT).sum().detach(),
        entropy=(entropies_RT * weights_RT).sum().detach(),
        clip_fraction=(was_clipped_RT * weights_RT).sum().detach(),
    )
