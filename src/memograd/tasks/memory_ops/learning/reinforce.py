"""REINFORCE: an action's return against the mean return (Williams 1992).

One action a state, or `trials` of them, each with its own reward.

Invariant: the baseline is the mean over the batch, so adding a constant to all returns changes
nothing. Imports what the trainer imports.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from memograd.grpo.advantage import STD_FLOOR
from memograd.tasks.memory_ops.learning.experience import Decisions
from memograd.tasks.memory_ops.learning.ppo import discounted_returns
from memograd.tasks.memory_ops.learning.trainer import GRPOMemoryTrainer


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
