"""The algorithms beside GRPO: REINFORCE, PPO, one reward a walk, and copying gold operations.

    REINFORCE    an action's return against the batch's mean return (Williams 1992)
    PPO          advantages from a learned value of the state (arXiv:1707.06347)
    trajectory   whole walks through the same episode compared with each other, one reward each:
                 how most memory agents are trained; the baseline of credit assignment
    supervised   told at each of its own decisions what a careful keeper would have done there
                 (DAgger, arXiv:1011.0686): the honest baseline

    discounted return    R_t = r_t + gamma R_{t+1}
    GAE                  A_t = d_t + gamma lambda A_{t+1},  d_t = r_t + gamma V_{t+1} - V_t
                         (arXiv:1506.02438)

REINFORCE and PPO hear of one action a state, or of `trials`, each with its own reward.

Invariants: adding a constant to all returns changes nothing in REINFORCE; values enter PPO's
advantages as numbers, and with lambda 1 GAE is the return minus the value; nothing flows from one
walk into another, and walks weigh the same however long they are; decisions without a gold
operation have no gradient. Imports what the trainer imports.
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np
import torch
from torch.nn import functional

from memograd.errors import BadInput
from memograd.grpo.advantage import STD_FLOOR, group_advantages
from memograd.tasks.memory_ops.learning.experience import Decisions
from memograd.tasks.memory_ops.learning.trainer import GRPOMemoryTrainer, clipped_loss


class ReinforceMemoryTrainer(GRPOMemoryTrainer):
    """Policy gradient by returns, with the batch's mean as baseline and its spread as scale."""

    name: ClassVar[str] = "reinforce"
    compares: ClassVar[bool] = False

    def targets(self, decisions: Decisions) -> np.ndarray:
        """Returns, brought to mean 0 and spread 1 over the batch [N, G]."""
        returns_NG = decisions.rewards_NG
        if self.config.gamma > 0:
            returns_NG = discounted_returns(
                returns_NG[:, 0], decisions.following_N, self.config.gamma
            )[:, None]
        scaled_NG: np.ndarray = (returns_NG - returns_NG.mean()) / (returns_NG.std() + STD_FLOOR)
        return scaled_NG


VALUE_COEF: Final = 0.5
NO_GOLD: Final = (
    "algorithm=supervised needs logs with gold operations, and these have none: train on generated"
    " logs, or choose algorithm=grpo."
)


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


class TrajectoryMemoryTrainer(GRPOMemoryTrainer):
    """GRPO over walks: `num_generations` walks, one behind the other, go through one episode."""

    name: ClassVar[str] = "trajectory"
    compares: ClassVar[bool] = False

    @property
    def group_size(self) -> int:
        """One action a state; the group are the walks."""
        return 1

    def targets(self, decisions: Decisions) -> np.ndarray:
        """The advantage of each decision's walk [N, 1]; raises BadInput without groups of walks."""
        walks, size = len(decisions.outcomes_W), self.config.num_generations
        if not walks or walks % size:
            raise BadInput(
                f"Credit by whole walks compares {size} walks through the same log, and these"
                f" decisions have {walks} rewards of walks: collect them with by_outcome=True,"
                " num_generations walks behind each other."
            )
        advantages_W = group_advantages(
            decisions.outcomes_W, [size] * (walks // size), self.config.advantage
        ).advantages_K
        lengths_W = np.bincount(decisions.walk_N, minlength=walks)
        weights_W = lengths_W.mean() / lengths_W
        targets_N: np.ndarray = (advantages_W * weights_W)[decisions.walk_N]
        return targets_N[:, None]


class SupervisedMemoryTrainer(GRPOMemoryTrainer):
    """Cross entropy against the gold operations."""

    name: ClassVar[str] = "supervised"
    compares: ClassVar[bool] = False

    @property
    def group_size(self) -> int:
        """One action a state."""
        return 1

    def targets(self, decisions: Decisions) -> np.ndarray:
        """The gold actions [N, 1]; raises BadInput where there is none in the whole batch."""
        if not (decisions.gold_N >= 0).any():
            raise BadInput(NO_GOLD)
        return decisions.gold_N[:, None]

    def loss(
        self, decisions: Decisions, targets: np.ndarray, rows: np.ndarray
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Mean cross entropy over the decisions that have a gold operation."""
        told = rows[targets[rows, 0] >= 0]
        logits_BA, _ = self.network(decisions.states.take(told if len(told) else rows))
        if not len(told):
            return logits_BA.masked_fill(torch.isinf(logits_BA), 0.0).sum() * 0.0, {}
        gold_B = torch.from_numpy(targets[told, 0])
        right = float((logits_BA.argmax(dim=1) == gold_B).float().mean())
        return functional.cross_entropy(logits_BA, gold_B), {"gold_accuracy": right}
