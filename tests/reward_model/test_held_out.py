"""The report: calibration against plain counting, numbers from known scores, page, picture."""

from __future__ import annotations

import json
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.reward_model.api import Item
from memograd.reward_model.held_out import (
    calibrate,
    fitted_slope,
    held_out_report,
    pair_correct,
    report_markdown,
    score_pairs,
    write_report,
)
from memograd.reward_model.length import LengthControl


class Lengths:
    """Scores an answer by its length, and one favoured word by 100."""

    def score(self, items: list[Item]) -> list[float]:
        return [len(item.answer) + 100.0 * ("yes" in item.answer) for item in items]

    def length_slope(self) -> float:
        return LengthControl(1.0, 1).slope


PAIRS = [
    ("1", "q", "long answer", "short"),
    ("2", "q", "short", "long answer"),
    ("3", "q", "yes", "a much longer one"),
    ("4", [{"role": "user", "content": "药怎么吃？"}], "饭后服用", "不知道"),
]


def report(slope: float | None = 1.0):
    return held_out_report(
        score_pairs(Lengths(), PAIRS), model="m", data="pairs.jsonl", slope=slope, cut=1
    )


def test_accuracies_stand_beside_their_baseline() -> None:
    found = report()
    assert found.calibration.accuracy == 0.75
    length = found.length
    assert length.longer_wins == 0.5
    assert (length.chosen_longer.accuracy, length.chosen_longer.pairs) == (1.0, 2)
    assert (length.chosen_shorter.accuracy, length.chosen_shorter.pairs) == (0.5, 2)
    assert found.accuracy_low <= 0.75 <= found.accuracy_high


def test_length_control_leaves_what_is_not_length() -> None:
    """Only the word "yes" is left: pair 3 is right, the others tie."""
    found = report().length
    assert found.controlled_slope == 1.0
    assert found.controlled_accuracy == (0.5 + 0.5 + 1 + 0.5) / 4
    none = report(slope=None).length
    assert none.controlled_accuracy is none.controlled_spearman is none.controlled_slope is None


def test_scores_belong_to_their_pairs() -> None:
    scored = score_pairs(Lengths(), PAIRS)
    assert [(one.place, one.chosen_score, one.rejected_score) for one in scored] == [
        ("1", 11.0, 5.0),
        ("2", 5.0, 11.0),
        ("3", 103.0, 17.0),
        ("4", 4.0, 3.0),
    ]
    gaps = [6, -6, -14, 1]
    margins = [6, -6, 86, 1]
    expected = sum(g * m for g, m in zip(gaps, margins, strict=True)) / sum(g * g for g in gaps)
    assert fitted_slope(scored) == pytest.approx(expected)


def test_the_files(tmp_path) -> None:
    write_report(report(), tmp_path / "out")
    stored = json.loads((tmp_path / "out" / "held_out.json").read_text())
    assert stored["calibration"]["accuracy"] == 0.75 and len(stored["calibration"]["bins"]) == 10
    page = (tmp_path / "out" / "held_out.md").read_text()
    assert (
        "| accuracy | 75.0%" in page
        and "| longer wins, shorter wins (baselines) | 50.0%, 50.0% |" in page
    )
    assert "4 pairs. 1 of them were cut" in page
    assert (tmp_path / "out" / "held_out.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_undefined_is_a_dash() -> None:
    only = held_out_report(
        score_pairs(Lengths(), [("1", "q", "same", "size")]), model="m", data="d", slope=None
    )
    page = report_markdown(only)
    assert "| accuracy where it is shorter | - of 0 |" in page
    assert "| Spearman of score and length | - |" in page


def test_no_pairs_is_bad_input() -> None:
    with pytest.raises(BadInput, match="no pair"):
        held_out_report([], model="m", data="d", slope=None)


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
