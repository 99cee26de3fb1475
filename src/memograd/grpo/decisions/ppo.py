"""PPO: advantages from a learned value of the state (arXiv:1707.06347).

One action a state, or `trials` of them, each with its own reward.

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
    compares: ClassVar[bool] = False

    def targets(self, decisions: Decisions) -> np.ndarray:
        """Advantages with mean 0 and spread 1, and the returns that values should be [N, 2 G]."""
        with torch.no_grad():
            values_N1 = self.network(decisions.states)[1].numpy().astype(np.float64)[:, None]
        advantages_NG = decisions.rewards_NG - values_N1
        if self.config.gamma > 0:
            advantages_NG = gae(
                decisions.rewards_NG[:, 0],
                values_N1[:, 0],
                decisions.following_N,
                gamma=self.config.gamma,
                lambda_=self.config.gae_lambda,
            )[:, None]
        spread = advantages_NG.std() + STD_FLOOR
        scaled_NG = (advantages_NG - advantages_NG.mean()) / spread
        return np.concatenate([scaled_NG, advantages_NG + values_N1], axis=1)

    def loss(
        self, decisions: Decisions, targets: np.ndarray, rows: np.ndarray
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """The clipped surrogate and the values' squared error."""
        logits_BA, values_B = self.network(decisions.states.take(rows))
        scaled_NG, returns_NG = np.split(targets, 2, axis=1)
        loss, measured = clipped_loss(logits_BA, decisions, scaled_NG, rows, self.config)
        returns_BG = torch.from_numpy(returns_NG[rows]).float()
        value_loss = functional.mse_loss(values_B[:, None].expand_as(returns_BG), returns_BG)
        return loss + VALUE_COEF * value_loss, {
            **measured,
            "value_loss": float(value_loss.detach()),
        }
