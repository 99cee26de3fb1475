"""Calibration against plain counting, and what must hold for any margins."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.reward_model.held_out import calibrate, pair_correct

MARGINS = st.lists(
    st.floats(-50, 50, allow_nan=False).filter(lambda m: m == 0 or abs(m) > 1e-9), min_size=1
)


def counted_ece(margins: list[float], bins: int) -> float:
    """Guo et al. (arXiv:1706.04599), equation 5, by walking over the bins."""
    total = 0.0
    for place in range(bins):
        low, high = 0.5 + place * 0.5 / bins, 0.5 + (place + 1) * 0.5 / bins
        inside = []
        for margin in margins:
            sure = 1 / (1 + math.exp(-abs(margin)))
            if low <= sure < high or (place == bins - 1 and sure >= high):
                inside.append((sure, 1.0 if margin > 0 else 0.5 if margin == 0 else 0.0))
        if inside:
            sure, right = (sum(column) / len(inside) for column in zip(*inside, strict=True))
            total += len(inside) / len(margins) * abs(sure - right)
    return total


def test_golden_numbers() -> None:
    found = calibrate([2.0, -1.0, 0.0, 3.0])
    assert found.accuracy == (1 + 0 + 0.5 + 1) / 4
    assert found.margin_mean == 1.0
    losses = [math.log(1 + math.exp(-margin)) for margin in (2.0, -1.0, 0.0, 3.0)]
    assert found.log_loss == pytest.approx(sum(losses) / 4)
    # 0.881 right, 0.731 wrong, 0.5 half right, 0.953 right: each in a bin of its own.
    assert found.ece == pytest.approx((0.119203 + 0.731059 + 0 + 0.047426) / 4, abs=1e-5)


@settings(deadline=None, max_examples=50)
@given(MARGINS.map(lambda ms: [round(m, 3) for m in ms]), st.sampled_from([1, 3, 7]))
def test_ece_is_what_counting_gives(margins, bins) -> None:
    # Bins whose edges no rounded margin falls on, so that float rounding cannot move a pair.
    assert calibrate(margins, bins).ece == pytest.approx(counted_ece(margins, bins), abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(MARGINS)
def test_every_pair_is_in_one_bin(margins) -> None:
    found = calibrate(margins)
    assert sum(one.pairs for one in found.bins) == len(margins)
    for one in found.bins:
        if one.pairs:
            assert one.low - 1e-12 <= one.confidence <= one.high + 1e-12
            assert 0 <= one.accuracy <= 1
    assert 0 <= found.ece <= 1


@settings(deadline=None, max_examples=50)
@given(MARGINS)
def test_swapping_the_answers_mirrors_accuracy(margins) -> None:
    there, back = calibrate(margins), calibrate([-margin for margin in margins])
    assert there.accuracy == pytest.approx(1 - back.accuracy)
    assert there.margin_mean == pytest.approx(-back.margin_mean)


def test_margins_that_mean_what_they_say_have_no_error() -> None:
    """Labels drawn with probability sigmoid(margin): ECE falls to sampling noise; doubled, not."""
    draw = random.Random(0)
    margins = []
    for _ in range(20_000):
        size = draw.uniform(0, 4)
        right = draw.random() < 1 / (1 + math.exp(-size))
        margins.append(size if right else -size)
    assert calibrate(margins).ece < 0.01
    assert calibrate([2 * margin for margin in margins]).ece > 0.05


def test_a_tie_is_half_right() -> None:
    assert pair_correct([0.0, 1e-9, -1e-9]) == [0.5, 1.0, 0.0]


@pytest.mark.parametrize("margins, bins", [([], 10), ([math.nan], 10), ([math.inf], 10), ([1], 0)])
def test_nothing_to_calibrate_is_bad_input(margins, bins) -> None:
    with pytest.raises(BadInput, match="Calibration needs"):
        calibrate(margins, bins)
