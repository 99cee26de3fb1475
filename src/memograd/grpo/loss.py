"""The loss as a pure function of tensors, for every algorithm of the family.

Per token, with A the advantage of its rollout, or its own:

    objective = importance * surrogate(ratio, A) - beta * kl + entropy_coef * entropy

The surrogate is a choice of `memograd.grpo.ratio`, the KL estimator one of `memograd.grpo.kl`. The
loss is minus the sum of objectives weighted by `weights_RT`, which `memograd.grpo.aggregation`
makes: a rollout's weights sum to its share of the batch.

Invariant (house contract 3): splitting a rollout in rows, reordering or padding rows leaves loss
and gradient unchanged. Proved in `tests/grpo/test_loss.py`, against an independent implementation
and finite differences too, and against TRL's numbers in `tests/grpo/test_trl_agreement.py`. May
import torch only.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from memograd.grpo.kl import token_kl
from memograd.grpo.ratio import surrogate


@dataclass(frozen=True)
class LossParts:
    """The loss and what a log wants to know, each weighted by `weights_RT` (0-d tensors).

    `loss` carries the gradient; `kl` (nats a token), `entropy` (nats a token) and `clip_fraction`
    (share of tokens whose ratio was clipped) do not.
    """

    loss: torch.Tensor
    kl: torch.Tensor
    entropy: torch.Tensor
    clip_fraction: torch.Tensor


def grpo_loss(
    *,
    logprobs_RT: torch.Tensor,
    old_logprobs_RT: torch.Tensor,
    reference_logprobs_RT: torch.Tensor | None,
    entropies_RT: torch.Tensor,
    advantages_RT: torch.Tensor,
    weights_RT: torch.Tensor,
    epsilon: float,
    beta: float,
    entropy_coef: float,
    rollouts_R: torch.Tensor | None = None,
    epsilon_high: float | None = None,
    ratio: str = "token",
    kl: str = "k3",
    kl_correction: str = "off",
    importance_RT: torch.Tensor | None = None,
) -> LossParts:
    """The loss of R rows of T tokens; what is not scored is where `weights_RT` is 0.

    `advantages_RT` may be [R, 1]: one for all tokens. `reference_logprobs_RT` may be None when
    `beta` is 0 and the KL is not wanted (it is reported as 0 then). `rollouts_R` names each row's
    rollout; None: every row is one. `epsilon_high` None: as `epsilon`. `importance_RT` multiplies
    the surrogate only.
    """
    if rollouts_R is None:
        rollouts_R = torch.arange(len(logprobs_RT), device=logprobs_RT.device)
    gain = surrogate(
        ratio,
        logprobs_RT=logprobs_RT,
        old_logprobs_RT=old_logprobs_RT,
        advantages_RT=advantages_RT,
        mask_RT=weights_RT > 0,
        rollouts_R=rollouts_R,
        epsilon=epsilon,
        epsilon_high=epsilon if epsilon_high is None else epsilon_high,
    )
    objective_RT = gain.objective_RT
    if importance_RT is not None:
        objective_RT = importance_RT * objective_RT
    kl_RT = torch.zeros_like(logprobs_RT)
    if reference_logprobs_RT is not None:
        kl_RT = token_kl(kl, logprobs_RT, reference_logprobs_RT)
    penalty_RT = kl_RT * gain.ratio_RT if kl_correction == "ratio" else kl_RT
    total_RT = objective_RT - beta * penalty_RT + entropy_coef * entropies_RT
    return LossParts(
        loss=-(total_RT * weights_RT).sum(),
        kl=(kl_RT * weights_RT).sum().detach(),
        entropy=(entropies_RT * weights_RT).sum().detach(),
        clip_fraction=(gain.clipped_RT * weights_RT).sum().detach(),
    )
