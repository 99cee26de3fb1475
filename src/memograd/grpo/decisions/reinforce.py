"""REINFORCE: one action a state, its return against the mean return (Williams 1992).

Invariant: the baseline is the mean over the batch, so adding a constant to all returns changes
nothing (`tests/grpo/test_decisions_algorithms.py`). Imports what the trainer imports.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from memograd.grpo.advantage import STD_FLOOR
from memograd.grpo.decisions.experience import Decisions
from memograd.grpo.decisions.returns import discounted_returns
from memograd.grpo.decisions.trainer import GRPOMemoryTrainer


class ReinforceMemoryTrainer(GRPOMemoryTrainer):
    """Policy gradient by returns, with the batch's mean as baseline and its spread as scale."""

    name: ClassVar[str] = "reinforce"

    @property
    def group_size(self) -> int:
        """One action a state."""
        return 1

    def targets(self, decisions: Decisions) -> np.ndarray:
        """Returns, brought to mean 0 and spread 1 over the batch [N, 1]."""
        returns_N = discounted_returns(
            decisions.rewards_NG[:, 0], decisions.following_N, self.config.gamma
        )
        scaled_N: np.ndarray = (returns_N - returns_N.mean()) / (returns_N.std() + STD_FLOOR)
        return scaled_N[:, None]
