"""A turn's tokens and log-probabilities belong together; one number for all prompts, or each
its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.rollout import Rollout, Turn
from memograd.rollout.types import each, one_or_each


def test_a_turn_refuses_log_probabilities_of_another_length() -> None:
    with pytest.raises(ValueError, match="2 action tokens"):
        Turn((1,), (2, 3), np.zeros(3, dtype=np.float32), "end")


def test_a_rollout_counts_action_tokens_only() -> None:
    turns = tuple(
        Turn((1, 2, 3), (4,) * n, np.zeros(n, dtype=np.float32), "length") for n in (2, 0, 3)
    )
    assert Rollout("r", turns, "text").tokens == 5


@given(st.lists(st.integers(1, 4), min_size=1))
def test_each_undoes_one_or_each(counts: list[int]) -> None:
    assert each(one_or_each(counts), len(counts)) == counts


def test_equal_counts_are_one_number_and_no_others_are() -> None:
    assert one_or_each([3, 3]) == 3
    assert one_or_each([3, 4]) == [3, 4]


def test_counts_of_other_prompts_are_refused() -> None:
    with pytest.raises(ValueError, match="2 counts were given for 3 prompts"):
        each([1, 2], 3)
