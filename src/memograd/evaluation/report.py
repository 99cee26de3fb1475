"""What one method scored on a set of questions, and how two methods differ on the same ones.

A report keeps every question's score: means, intervals and comparisons are derived from them, never
stored beside them. "overall" is the mean over all questions of the report (not over categories), so
whoever builds it decides whether adversarial questions are in. Where the questions are about
several conversations, intervals draw conversations first.

Invariant: two reports are compared question by question or not at all; other question ids,
categories, conversations or metrics raise `MemogradError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from memograd.errors import BadInput, MemogradError
from memograd.evaluation.bootstrap import bootstrap_interval, clustered_interval
from memograd.rewards import CATEGORIES

OVERALL = "overall"
"""The name of the group of all questions, beside the categories."""


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
