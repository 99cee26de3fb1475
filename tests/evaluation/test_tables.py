"""The three ways out of a report say the same."""

from __future__ import annotations

import io
import json

from rich.console import Console

from memograd.evaluation import (
    EvaluationReport,
    compare_reports,
    print_reports,
    reports_to_json,
    reports_to_markdown,
)
from memograd.evaluation.report import plain_table

IDS, CATEGORIES = ("q1", "q2", "q3"), ("multi-hop", "temporal", "temporal")
BEFORE = EvaluationReport("无记忆 [v1]", IDS, CATEGORIES, {"locomo_f1": (0.0, 0.5, 0.5)}, 1.25)
AFTER = EvaluationReport("a|b", IDS, CATEGORIES, {"locomo_f1": (0.5, 1.0, 1.0)}, 2.0)
FEWER = EvaluationReport("fewer", ("q2",), ("temporal",), {"locomo_f1": (1.0,)}, 1.0)


def test_a_plain_table_has_cells_below_their_headings() -> None:
    table = plain_table(["", "before", "after"], [["turns mean", "1", "12"], ["x", "long one", ""]])
    assert table == "            before    after\nturns mean  1         12\nx           long one"


def test_markdown_table() -> None:
    text = reports_to_markdown([BEFORE, AFTER], [compare_reports(BEFORE, AFTER)])
    assert text == (
        "**locomo_f1**, points (0 to 100), mean [95% bootstrap interval over questions]\n\n"
        "| method | overall (n=3) | multi-hop (n=1) | temporal (n=2) | seconds |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
        "| 无记忆 [v1] | 33.3 [0.0, 50.0] | 0.0 [0.0, 0.0] | 50.0 [50.0, 50.0] | 1.2 |\n"
        "| a\\|b | 83.3 [50.0, 100.0] | 50.0 [50.0, 50.0] | 100.0 [100.0, 100.0] | 2.0 |\n\n"
        "- 无记忆 [v1] -> a|b, locomo_f1, overall: +50.0 [+50.0, +50.0] (n = 3)\n"
        "- 无记忆 [v1] -> a|b, locomo_f1, multi-hop: +50.0 [+50.0, +50.0] (n = 1)\n"
        "- 无记忆 [v1] -> a|b, locomo_f1, temporal: +50.0 [+50.0, +50.0] (n = 2)\n"
    )


def test_different_questions_show_their_n_and_gaps() -> None:
    text = reports_to_markdown([AFTER, FEWER])
    assert "| method | overall | multi-hop (n=1) | temporal | seconds |" in text
    assert "| fewer | 100.0 [100.0, 100.0] (n=1) | - | 100.0 [100.0, 100.0] (n=1) | 1.0 |" in text


def test_json_holds_estimates_and_every_score() -> None:
    text = reports_to_json([BEFORE, AFTER], [compare_reports(BEFORE, AFTER)])
    assert "无记忆" in text
    document = json.loads(text)
    first = document["reports"][0]
    assert first["method"] == "无记忆 [v1]"
    assert (first["n"], first["seconds"]) == (3, 1.25)
    assert first["estimates"]["locomo_f1"]["temporal"] == {
        **{"mean": 0.5, "low": 0.5, "high": 0.5},
        "n": 2,
    }
    assert first["questions"][1] == {"id": "q2", "category": "temporal", "locomo_f1": 0.5}
    difference = document["comparisons"][0]["differences"]["locomo_f1"]["overall"]
    assert difference == {"mean": 0.5, "low": 0.5, "high": 0.5, "n": 3}


def test_the_terminal_summary_fits_eighty_columns_and_loses_no_markup() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=80, color_system=None)
    print_reports([BEFORE, AFTER], [compare_reports(BEFORE, AFTER)], console=console)
    shown = stream.getvalue()
    assert "3 questions" in shown
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    assert "无记忆 [v1] 33.3 [0.0, 50.0] 1" in rows
    assert "a|b 83.3 [50.0, 100.0] 2" in rows
    assert "method multi-hop (1) temporal (2)" in rows
    assert "a|b 50.0 100.0" in rows
    assert "无记忆 [v1] -> a|b" in rows
    assert "locomo_f1 +50.0 [+50.0, +50.0]" in rows


def test_a_summary_of_different_questions_has_gaps() -> None:
    stream = io.StringIO()
    print_reports([BEFORE, FEWER], console=Console(file=stream, width=80, color_system=None))
    rows = [" ".join(line.split()) for line in stream.getvalue().splitlines()]
    assert "fewer - 100.0" in rows
