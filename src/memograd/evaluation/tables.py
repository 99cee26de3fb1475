"""Reports for reading and for keeping: Markdown, JSON, and tables on the terminal.

Each prints the same estimates; only JSON keeps the scores of every question, in [0, 1], where the
tables show points (hundredths) with 95% bootstrap intervals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from memograd.evaluation.report import OVERALL, Comparison, EvaluationReport, points

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

CAPTION = "points (0 to 100), mean [95% bootstrap interval over questions]"
GROUPED_CAPTION = CAPTION.replace("over questions", "over conversations and their questions")


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
                        **({"conversation": report.groups[row]} if report.groups else {}),
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
    several = any(len(set(report.groups)) > 1 for report in reports)
    caption = GROUPED_CAPTION if several else CAPTION
    for metric in _metrics(reports):
        header, rows = _table(reports, metric)
        blocks.append(f"**{metric}**, {caption}\n\n{markdown_table(header, rows)}")
    blocks += ["\n".join(f"- {line}" for line in comparison.lines()) for comparison in comparisons]
    return "\n\n".join(blocks) + "\n"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table without a last line break: names at the left, all else right-aligned."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(_escape(cell) for cell in row) + " |" for row in lines)


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same for a terminal, however narrow it is: no frame, every cell below its heading."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    )


def print_reports(
    reports: Sequence[EvaluationReport],
    comparisons: Sequence[Comparison] = (),
    *,
    console: Console | None = None,
) -> None:
    """Print a summary that fits a terminal: all metrics overall, the first one by category.

    `reports_to_markdown` has every interval. `console` defaults to standard output.
    """
    from rich.console import Console
    from rich.text import Text

    console = console or Console()
    for title, header, rows in _summary(reports):
        console.print(terminal_table(title, header, rows))
    for comparison in comparisons:
        console.print(Text(f"{comparison.before} -> {comparison.after}"))
        for metric, groups in comparison.differences.items():
            console.print(Text(f"  {metric:<11} {points(groups[OVERALL], sign=True)}"))


def terminal_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table for a terminal: where it is narrow a long name of a method wraps, and no heading and
    no number is cut."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    # Text, not str: rich would read a method's "[...]" as markup and swallow it.
    table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD, padding=0)
    for index, name in enumerate(header):
        table.add_column(Text(name), justify="left" if index == 0 else "right", no_wrap=index > 0)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _summary(
    reports: Sequence[EvaluationReport],
) -> list[tuple[str, list[str], list[list[str]]]]:
    """Title, header and rows of the two tables that `print_reports` shows."""
    metrics = _metrics(reports)
    overall = []
    for report in reports:
        cells = [
            points(report.estimates[metric][OVERALL]) if metric in report.scores else "-"
            for metric in metrics
        ]
        overall.append([report.method, *cells, f"{report.seconds:.0f}"])
    main = metrics[0]
    having = [report for report in reports if main in report.scores]
    groups = list(dict.fromkeys(group for report in having for group in report.estimates[main]))
    by_category = []
    for report in having:
        found = report.estimates[main]
        cells = [
            f"{100 * found[group].mean:.1f}" if group in found else "-" for group in groups[1:]
        ]
        by_category.append([report.method, *cells])
    sizes = {
        group: max(r.estimates[main][group].n for r in having if group in r.estimates[main])
        for group in groups
    }
    return [
        (
            f"{sizes[OVERALL]} questions, points of 100, mean [95% interval]",
            ["method", *metrics, "seconds"],
            overall,
        ),
        (
            f"{main} by category (number of questions)",
            ["method", *(f"{group} ({sizes[group]})" for group in groups[1:])],
            by_category,
        ),
    ]


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
