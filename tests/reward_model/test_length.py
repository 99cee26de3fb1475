"""Length control: what it takes out, what it leaves, and rank correlation by the definition."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.reward_model.length import (
    LengthControl,
    controlled,
    fit_slope,
    longer_wins,
    spearman,
)

GAPS = st.lists(
    st.tuples(st.floats(-20, 20), st.integers(-500, 500).map(float)), min_size=1, max_size=30
)
WORDS = st.lists(st.text(max_size=40), min_size=2, max_size=20)
# Values that rounding keeps apart.
VALUES = st.lists(st.tuples(*[st.integers(-9, 9).map(float)] * 2), min_size=2, max_size=30)


@settings(deadline=None, max_examples=50)
@given(GAPS)
def test_after_the_control_length_earns_nothing(gaps) -> None:
    scores, lengths = map(list, zip(*gaps, strict=True))
    slope = fit_slope(scores, lengths)
    rest = [s - slope * n for s, n in zip(scores, lengths, strict=True)]
    assert fit_slope(rest, lengths) == pytest.approx(0, abs=1e-6)


@settings(deadline=None, max_examples=50)
@given(GAPS, st.floats(-1, 1))
def test_the_slope_is_the_best_one(gaps, other) -> None:
    scores, lengths = map(list, zip(*gaps, strict=True))

    def rest(slope: float) -> float:
        return sum((s - slope * n) ** 2 for s, n in gaps)

    assert rest(fit_slope(scores, lengths)) <= rest(other) + 1e-6


@settings(deadline=None, max_examples=50)
@given(WORDS, st.floats(-2, 2))
def test_a_score_of_mere_length_becomes_constant(answers, price) -> None:
    scores = [7 + price * len(answer) for answer in answers]
    gaps = [(scores[0] - s, float(len(answers[0]) - len(a))) for s, a in zip(scores, answers)]  # noqa: B905
    slope = fit_slope(*map(list, zip(*gaps, strict=True)))
    rest = [controlled(s, a, slope) for s, a in zip(scores, answers, strict=True)]
    assert max(rest) - min(rest) < 1e-6 or all(gap == 0 for _, gap in gaps)


def test_length_is_counted_in_characters_in_any_language() -> None:
    assert controlled(1.0, "饭后服用", 0.25) == 0.0


def test_equal_lengths_say_nothing_about_length() -> None:
    assert fit_slope([3.0, -1.0], [0.0, 0.0]) == 0.0


def test_longer_wins_counts_equal_lengths_half() -> None:
    assert longer_wins([5, -2, 0, 1]) == (1 + 0 + 0.5 + 1) / 4


def counted_ranks(values: list[float]) -> list[float]:
    """One more than how many are smaller, and half of the others that are equal."""
    return [
        sum(other < value for other in values) + (values.count(value) + 1) / 2 for value in values
    ]


@settings(deadline=None, max_examples=50)
@given(VALUES)
def test_spearman_is_the_correlation_of_ranks(values) -> None:
    first, second = map(list, zip(*values, strict=True))
    found = spearman(first, second)
    if len(set(first)) < 2 or len(set(second)) < 2:
        assert found is None
    else:
        expected = statistics.correlation(counted_ranks(first), counted_ranks(second))
        assert found == pytest.approx(expected, abs=1e-9)


def test_spearman_knows_order_only() -> None:
    assert spearman([1, 2, 3, 100], [1, 4, 9, 16]) == pytest.approx(1.0)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1.0)


def test_the_fit_is_read_back(tmp_path) -> None:
    LengthControl(0.0125, 40).save(tmp_path)
    assert LengthControl.of(tmp_path) == LengthControl(0.0125, 40)
    assert LengthControl.of(tmp_path / "elsewhere") is None
    (tmp_path / "length_control.json").write_text("{}")
    with pytest.raises(BadInput, match="is damaged"):
        LengthControl.of(tmp_path)


def test_lists_that_do_not_fit_are_refused() -> None:
    with pytest.raises(BadInput):
        fit_slope([1.0], [1.0, 2.0])
    with pytest.raises(BadInput):
        spearman([1.0], [1.0, 2.0])
    with pytest.raises(BadInput):
        longer_wins([])
