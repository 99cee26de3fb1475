"""One reward for a whole walk, shared by all its decisions: how most memory agents are trained.

G walks through the same episode are compared with each other. It is here as the baseline of credit
assignment: a decision is praised for everything that happened before and after it. Invariant: all
decisions of a walk have the walk's advantage, and walks weigh the same however long they are.
Imports what the trainer imports.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from memograd.errors import BadInput
from memograd.grpo.advantage import group_advantages
from memograd.tasks.memory_ops.learning.experience import Decisions
from memograd.tasks.memory_ops.learning.trainer import GRPOMemoryTrainer


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
