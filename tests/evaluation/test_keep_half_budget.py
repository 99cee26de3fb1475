"""The budget is kept, used up, and no draw decides."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.tasks.memory_ops.baselines.keep_half import keep_preferred, keep_top, share_of_tokens


def test_by_hand() -> None:
    # Half of 20 is 10: 6, then 5 does not fit, then 4.
    assert keep_top([0.9, 0.8, 0.1, 0.7], [6, 5, 5, 4], 0.5) == [0, 3]
    assert keep_top([1.0, 1.0, 1.0], [5, 5, 5], 2 / 3) == [0, 1]  # ties by order
    assert keep_top([1.0, 2.0], [3, 3], 1.0) == [0, 1]
    assert keep_top([1.0, 2.0], [3, 3], 0.0) == []
    assert keep_top([], [], 0.5) == []
    assert keep_preferred([2, 0], [5, 1, 5], 10) == [0, 2]  # what is not preferred is not kept
    assert share_of_tokens([100], 0.29) == 29
    assert share_of_tokens([1] * 10, 0.29) == 2


STATEMENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), max_size=12)


@given(STATEMENTS, st.floats(0, 1))
def test_never_exceeded_and_used_up(statements: list[tuple[int, int]], share: float) -> None:
    scores, tokens = [float(s) for s, _ in statements], [t for _, t in statements]
    kept = keep_top(scores, tokens, share)
    budget, used = share_of_tokens(tokens, share), sum(tokens[position] for position in kept)
    assert used <= budget <= sum(tokens)
    for left in set(range(len(tokens))) - set(kept):
        assert tokens[left] > budget - used
    assert kept == sorted(kept)


@given(STATEMENTS)
def test_the_first_of_equals_comes_first(statements: list[tuple[int, int]]) -> None:
    kept = keep_top([0.5] * len(statements), [1] * len(statements), 0.5)
    assert kept == list(range(len(statements) // 2))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(BadInput, match="between 0 and 1"):
        keep_top([1.0], [1], 1.5)
    with pytest.raises(BadInput, match="2 statements needs one finite score; got 1"):
        keep_top([1.0], [1, 2], 0.5)
    with pytest.raises(BadInput, match="finite score"):
        keep_top([math.nan], [1], 0.5)
    with pytest.raises(BadInput, match="less than no token"):
        share_of_tokens([-1], 0.5)
    for order in ([0, 0], [2], [-1]):
        with pytest.raises(BadInput, match="positions below 2"):
            keep_preferred(order, [1, 1], 5)
