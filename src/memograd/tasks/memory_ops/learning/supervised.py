"""The honest baseline: the same network copies gold operations, where logs have them.

It walks by its own decisions, as the policy does in service, and is told at every one what a
careful keeper would have done there (DAgger, arXiv:1011.0686). Invariant: decisions without a gold
operation have no gradient.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch.nn import functional

from memograd.errors import BadInput
from memograd.tasks.memory_ops.learning.experience import Decisions
from memograd.tasks.memory_ops.learning.trainer import GRPOMemoryTrainer


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
            raise BadInput(
                "algorithm=supervised needs logs with gold operations, and these have none: train"
                " on generated logs, or choose algorithm=grpo."
            )
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
