"""A head with a will of its own, for what measures policies over memory operations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memograd.memory.manager.trained.files import TrainedHead
from memograd.memory.manager.trained.network import Shape
from memograd.tasks.memory_ops.learning.head import OperationHead

DIMENSION = 64


@pytest.fixture(scope="session")
def head() -> TrainedHead:
    """Untrained, but with a will of its own: all its weights are random."""
    fresh = OperationHead(Shape(DIMENSION, width=16, layers=1, heads=2), seed=5).trained("t", {})
    rng = np.random.default_rng(5)
    weights = {
        name: value + rng.normal(0, 0.3, value.shape).astype(np.float32) * ("_std" not in name)
        for name, value in fresh.weights.items()
    }
    return replace(fresh, weights=weights)
