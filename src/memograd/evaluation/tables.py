"""Reports for reading and for keeping: Markdown, JSON, and tables on the terminal.

Each prints the same estimates; only JSON keeps the scores of every question, in [0, 1], where the
tables show points (hundredths) with 95% bootstrap intervals. Proved in
`tests/evaluation/test_tables.py`. May import: evaluation.report.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from memograd.evaluation.report import Comparison, EvaluationReport, points

if TYPE_CHECKING:
    from rich.console import Console

CAPTION = "points (0 to 100), mean [95% bootstrap interval over questions]"


def reports_to_json(
    reports: Sequence[EvaluationReport], comparisons: Sequence[Comparison] = ()
) -> str:
    """Reports and comparisons as indented JSON text: estimates, and every question's scores."""
    document = {
        "reports": [
            {
                "method": report.method,
                "n": report.n,
                "seconds": report.seconds,
                "estimates": {
                    metric: {group: asdict(estimate) for group, estimate in groups.items()}
                    for metric, groups in report.estimates.items()
                },
                "questions": [
                    {
                        "id": question,
                        "category": report.categories[row],
                        **{metric: values[row] for metric, values in report.scores.items()},
                    }
                    for row, question in enumerate(report.question_ids)
                ],
            }
            for report in reports
        ],
        "comparisons": [
            {
                "before": comparison.before,
                "after": comparison.after,
                "differences": {
                    metric: {group: asdict(estimate) for group, estimate in groups.items()}
                    for metric, groups in comparison.differences.items()
                },
            }
            for comparison in comparisons
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)


def reports_to_markdown(
    reports: Sequence[EvaluationReport], comparisons: Sequence[Comparison] = ()
) -> str:
    """One Markdown table per metric, then one line per compared metric and group."""
    blocks = []
    for metric in _metrics(reports):
        header, rows = _table(reports, metric)
        lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
        table = "\n".join("| " + " | ".join(_escape(cell) for cell in row) + " |" for row in lines)
        blocks.append(f"**{metric}**, {CAPTION}\n\n{table}")
    blocks += ["\n".join(f"- {line}" for line in comparison.lines()) for comparison in comparisons]
    return "\n\n".join(blocks) + "\n"


def print_reports(
    reports: Sequence[EvaluationReport],
    comparisons: Sequence[Comparison] = (),
    *,
    console: Console | None = None,
) -> None:
    """Print what `reports_to_markdown` writes, as rich tables, to `console` (default: stdout)."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = console or Console()
    for metric in _metrics(reports):
        header, rows = _table(reports, metric)
        # Text, not str: rich would read a method's "[...]" as markup and swallow it.
        table = Table(title=Text(metric), caption=Text(CAPTION))
        for index, name in enumerate(header):
            table.add_column(Text(name), justify="left" if index == 0 else "right")
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)
    for comparison in comparisons:
        for line in comparison.lines():
            console.print(Text(line))


def _metrics(reports: Sequence[EvaluationReport]) -> list[str]:
    return list(dict.fromkeys(metric for report in reports for metric in report.scores))


def _table(reports: Sequence[EvaluationReport], metric: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows, one per method; a group's n is in its header if all methods share it."""
    having = [report for report in reports if metric in report.scores]
    sizes: dict[str, set[int]] = {}
    for report in having:
        for group, found in report.estimates[metric].items():
            sizes.setdefault(group, set()).add(found.n)
    header = ["method"]
    header += [f"{group} (n={max(n)})" if len(n) == 1 else group for group, n in sizes.items()]
    rows = []
    for report in having:
        row = [report.method]
        for group, n in sizes.items():
            estimate = report.estimates[metric].get(group)
            suffix = f" (n={estimate.n})" if estimate and len(n) > 1 else ""
            row.append(points(estimate) + suffix if estimate else "-")
        rows.append([*row, f"{report.seconds:.1f}"])
    return [*header, "seconds"], rows


def _escape(cell: str) -> str:
    return cell.replace("|", "\\|")
