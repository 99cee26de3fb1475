"""The loss as a pure function of tensors, for every algorithm of the family, and its settings.

Per token, with A the advantage of its rollout, or its own:

    objective = importance * surrogate(ratio, A) - beta * kl + entropy_coef * entropy

The loss is minus the sum of the objectives, each weighted by `weights_RT`: the weights of a
rollout's tokens sum to its share of the batch.

**Surrogate** (`surrogate`): how far the policy may move on tokens that an older policy drew. With
r_t = policy / old policy of token t, and n tokens in the rollout:

    token      min(r_t A, clip(r_t) A)            PPO, arXiv:1707.06347; GRPO, arXiv:2402.03300
    sequence   min(s A, clip(s) A)                GSPO, arXiv:2507.18071: s = (r_1 ... r_n)^(1/n)
    product    the same, s = r_1 ... r_n          RLOO, arXiv:2402.14740: an answer is one action
    weight     sg(min(r_t, 1 + high)) A log p_t   CISPO, arXiv:2506.13585: sg stops the gradient

clip(x) keeps x in [1 - epsilon, 1 + epsilon_high]; a high above epsilon leaves room for unlikely
tokens to grow (DAPO's clip-higher, arXiv:2503.14476). Where policy and old policy are equal, all
but `product` have the gradient A/n for every token's log-probability once a rollout's tokens are
averaged; that of `product` is A. A sampler that is another engine gives the same tokens other
probabilities: `importance_weights` corrects for it by min(old policy / sampler, cap) (truncated
importance sampling; the cap bounds the variance).

**KL** (`token_kl`): how far the policy is from the model before training. With d = log policy - log
reference of a token that the policy drew (Schulman, "Approximating KL Divergence"):

    k1 = d                    unbiased; of either sign
    k2 = d^2 / 2              biased, small variance; its gradient is that of the true KL
    k3 = exp(-d) + d - 1      unbiased, never negative; GRPO's

In the loss an estimator is differentiated. On tokens that the policy itself drew, the gradient of
k1 is zero on average and that of k3 is another divergence's; multiplied by the probability ratio
(`kl_correction=ratio`, TRL's `use_bias_correction_kl`) both become right. In the reward it is a
number: the sum over the rollout's tokens (RLOO). All three have the mean KL(policy || reference) to
second order in d, k1 and k3 exactly.

**Shares** (`rollout_shares`): the weight belongs to the rollout, however many rows it became. With
K rollouts of n_k sampled tokens, the share of k is

    rollout     1 / K                       GRPO: every rollout weighs the same
    token       n_k / (n_1 + ... + n_K)     DAPO: every sampled token does
    constant    n_k / (K * L)               Dr.GRPO, arXiv:2503.20783: the same, and the loss does
                                            not shrink when answers grow (L: most tokens an answer
                                            may have)

and is spread evenly over the rollout's scored tokens, wherever they are. Shares come from what was
sampled and never from rows, so weighing rows by mistake is not expressible here.

An `Objective` is what one step optimises, as one immutable value: the learner and the batch pass it
around, and the loss gets its part of it (`terms`).

Invariant (house contract 3), for every choice: splitting a rollout in rows, reordering or padding
rows, cutting them into micro-batches, and giving every row of a rollout twice leave loss and
gradient unchanged. What `token` does *not* promise: two batches that are averaged do not weigh as
their union does, since its normaliser is the whole batch's tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from memograd.config import TrainConfig
from memograd.config.algorithms import Advantage, Aggregation, KlEstimator, Ratio
from memograd.grpo.sampler_gap import GapLimits

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


@dataclass(frozen=True)
class LossTerms:
    """What the objective is made of. `epsilon_high` None: as `epsilon`."""

    ratio: Ratio = "token"
    epsilon: float = 0.2
    epsilon_high: float | None = None
    beta: float = 0.0
    kl: KlEstimator = "k3"
    kl_correction: Literal["off", "ratio"] = "off"
    entropy_coef: float = 0.0

    @property
    def high(self) -> float:
        """How far above 1 a ratio may be."""
        return self.epsilon if self.epsilon_high is None else self.epsilon_high


@dataclass(frozen=True)
class Surrogate:
    """Per token [R, T]: what is maximised, the ratio, and where clipping took the gradient away."""

    objective_RT: torch.Tensor
    ratio_RT: torch.Tensor
    clipped_RT: torch.Tensor


def surrogate(
    terms: LossTerms,
    *,
    logprobs_RT: torch.Tensor,
    old_logprobs_RT: torch.Tensor,
    advantages_RT: torch.Tensor,
    mask_RT: torch.Tensor,
    rollouts_R: torch.Tensor,
) -> Surrogate:
    """The surrogate objective by the choice `terms.ratio`.

    `advantages_RT` may be [R, 1]: one for all tokens. `rollouts_R` names each row's rollout; for
    `sequence` and `product` all rows of a rollout must be among these, and every token must be
    scored in one row only for `product`.
    """
    log_ratio_RT = (logprobs_RT - old_logprobs_RT) * mask_RT
    if terms.ratio in ("sequence", "product"):
        log_ratio_RT = _over_rollouts(
            log_ratio_RT, mask_RT, rollouts_R, mean=terms.ratio == "sequence"
        )
    ratio_RT = log_ratio_RT.exp()
    too_high_RT = (ratio_RT > 1 + terms.high) & (advantages_RT > 0)
    if terms.ratio == "weight":
        weight_RT = ratio_RT.detach().clamp(max=1 + terms.high)
        return Surrogate(weight_RT * advantages_RT * logprobs_RT, ratio_RT, too_high_RT)
    too_low_RT = (ratio_RT < 1 - terms.epsilon) & (advantages_RT < 0)
    clipped_RT = ratio_RT.clamp(1 - terms.epsilon, 1 + terms.high)
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
    terms: LossTerms,
    *,
    logprobs_RT: torch.Tensor,
    old_logprobs_RT: torch.Tensor,
    reference_logprobs_RT: torch.Tensor | None,
    entropies_RT: torch.Tensor,
    advantages_RT: torch.Tensor,
    weights_RT: torch.Tensor,
    rollouts_R: torch.Tensor | None = None,
    importance_RT: torch.Tensor | None = None,
) -> LossParts:
    """The loss of R rows of T tokens; what is not scored is where `weights_RT` is 0.

    `advantages_RT` may be [R, 1]: one for all tokens. `reference_logprobs_RT` may be None when
    `terms.beta` is 0 and the KL is not wanted (it is reported as 0 then). `rollouts_R` names each
    row's rollout; None: every row is one. `importance_RT` multiplies the surrogate only.
    """
    if rollouts_R is None:
        rollouts_R = torch.arange(len(logprobs_RT), device=logprobs_RT.device)
    gain = surrogate(
        terms,
        logprobs_RT=logprobs_RT,
        old_logprobs_RT=old_logprobs_RT,
        advantages_RT=advantages_RT,
        mask_RT=weights_RT > 0,
        rollouts_R=rollouts_R,
    )
    objective_RT = gain.objective_RT
    if importance_RT is not None:
        objective_RT = importance_RT * objective_RT
    kl_RT = torch.zeros_like(logprobs_RT)
    if reference_logprobs_RT is not None:
        kl_RT = token_kl(terms.kl, logprobs_RT, reference_logprobs_RT)
    penalty_RT = kl_RT * gain.ratio_RT if terms.kl_correction == "ratio" else kl_RT
    total_RT = objective_RT - terms.beta * penalty_RT + terms.entropy_coef * entropies_RT
    return LossParts(
        loss=-(total_RT * weights_RT).sum(),
        kl=(kl_RT * weights_RT).sum().detach(),
        entropy=(entropies_RT * weights_RT).sum().detach(),
        clip_fraction=(gain.clipped_RT * weights_RT).sum().detach(),
    )


@dataclass(frozen=True)
class Objective:
    """The choices and coefficients of the loss and of the step; meanings as in `TrainConfig`, whose
    only reader for them is `from_config`."""

    epsilon: float = 0.2
    beta: float = 0.0
    entropy_coef: float = 0.0
    temperature: float = 1.0
    num_iterations: int = 1
    minibatches: int = 1
    max_grad_norm: float = 1.0
    advantage: Advantage = "group"
    reward_normalisation: Literal["total", "each"] = "total"
    ratio: Ratio = "token"
    epsilon_high: float | None = None
    aggregation: Aggregation = "rollout"
    max_completion_length: int = 16
    overlong_share: float = 0.0
    kl: KlEstimator = "k3"
    kl_in: Literal["loss", "reward"] = "loss"
    kl_correction: Literal["off", "ratio"] = "off"
    importance_cap: float | None = None
    gamma: float = 1.0
    gae_lambda: float = 0.95
    value_coef: float = 0.1
    value_epsilon: float = 0.2
    gap: GapLimits | None = None

    @classmethod
    def from_config(cls, config: TrainConfig, gap: GapLimits | None = None) -> Objective:
        """The objective that the settings describe; `gap`: where another engine samples, what its
        log-probabilities may differ by."""
        names = set(cls.__dataclass_fields__) - {"gap"}
        return cls(**{name: getattr(config, name) for name in names}, gap=gap)

    @property
    def terms(self) -> LossTerms:
        """What the loss is made of; no KL where that is part of the reward."""
        return LossTerms(
            ratio=self.ratio,
            epsilon=self.epsilon,
            epsilon_high=self.epsilon_high,
            beta=self.beta if self.kl_in == "loss" else 0.0,
            kl=self.kl,
            kl_correction=self.kl_correction,
            entropy_coef=self.entropy_coef,
        )

    @property
    def reward_beta(self) -> float:
        """The weight of the KL penalty in the reward: 0 where the KL is part of the loss."""
        return self.beta if self.kl_in == "reward" else 0.0

    @property
    def needs_every_group(self) -> bool:
        """Whether a group without advantages still has a gradient, or may get advantages."""
        return self.beta > 0 or self.entropy_coef > 0 or self.has_values

    @property
    def has_values(self) -> bool:
        """Whether a value head is trained, and advantages are token by token."""
        return self.advantage == "gae"
