"""One number for all prompts, or each its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.rollout.counts import each, one_or_each


@given(st.lists(st.integers(1, 4), min_size=1))
def test_each_undoes_one_or_each(counts: list[int]) -> None:
    assert each(one_or_each(counts), len(counts)) == counts


def test_equal_counts_are_one_number_and_no_others_are() -> None:
    assert one_or_each([3, 3]) == 3
    assert one_or_each([3, 4]) == [3, 4]


def test_counts_of_other_prompts_are_refused() -> None:
    with pytest.raises(ValueError, match="2 counts were given for 3 prompts"):
        each([1, 2], 3)
