"""The report: every number from known scores, as JSON, as a page and as a picture."""

from __future__ import annotations

import json

import pytest

from memograd.errors import BadInput
from memograd.reward_model.api import Item
from memograd.reward_model.held_out import (
    fitted_slope,
    held_out_report,
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
