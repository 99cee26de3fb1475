"""A turn's tokens and log-probabilities belong together."""

from __future__ import annotations

import numpy as np
import pytest

from memograd.rollout import Rollout, Turn


def test_a_turn_refuses_log_probabilities_of_another_length() -> None:
    with pytest.raises(ValueError, match="2 action tokens"):
        Turn((1,), (2, 3), np.zeros(3, dtype=np.float32), "end")


def test_a_rollout_counts_action_tokens_only() -> None:
    turns = tuple(
        Turn((1, 2, 3), (4,) * n, np.zeros(n, dtype=np.float32), "length") for n in (2, 0, 3)
    )
    assert Rollout("r", turns, "text").tokens == 5
