"""Fusion of rankings and the weight of age, against their formulas."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.memory.search.retriever import fuse, recency_factor

rankings = st.lists(
    st.permutations("abcdef").flatmap(
        lambda order: st.integers(0, 6).map(
            lambda n: {id: rank for rank, id in enumerate(order[:n], start=1)}
        )
    ),
    max_size=4,
)


def test_the_formula_by_hand() -> None:
    scores = fuse([{"a": 1, "b": 2}, {"b": 1, "c": 3}])
    best = 2 / 21  # first in both
    assert scores["a"] == pytest.approx((1 / 21) / best)
    assert scores["b"] == pytest.approx((1 / 22 + 1 / 21) / best)
    assert scores["c"] == pytest.approx((1 / 23) / best)


@given(rankings)
def test_scores_are_the_normalised_sum_of_reciprocal_ranks(rankings: list[dict[str, int]]) -> None:
    used = [ranks for ranks in rankings if ranks]
    scores = fuse(rankings)
    assert set(scores) == {id for ranks in used for id in ranks}
    for id, score in scores.items():
        plain = sum(1 / (20 + ranks[id]) for ranks in used if id in ranks)
        assert score == pytest.approx(plain / (len(used) / 21))
        assert 0 < score <= 1
    assert fuse(rankings[::-1]) == scores


@given(st.integers(1, 7))
def test_first_everywhere_is_exactly_one(n_rankings: int) -> None:
    assert fuse([{"a": 1, "b": 2}] * n_rankings)["a"] == 1.0


def test_ids_come_in_the_order_of_the_rankings_and_empty_ones_do_not_count() -> None:
    assert list(fuse([{"b": 1, "a": 2}, {}, {"c": 1, "a": 2}])) == ["b", "a", "c"]
    assert fuse([{"a": 1}, {}]) == {"a": 1.0}
    assert fuse([{}, {}]) == {}


NOW = datetime(2024, 1, 31, tzinfo=UTC)
MONTH = timedelta(days=30)


def test_a_half_life_halves() -> None:
    for lives, factor in ((0, 1.0), (1, 0.5), (2, 0.25), (0.5, 0.5**0.5), (1e6, 0.0)):
        moment = NOW - lives * MONTH if lives < 100 else datetime(1, 1, 1, tzinfo=UTC)
        half_life = MONTH if lives < 100 else timedelta(seconds=1)
        assert recency_factor(moment, now=NOW, half_life=half_life) == pytest.approx(factor)


def test_the_future_and_the_undated_keep_their_score_and_naive_times_are_utc() -> None:
    assert recency_factor(NOW + MONTH, now=NOW, half_life=MONTH) == 1.0
    assert recency_factor(None, now=NOW, half_life=MONTH) == 1.0
    naive = (NOW - MONTH).replace(tzinfo=None)
    assert recency_factor(naive, now=NOW, half_life=MONTH) == 0.5


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_the_older_never_weighs_more(seconds: int, more: int) -> None:
    younger, older = (
        recency_factor(NOW - timedelta(seconds=age), now=NOW, half_life=MONTH)
        for age in (seconds, seconds + more)
    )
    assert 0 <= older <= younger <= 1


def test_a_half_life_must_be_positive() -> None:
    with pytest.raises(BadInput, match="must be positive"):
        recency_factor(NOW, now=NOW, half_life=timedelta(0))
