"""How well the SQL agent does on the held-out questions: the model alone, the adapter that a run
began with if there is one (the warm start), and after training.

Beside what every agent's run reports stand the numbers of the task, whatever was rewarded:
execution accuracy, evidence, valid-SQL rate (all from `memograd.tasks.sql.rewards`) and
turns, each as mean [95% bootstrap interval over questions], with the paired difference; and seconds
a question. Invariant: all sides are measured on the same questions, and what is gained over a warm
start is told apart from what the warm start gained over the model.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from memograd.evaluation.bootstrap import (
    Interval,
    mean_interval,
    paired_bootstrap_difference,
    written_interval,
)
from memograd.evaluation.report import markdown_table, plain_table
from memograd.rollout.types import Rollout, Scenario
from memograd.tasks.agent.measure import MeasuredEpisodes, measured, report_episodes
from memograd.tasks.agent.recipe import AgentJob
from memograd.tasks.base.progress import console
from memograd.tasks.sql.rewards import score_evidence, score_execution, score_valid_sql
from memograd.tasks.sql.tool import read_attempt

MEASURES = ("execution accuracy", "evidence", "valid SQL", "turns")


@dataclass(frozen=True)
class MeasuredSql:
    """`scores`: a number a question for each of `MEASURES`; `seconds` for attempting them all."""

    episodes: MeasuredEpisodes
    scores: dict[str, list[float]]
    seconds: float


@dataclass(frozen=True)
class SqlChange:
    """One measure over `n` questions; each is (mean, low, high) with a 95% interval.

    `difference` is that from before to after; where a run began with an adapter, `warm_start` is
    what that did, and `gain` the difference from there to after.
    """

    measure: str
    n: int
    before: Interval
    after: Interval
    difference: Interval
    warm_start: Interval | None = None
    gain: Interval | None = None


def measure_sql(job: AgentJob, play: Callable[[], list[Rollout]]) -> MeasuredSql:
    """Score what `play` gives, a greedy attempt at every held-out question."""
    began = time.perf_counter()
    rollouts = play()
    seconds = time.perf_counter() - began
    episodes = measured(job.rewards, job.evaluation, rollouts)
    by_question = [
        score(scenario, rollout) for scenario, rollout in zip(job.evaluation, rollouts, strict=True)
    ]
    scores = {name: [row[name] for row in by_question] for name in MEASURES}
    return MeasuredSql(episodes, scores, seconds)


def score(scenario: Scenario, rollout: Rollout) -> dict[str, float]:
    """The `MEASURES` of one attempt."""
    row = scenario.columns
    database, asked = str(row["database"]), str(row["question"])
    columns = cast("Sequence[str] | None", row["columns"])
    quotes = cast("Sequence[str]", row["evidence"])
    attempt = read_attempt(cast("Sequence[dict[str, str]]", rollout.attempt), database)
    return {
        "execution accuracy": score_execution(attempt, database, str(row["gold_sql"]), columns),
        "evidence": score_evidence(attempt, quotes, asked),
        "valid SQL": score_valid_sql(attempt),
        "turns": float(len(rollout.turns)),
    }


def compare_sql(
    before: MeasuredSql, after: MeasuredSql, warm_start: MeasuredSql | None = None
) -> list[SqlChange]:
    """Every measure before and after, with intervals over questions."""
    changes = []
    for name in MEASURES:
        old, new = before.scores[name], after.scores[name]
        begun = None if warm_start is None else warm_start.scores[name]
        changes.append(
            SqlChange(
                name,
                len(old),
                mean_interval(old),
                mean_interval(new),
                paired_bootstrap_difference(old, new),
                None if begun is None else mean_interval(begun),
                None if begun is None else paired_bootstrap_difference(begun, new),
            )
        )
    return changes


def report_sql(
    before: MeasuredSql,
    after: MeasuredSql,
    job: AgentJob,
    folder: Path,
    warm_start: MeasuredSql | None = None,
) -> None:
    """Print the comparison and write it into `folder`: `sql.json`, with the scores of every
    question, and a table in `evaluation.md`."""
    report_episodes(before.episodes, after.episodes, job.evaluation, folder)
    sides = {"before": before, "warm start": warm_start, "after": after}
    measured = {name: side for name, side in sides.items() if side is not None}
    changes = compare_sql(before, after, warm_start)
    n = max(len(before.scores["turns"]), 1)
    seconds = {name: side.seconds / n for name, side in measured.items()}
    lines = [
        [
            f"{one.measure} (n={one.n})",
            *(written_interval(side) for side in (one.before, one.warm_start, one.after) if side),
            written_interval(one.gain or one.difference, "+"),
        ]
        for one in changes
    ]
    lines.append(["seconds a question", *(f"{value:.2f}" for value in seconds.values()), ""])
    compared = "difference" if warm_start is None else "after - warm start"
    header = ["SQL", *measured, compared]
    console.print(plain_table(header, lines))
    content = {
        "measures": [asdict(one) for one in changes],
        "seconds_per_question": seconds,
        "questions": [
            {"id": scenario.id, "kind": scenario.columns["kind"]} for scenario in job.evaluation
        ],
        "scores": {name: side.scores for name, side in measured.items()},
    }
    text = json.dumps(content, indent=2, ensure_ascii=False)
    (folder / "sql.json").write_text(text, encoding="utf-8")
    table = markdown_table(header, lines)
    with (folder / "evaluation.md").open("a", encoding="utf-8") as file:
        file.write(f"\nThe SQL agent; mean [95% bootstrap interval over questions]:\n\n{table}\n")
