"""PPO: advantages from a learned value of the state (arXiv:1707.06347).

One action a state, or `trials` of them, each with its own reward.

Invariant: values enter the advantages as numbers and are learnt by their own squared error, so no
gradient of the policy flows through them.

Returns and advantages of walks whose decisions have one action each. Pure numpy.

    discounted return    R_t = r_t + gamma R_{t+1}
    GAE                  A_t = d_t + gamma lambda A_{t+1},  d_t = r_t + gamma V_{t+1} - V_t
                         (arXiv:1506.02438)

Invariants: with lambda 1, GAE is the return minus the value; nothing flows from one walk into
another.
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np
import torch
from torch.nn import functional

from memograd.grpo.advantage import STD_FLOOR
from memograd.tasks.memory_ops.learning.experience import Decisions
from memograd.tasks.memory_ops.learning.trainer import GRPOMemoryTrainer, clipped_loss


def discounted_returns(rewards_N: np.ndarray, following_N: np.ndarray, gamma: float) -> np.ndarray:
    """The return of every decision [N]; a decision's follower stands behind it."""
    returns_N = rewards_N.astype(np.float64).copy()
    for row in range(len(returns_N) - 1, -1, -1):
        if following_N[row] >= 0:
            returns_N[row] += gamma * returns_N[following_N[row]]
    return returns_N


def gae(
    rewards_N: np.ndarray,
    values_N: np.ndarray,
    following_N: np.ndarray,
    *,
    gamma: float,
    lambda_: float,
) -> np.ndarray:
    """Generalised advantage estimates [N]; the value behind the end of a walk is 0."""
    advantages_N = np.zeros(len(rewards_N))
    for row in range(len(rewards_N) - 1, -1, -1):
        after = following_N[row]
        value, later = (values_N[after], advantages_N[after]) if after >= 0 else (0.0, 0.0)
        surprise = rewards_N[row] + gamma * value - values_N[row]
        advantages_N[row] = surprise + gamma * lambda_ * later
    return advantages_N


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
