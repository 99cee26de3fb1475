"""PPO: one action a state, advantages from a learned value of the state (arXiv:1707.06347).

Invariant: values enter the advantages as numbers and are learnt by their own squared error, so no
gradient of the policy flows through them (`tests/grpo/test_decisions_algorithms.py`). Imports
torch.
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np
import torch
from torch.nn import functional

from memograd.grpo.advantage import STD_FLOOR
from memograd.grpo.decisions.experience import Decisions
from memograd.grpo.decisions.returns import gae
from memograd.grpo.decisions.trainer import GRPOMemoryTrainer, clipped_loss

VALUE_COEF: Final = 0.5


class PPOMemoryTrainer(GRPOMemoryTrainer):
    """Clipped surrogate over generalised advantages, and a value of the state."""

    name: ClassVar[str] = "ppo"

    @property
    def group_size(self) -> int:
        """One action a state."""
        return 1

    def targets(self, decisions: Decisions) -> np.ndarray:
        """Advantages with mean 0 and spread 1, and the returns that values should be [N, 2]."""
        with torch.no_grad():
            values_N = self.network(decisions.states)[1].numpy().astype(np.float64)
        advantages_N = gae(
            decisions.rewards_NG[:, 0],
            values_N,
            decisions.following_N,
            gamma=self.config.gamma,
            lambda_=self.config.gae_lambda,
        )
        scaled_N = (advantages_N - advantages_N.mean()) / (advantages_N.std() + STD_FLOOR)
        return np.stack([scaled_N, advantages_N + values_N], axis=1)

    def loss(
        self, decisions: Decisions, targets: np.ndarray, rows: np.ndarray
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """The clipped surrogate and the values' squared error."""
        logits_BA, values_B = self.network(decisions.states.take(rows))
        loss, measured = clipped_loss(logits_BA, decisions, targets[:, :1], rows, self.config)
        value_loss = functional.mse_loss(values_B, torch.from_numpy(targets[rows, 1]).float())
        return loss + VALUE_COEF * value_loss, {
            **measured,
            "value_loss": float(value_loss.detach()),
        }
