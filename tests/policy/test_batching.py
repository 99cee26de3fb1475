"""Batches hold every index once and stay within their limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memograd.policy.prefill import batches_by_sum, batches_by_tokens


@given(st.lists(st.integers(1, 50), max_size=20), st.integers(1, 100))
def test_every_index_once_and_within_the_limit(lengths: list[int], limit: int) -> None:
    batches = batches_by_tokens(lengths, limit)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= limit


@given(st.lists(st.integers(1, 50), max_size=20), st.integers(1, 100))
def test_without_padding_the_sum_is_within_the_limit(lengths: list[int], limit: int) -> None:
    batches = batches_by_sum(lengths, limit)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or sum(lengths[index] for index in batch) <= limit
