"""What is said of a job on rows: what it begins with, and its answers to the held-out ones.

It begins with its rewards and without the rows that it leaves out. Answers are greedy. A reward is
averaged over the rows to which it applies, on its own scale, with a 95% bootstrap interval over
rows; before and after are compared row by row.

Invariants: every row that is left out is in `dropped.jsonl` of the run folder; before and after are
measured on the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from memograd.config import TrainConfig
from memograd.data.record_files import as_lines
from memograd.evaluation.bootstrap import (
    Interval,
    mean_interval,
    paired_bootstrap_difference,
    written_interval,
)
from memograd.evaluation.metrics import greedy_answers
from memograd.evaluation.report import markdown_table, plain_table
from memograd.policy.protocol import Policy
from memograd.rewards import RewardTable, WeightedReward, compute_rewards
from memograd.rollout.types import Scenario
from memograd.tasks.base.progress import console, counting_progress
from memograd.tasks.base.recipe import HeldOut
from memograd.tasks.text.rows import Dropped

SHOWN_IDS = 5


def describe_rewards(rewards: Sequence[WeightedReward]) -> None:
    """Print every reward with where it comes from and its weight."""
    for reward in rewards:
        module = str(getattr(reward.function, "__module__", ""))
        own = not reward.reads_messages or module.startswith("memograd.")
        origin = "built in" if own else "yours"
        console.print(f"reward {reward.name} ({origin}), weight {reward.weight:g}")


def describe_dropped(dropped: Sequence[Dropped], limit: int, folder: Path) -> None:
    """Write the rows that were left out for their length into `folder`, and print how many."""
    lines = [json.dumps({"id": row.id, "tokens": row.tokens, "limit": limit}) for row in dropped]
    (folder / "dropped.jsonl").write_text("".join(f"{line}\n" for line in lines))
    if dropped:
        ids = ", ".join(row.id for row in dropped[:SHOWN_IDS])
        more = ", ..." if len(dropped) > SHOWN_IDS else ""
        console.print(
            f"left out {len(dropped)} prompts of more than {limit} tokens: "
            f"{ids}{more} (listed in {folder / 'dropped.jsonl'})"
        )


TOTAL = "total"
"""The name of the weighted sum among the rewards of a report."""
HEADER: Final = ("reward", "before", "after", "difference")
EXAMPLES = 5
"""Rows whose answers are shown in `evaluation.md`; `answers.jsonl` has all of them."""


@dataclass(frozen=True)
class MeasuredRows:
    """The answers to all rows, and their rewards."""

    answers: list[str]
    rewards: RewardTable

    def values(self, name: str) -> list[float | None]:
        """One reward's values, or the total."""
        return list(self.rewards.total) if name == TOTAL else self.rewards.by_name[name]

    @property
    def score(self) -> float:
        """The mean total reward."""
        return sum(self.rewards.total) / len(self.rewards.total)


@dataclass(frozen=True)
class RewardChange:
    """One reward over the `n` rows where it applies both before and after.

    Each is (mean, low, high): 95% bootstrap intervals.
    """

    reward: str
    n: int
    before: Interval
    after: Interval
    difference: Interval


def measure(
    policy: Policy,
    scenarios: Sequence[Scenario],
    rewards: Sequence[WeightedReward],
    config: TrainConfig,
    label: str,
) -> MeasuredRows:
    """Answer all scenarios greedily and reward the answers."""
    with counting_progress(f"answering, {label}", total=len(scenarios)) as on_progress:
        answers = greedy_answers(
            policy,
            scenarios,
            max_completion_length=config.max_completion_length,
            batch_size=config.eval_batch_size,
            on_progress=on_progress,
        )
    columns = scenarios[0].columns
    table = compute_rewards(
        rewards,
        rollout_ids=[f"evaluation {scenario.id}" for scenario in scenarios],
        prompts=[scenario.prompt for scenario in scenarios],
        completions=answers,
        columns={name: [scenario.columns[name] for scenario in scenarios] for name in columns},
    )
    return MeasuredRows(answers, table)


def held_out_rows(
    policy: Policy,
    scenarios: Sequence[Scenario],
    rewards: Sequence[WeightedReward],
    config: TrainConfig,
) -> HeldOut[MeasuredRows]:
    """What a job measures whose held-out rows are `scenarios`."""
    return HeldOut(
        scenarios,
        MeasuredRows,
        measure=lambda label: measure(policy, scenarios, rewards, config, label),
        score=lambda answered: answered.score,
        report=lambda before, after, folder: report(before, after, scenarios, folder),
    )


def compare(before: MeasuredRows, after: MeasuredRows) -> list[RewardChange]:
    """Every reward before and after, the total first; one that applies to no row is left out."""
    changes = []
    for name in (TOTAL, *before.rewards.by_name):
        pairs = [
            (old, new)
            for old, new in zip(before.values(name), after.values(name), strict=True)
            if old is not None and new is not None
        ]
        if pairs:
            old, new = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            difference = paired_bootstrap_difference(old, new)
            sides = mean_interval(old), mean_interval(new)
            changes.append(RewardChange(name, len(pairs), *sides, difference))
    return changes


def report(
    before: MeasuredRows,
    after: MeasuredRows,
    scenarios: Sequence[Scenario],
    folder: Path,
) -> None:
    """Print the comparison and write it into `folder` (Markdown, JSON, every answer)."""
    changes = compare(before, after)
    console.print(plain_table(HEADER, _rows(changes)))
    answers = [
        {
            "id": scenario.id,
            "prompt": scenario.prompt,
            "columns": dict(scenario.columns),
            "before": _answer(before, row),
            "after": _answer(after, row),
        }
        for row, scenario in enumerate(scenarios)
    ]
    files = {
        "evaluation.md": _markdown(changes, answers),
        "evaluation.json": json.dumps([asdict(change) for change in changes], indent=2),
        "answers.jsonl": as_lines(answers),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _answer(measured: MeasuredRows, row: int) -> dict[str, Any]:
    names = (TOTAL, *measured.rewards.by_name)
    return {
        "answer": measured.answers[row],
        "rewards": {name: measured.values(name)[row] for name in names},
    }


def _rows(changes: Sequence[RewardChange]) -> list[list[str]]:
    rows = []
    for change in changes:
        name = f"{change.reward} (n={change.n})"
        cells = [written_interval(change.before), written_interval(change.after)]
        rows.append([name, *cells, written_interval(change.difference, sign="+")])
    return rows


def _markdown(changes: Sequence[RewardChange], answers: Sequence[dict[str, Any]]) -> str:
    blocks = [
        "Greedy answers to the held-out rows; mean [95% bootstrap interval over rows].",
        markdown_table(HEADER, _rows(changes)),
    ]
    for entry in answers[:EXAMPLES]:
        prompt = entry["prompt"]
        shown = prompt if isinstance(prompt, str) else prompt[-1]["content"]
        blocks.append(f"**{entry['id']}**\n\n" + _quoted(shown))
        for label in ("before", "after"):
            said = entry[label]
            blocks.append(f"{label}, {said['rewards'][TOTAL]:.3f}:\n\n" + _quoted(said["answer"]))
    return "\n\n".join(blocks) + "\n"


def _quoted(text: str) -> str:
    """As a block of code, which shows tags and line breaks as they are."""
    return "\n".join("    " + line for line in text.splitlines() or [""])
