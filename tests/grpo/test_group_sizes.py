"""Rollouts are shared out whole, within limits, and by promise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.grpo.asking import sizes_by_promise

promises = st.lists(st.floats(0.001, 1), min_size=1, max_size=12)


@st.composite
def cases(draw):
    promise_B = draw(promises)
    smallest = draw(st.integers(1, 4))
    largest = draw(st.integers(smallest, 12))
    groups = len(promise_B)
    return promise_B, draw(st.integers(groups * smallest, groups * largest)), smallest, largest


@given(cases())
def test_sizes_make_up_the_budget_and_follow_promise(case) -> None:
    promise_B, budget, smallest, largest = case
    sizes_B = sizes_by_promise(promise_B, budget=budget, smallest=smallest, largest=largest)
    assert sum(sizes_B) == budget
    assert smallest <= min(sizes_B) and max(sizes_B) <= largest
    for a, first in zip(promise_B, sizes_B, strict=True):
        for b, second in zip(promise_B, sizes_B, strict=True):
            assert first >= second or a <= b


@given(st.integers(1, 9), st.integers(2, 9), st.floats(0.001, 1))
def test_equal_promise_gives_equal_groups(groups: int, size: int, promise: float) -> None:
    budget = groups * size
    sizes_B = sizes_by_promise([promise] * groups, budget=budget, smallest=2, largest=2 * size)
    assert sizes_B == [size] * groups


def test_sizes_are_in_proportion_where_limits_allow_it() -> None:
    assert sizes_by_promise([1.0, 0.5, 0.25], budget=28, smallest=2, largest=20) == [16, 8, 4]
    assert sizes_by_promise([1.0, 0.5, 0.01], budget=24, smallest=2, largest=12) == [12, 10, 2]


@pytest.mark.parametrize("budget", [5, 31])
def test_a_budget_that_cannot_be_shared_out_is_refused(budget: int) -> None:
    with pytest.raises(ValueError, match=f"{budget} rollouts cannot be shared out to 3 groups"):
        sizes_by_promise([0.5] * 3, budget=budget, smallest=2, largest=10)
