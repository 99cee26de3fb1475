"""Vectors of woven rows are those of a copy, however often they are woven again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.memory.state.vectors import Vectors, weave_vectors

D = 4


def drawn(numbers: np.random.Generator, count: int) -> np.ndarray:
    return numbers.standard_normal((count, D)).astype(np.float32)


@given(st.integers(0, 10_000))
def test_woven_rows_are_those_of_a_copy(seed: int) -> None:
    numbers = np.random.default_rng(seed)
    copy = drawn(numbers, int(numbers.integers(1, 30)))
    vectors = Vectors(copy.copy())
    for _ in range(4):
        more = drawn(numbers, int(numbers.integers(1, 6)))
        rows = np.flatnonzero(numbers.random(len(copy)) < numbers.choice([0.2, 0.9, 1.0]))
        added = np.flatnonzero(numbers.random(len(more)) < 0.8)
        order = numbers.permutation(len(rows) + len(added))
        at = (np.sort(order[: len(rows)]), np.sort(order[len(rows) :]))
        woven = np.empty((len(order), D), np.float32)
        woven[at[0]], woven[at[1]] = copy[rows], more[added]
        vectors = weave_vectors((vectors, rows, at[0]), (Vectors(more), added, at[1]))
        copy = woven
        assert np.array_equal(vectors.whole(), copy)
        some = np.flatnonzero(numbers.random(len(copy)) < 0.5)
        assert np.array_equal(vectors.at(some), copy[some])
        query, products = drawn(numbers, 1)[0], np.empty(len(copy), np.float32)
        vectors.multiply(query, out=products)
        assert np.allclose(products, copy @ query, atol=1e-5)


def test_nothing_large_is_copied() -> None:
    matrix = drawn(np.random.default_rng(0), 100)
    vectors: Vectors = Vectors(matrix)
    for at in range(3):
        rows = np.arange(len(vectors.whole()))
        new = drawn(np.random.default_rng(at), 1)
        places = (rows + (rows >= 50), np.array([50]))
        vectors = weave_vectors(
            (vectors, rows, places[0]), (Vectors(new), np.array([0]), places[1])
        )
    there, others, placed = vectors.placed()
    assert np.shares_memory(there, matrix)
    assert (len(others), len(placed)) == (3, 103)


def test_nobody_writes_to_the_vectors() -> None:
    vectors = Vectors(drawn(np.random.default_rng(0), 3))
    with pytest.raises(ValueError, match="read-only"):
        vectors.whole()[0] = 0
