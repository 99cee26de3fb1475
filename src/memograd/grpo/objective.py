"""`Objective`: what one step optimises, as one immutable value.

The learner and the batch pass this around; the loss gets its part of it (`terms`).
`Objective.from_config` is the only reader of the settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memograd.config import TrainConfig
from memograd.config.algorithms import Advantage, Aggregation, KlEstimator, Ratio
from memograd.grpo.loss import LossTerms
from memograd.grpo.sampler_gap import GapLimits


@dataclass(frozen=True)
class Objective:
    """The choices and coefficients of the loss and of the step; meanings as in `TrainConfig`."""

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
