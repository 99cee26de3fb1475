"""What is found for a prompt are the keys of the very tokens that it begins with."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.policy.kv_cache import LEAST_SHARED, NOTHING, KeptPrefixes

IDS = st.lists(st.integers(0, 1), min_size=1, max_size=30)


def keys_of(ids: list[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """One layer whose keys spell the tokens."""
    keys = torch.tensor(ids, dtype=torch.float32).reshape(1, -1, 1)
    return [(keys, -keys)]


def shared(one: list[int], other: list[int]) -> int:
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


@settings(max_examples=150, deadline=None)
@given(st.lists(IDS, max_size=8), IDS)
def test_the_longest_beginning_is_found(sequences: list[list[int]], prompt: list[int]) -> None:
    kept = KeptPrefixes(1000)
    for ids in sequences:
        kept.keep(ids, keys_of(ids))
    found = kept.longest(prompt)
    best = max([min(shared(ids, prompt), len(prompt) - 1) for ids in sequences], default=0)
    assert found.length == (best if best >= LEAST_SHARED else 0)
    for keys, values in found.keys_values:
        assert keys.flatten().tolist() == prompt[: found.length] == (-values).flatten().tolist()


@settings(max_examples=100, deadline=None)
@given(st.lists(IDS, max_size=12), st.integers(0, 60))
def test_no_more_than_the_limit_is_held_and_no_beginning_twice(
    sequences: list[list[int]], limit: int
) -> None:
    kept = KeptPrefixes(limit)
    for ids in sequences:
        kept.keep(ids, keys_of(ids))
        assert kept.tokens <= limit
    held = sorted(kept._kept)
    for one in held:
        assert not any(other[: len(one)] == one for other in held if other != one)


def test_the_one_that_was_not_used_for_longest_makes_room() -> None:
    kept = KeptPrefixes(30)
    first, second, third = [1] * 10, [2] * 10, [3] * 15
    kept.keep(first, keys_of(first))
    kept.keep(second, keys_of(second))
    assert kept.longest([*first, 0]).length == 10
    kept.keep(third, keys_of(third))
    assert [kept.longest([*ids, 0]).length for ids in (first, second, third)] == [10, 0, 15]
    kept.clear()
    assert kept.tokens == 0 and kept.longest(first) == NOTHING
