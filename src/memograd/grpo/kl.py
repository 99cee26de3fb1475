"""How far the policy is from the model before training: three estimators of one divergence.

With d = log policy - log reference of a token that the policy drew (Schulman, "Approximating KL
Divergence"):

    k1 = d                    unbiased; of either sign
    k2 = d^2 / 2              biased, small variance; its gradient is that of the true KL
    k3 = exp(-d) + d - 1      unbiased, never negative; GRPO's (arXiv:2402.03300)

In the loss an estimator is differentiated. On tokens that the policy itself drew, the gradient of
k1 is zero on average and that of k3 is another divergence's; multiplied by the probability ratio
(`kl_correction=ratio`, TRL's `use_bias_correction_kl`) both become right. In the reward it is a
number: the sum over the rollout's tokens (RLOO, arXiv:2402.14740).

Invariant: all three have the mean KL(policy || reference) to second order in d, k1 and k3 exactly.
Proved in `tests/grpo/test_kl.py`. May import torch only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

_ESTIMATORS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "k1": lambda gap: gap,
    "k2": lambda gap: gap.square() / 2,
    "k3": lambda gap: torch.exp(-gap) + gap - 1,
}


def token_kl(
    kl: str, logprobs_RT: torch.Tensor, reference_logprobs_RT: torch.Tensor
) -> torch.Tensor:
    """The estimate of every token [R, T] in nats, by the estimator `kl`."""
    return _ESTIMATORS[kl](logprobs_RT - reference_logprobs_RT)
