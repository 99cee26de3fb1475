"""What one method scored on a set of questions, and how two methods differ on the same ones.

A report keeps every question's score: means, intervals and comparisons are derived from them, never
stored beside them. "overall" is the mean over all questions of the report (not over categories), so
whoever builds it decides whether adversarial questions are in. Where the questions are about
several conversations, intervals draw conversations first.

Reports are written as Markdown, as JSON and as tables on the terminal. Each prints the same
estimates; only JSON keeps the scores of every question, in [0, 1], where the tables show points
(hundredths) with 95% bootstrap intervals.

Invariant: two reports are compared question by question or not at all; other question ids,
categories, conversations or metrics raise `MemogradError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from memograd.errors import BadInput, MemogradError
from memograd.evaluation.bootstrap import bootstrap_interval, clustered_interval
from memograd.rewards import CATEGORIES

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


OVERALL = "overall"
"""The name of the group of all questions, beside the categories."""

CAPTION = "points (0 to 100), mean [95% bootstrap interval over questions]"
GROUPED_CAPTION = CAPTION.replace("over questions", "over conversations and their questions")


@dataclass(frozen=True)
class Estimate:
    """A mean over `n` questions with its 95% bootstrap interval; scores lie in [0, 1]."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class EvaluationReport:
    """One method's scores.

    Attributes:
        method: what the tables call it.
        question_ids: one unique id per question.
        categories: its category's name, per question.
        scores: metric name -> one score per question, in the same order.
        seconds: wall-clock time that answering took, for all questions together.
        groups: the conversation that each question is about; empty where that is not known.
    """

    method: str
    question_ids: Sequence[str]
    categories: Sequence[str]
    scores: Mapping[str, Sequence[float]]
    seconds: float
    groups: Sequence[str] = ()

    def __post_init__(self) -> None:
        n = len(self.question_ids)
        if n == 0 or len(set(self.question_ids)) < n:
            raise BadInput(
                f'The report of "{self.method}" needs at least one question, and unique ids.'
            )
        if OVERALL in self.categories:
            raise BadInput(f'"{OVERALL}" means all questions; call that category something else.')
        columns = {"categories": self.categories, **self.scores}
        if self.groups:
            columns["groups"] = self.groups
        for name, column in columns.items():
            if len(column) != n:
                raise BadInput(
                    f'The report of "{self.method}" has {len(column)} {name} for {n} questions.'
                )

    @property
    def n(self) -> int:
        """How many questions were asked."""
        return len(self.question_ids)

    @cached_property
    def estimates(self) -> dict[str, dict[str, Estimate]]:
        """metric -> group -> estimate; the groups are "overall" and the categories that occur."""
        return {
            metric: {
                group: _estimate(values, rows, self.groups)
                for group, rows in _rows_by_group(self.categories).items()
            }
            for metric, values in self.scores.items()
        }


@dataclass(frozen=True)
class Comparison:
    """How method `after` differs from `before`: metric -> group -> mean difference and interval."""

    before: str
    after: str
    differences: Mapping[str, Mapping[str, Estimate]]

    def lines(self) -> list[str]:
        """One line per metric and group, in points (hundredths), e.g. for a log."""
        return [
            f"{self.before} -> {self.after}, {metric}, {group}: {points(estimate, sign=True)} "
            f"(n = {estimate.n})"
            for metric, groups in self.differences.items()
            for group, estimate in groups.items()
        ]


def compare_reports(before: EvaluationReport, after: EvaluationReport) -> Comparison:
    """Paired bootstrap of `after - before`; the two may list the questions in different order.

    Raises:
        MemogradError: the reports are not about the same questions, categories and metrics.
    """
    pair = f'Cannot compare "{before.method}" with "{after.method}"'
    row_of = {question: row for row, question in enumerate(after.question_ids)}
    strangers = set(before.question_ids) ^ set(row_of)
    if strangers:
        raise MemogradError(
            f"{pair}: {len(strangers)} questions are in only one of the reports, e.g. "
            f"{min(strangers)}; evaluate both on the same questions."
        )
    rows = [row_of[question] for question in before.question_ids]
    if list(before.categories) != [after.categories[row] for row in rows]:
        raise MemogradError(f"{pair}: they put the same question into different categories.")
    if list(before.groups) != [after.groups[row] for row in rows if after.groups]:
        raise MemogradError(f"{pair}: they put the same question into different conversations.")
    if set(before.scores) != set(after.scores):
        raise MemogradError(
            f"{pair}: one has the metrics {[*before.scores]}, one {[*after.scores]}."
        )
    differences: dict[str, dict[str, Estimate]] = {}
    for metric, first in before.scores.items():
        changes = [after.scores[metric][row] - was for row, was in zip(rows, first, strict=True)]
        differences[metric] = {
            group: _estimate(changes, members, before.groups)
            for group, members in _rows_by_group(before.categories).items()
        }
    return Comparison(before.method, after.method, differences)


def points(estimate: Estimate, *, sign: bool = False) -> str:
    """`"42.1 [39.0, 45.2]"`: mean and interval in hundredths; `sign` writes "+" where it is due."""
    mean, low, high = (
        f"{100 * value:{'+' if sign else ''}.1f}"
        for value in (estimate.mean, estimate.low, estimate.high)
    )
    return f"{mean} [{low}, {high}]"


def _rows_by_group(categories: Sequence[str]) -> dict[str, list[int]]:
    """ "overall" first, then LoCoMo's categories in their order, then any others as they appear."""
    present = dict.fromkeys(categories)
    ordered = [name for name in CATEGORIES if name in present]
    ordered += [name for name in present if name not in CATEGORIES]
    groups = {OVERALL: list(range(len(categories)))}
    for name in ordered:
        groups[name] = [row for row, category in enumerate(categories) if category == name]
    return groups


def _estimate(values: Sequence[float], rows: Sequence[int], groups: Sequence[str]) -> Estimate:
    """Of the values, or differences, in these rows."""
    chosen = [values[row] for row in rows]
    about = [groups[row] for row in rows] if groups else []
    several = len(set(about)) > 1
    low, high = clustered_interval(chosen, about) if several else bootstrap_interval(chosen)
    return Estimate(sum(chosen) / len(chosen), low, high, len(chosen))


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
