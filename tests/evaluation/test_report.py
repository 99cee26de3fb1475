"""Reports derive estimates from scores; two are compared question by question or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memograd.errors import BadInput, MemogradError
from memograd.evaluation import (
    EvaluationReport,
    bootstrap_interval,
    compare_reports,
    paired_bootstrap_difference,
    reports_to_markdown,
)
from memograd.evaluation.report import Estimate, points

BEFORE = EvaluationReport(
    method="retrieved",
    question_ids=("q1", "q2", "q3", "q4"),
    categories=("temporal", "multi-hop", "temporal", "其他"),
    scores={"locomo_f1": (0.0, 0.5, 1.0, 0.2)},
    seconds=2.5,
)
AFTER = EvaluationReport(
    method="trained",
    question_ids=("q4", "q3", "q2", "q1"),
    categories=("其他", "temporal", "multi-hop", "temporal"),
    scores={"locomo_f1": (0.2, 1.0, 0.75, 1.0)},
    seconds=2.0,
)


def test_estimates_by_category_and_overall() -> None:
    groups = BEFORE.estimates["locomo_f1"]
    assert list(groups) == ["overall", "multi-hop", "temporal", "其他"]
    assert [groups[name].n for name in groups] == [4, 1, 2, 1]
    assert groups["overall"].mean == pytest.approx(0.425)
    assert groups["temporal"].mean == pytest.approx(0.5)
    assert (groups["temporal"].low, groups["temporal"].high) == bootstrap_interval([0.0, 1.0])
    assert groups["multi-hop"] == Estimate(0.5, 0.5, 0.5, 1)
    assert BEFORE.n == 4


def test_comparison_pairs_by_question_id() -> None:
    comparison = compare_reports(BEFORE, AFTER)
    overall = comparison.differences["locomo_f1"]["overall"]
    expected = paired_bootstrap_difference([0.0, 0.5, 1.0, 0.2], [1.0, 0.75, 1.0, 0.2])
    assert (overall.mean, overall.low, overall.high) == pytest.approx(expected)
    assert overall.mean == pytest.approx(0.3125)
    assert comparison.differences["locomo_f1"]["temporal"].mean == pytest.approx(0.5)


def test_comparison_lines() -> None:
    lines = compare_reports(BEFORE, AFTER).lines()
    assert len(lines) == 4
    assert lines[1] == ("retrieved -> trained, locomo_f1, multi-hop: +25.0 [+25.0, +25.0] (n = 1)")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question_ids": ("q4", "q3", "q2", "q9")}, "2 questions are in only one .* e.g. q1"),
        ({"categories": ("temporal", "temporal", "multi-hop", "temporal")}, "different categories"),
        ({"scores": {"mem0_f1": (0.2, 1.0, 0.75, 1.0)}}, "one has the metrics"),
    ],
)
def test_reports_over_other_questions_are_not_compared(change: dict, message: str) -> None:
    with pytest.raises(MemogradError, match=message):
        compare_reports(BEFORE, replace(AFTER, **change))


def test_a_report_over_fewer_questions_is_not_compared() -> None:
    fewer = EvaluationReport("fewer", ("q1",), ("temporal",), {"locomo_f1": (0.0,)}, 1.0)
    for pair in ((BEFORE, fewer), (fewer, BEFORE)):
        with pytest.raises(MemogradError, match="3 questions are in only one of the reports"):
            compare_reports(*pair)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question_ids": ("q1", "q1", "q3", "q4")}, "unique ids"),
        ({"question_ids": (), "categories": (), "scores": {}}, "at least one question"),
        ({"categories": ("temporal",)}, "1 categories for 4 questions"),
        ({"scores": {"locomo_f1": (1.0,)}}, "1 locomo_f1 for 4 questions"),
        ({"categories": ("overall",) * 4}, "call that category something else"),
    ],
)
def test_a_report_that_does_not_fit_together_is_refused(change: dict, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        replace(BEFORE, **change)


def test_points() -> None:
    assert points(Estimate(0.421, 0.39, 0.4524, 9)) == "42.1 [39.0, 45.2]"
    assert points(Estimate(-0.01, -0.05, 0.03, 9), sign=True) == "-1.0 [-5.0, +3.0]"


def test_intervals_draw_conversations_first() -> None:
    """Ten questions about each of four conversations that go all well or all badly are four."""
    scores = [float(number < 20) for number in range(40)]
    ids = [f"q{number}" for number in range(40)]
    plain = EvaluationReport("m", ids, ["a"] * 40, {"f1": scores}, 1.0)
    conversations = [f"c{number // 10}" for number in range(40)]
    grouped = replace(plain, groups=conversations)
    narrow, wide = (one.estimates["f1"]["overall"] for one in (plain, grouped))
    assert narrow.mean == wide.mean == 0.5
    assert narrow.high - narrow.low < 0.4 and wide.high - wide.low > 0.7
    one = replace(plain, groups=["c"] * 40)
    assert one.estimates["f1"]["overall"] == narrow
    nothing = replace(grouped, scores={"f1": [0.0] * 40})
    change = compare_reports(nothing, grouped).differences["f1"]["overall"]
    assert (change.mean, change.low, change.high) == (wide.mean, wide.low, wide.high)
    text = reports_to_markdown([grouped])
    assert "over conversations and their questions" in text
    assert "over conversations" not in reports_to_markdown([one])


def test_reports_about_other_conversations_are_not_compared() -> None:
    known = replace(BEFORE, groups=["c1", "c1", "c2", "c2"])
    with pytest.raises(MemogradError, match="different conversations"):
        compare_reports(known, replace(known, groups=["c1"] * 4))
    with pytest.raises(BadInput, match="3 groups for 4 questions"):
        replace(BEFORE, groups=["c1"] * 3)
