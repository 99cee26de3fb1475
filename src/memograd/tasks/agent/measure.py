"""How a policy fares in the held-out episodes before and after training.

Actions are greedy. Rewards are measured as in the text task (means with 95% bootstrap intervals
over rows, differences row by row); beside them stand the counts of the episodes: why they ended,
how many turns they took, which tool calls failed. Invariant: before and after play the same rows
from the same random state.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memograd.evaluation.report import markdown_table, plain_table
from memograd.grpo.batch import reward_rollouts
from memograd.rewards import WeightedReward
from memograd.rollout.episode import episode_metrics
from memograd.rollout.types import Rollout, Scenario
from memograd.tasks.base.progress import console, counting_progress
from memograd.tasks.base.recipe import HeldOut
from memograd.tasks.text.measure import MeasuredRows, report


@dataclass(frozen=True)
class MeasuredEpisodes:
    """What each attempt, one a row, was worth, and `episode_metrics` of all."""

    measured: MeasuredRows
    counts: dict[str, Any]


def measured(
    rewards: Sequence[WeightedReward], scenarios: Sequence[Scenario], rollouts: list[Rollout]
) -> MeasuredEpisodes:
    """What these attempts, one at each scenario, were worth."""
    table = reward_rollouts(rewards, list(zip(scenarios, rollouts, strict=True)))
    said = ["\n".join(f"[{m['role']}] {m['content']}" for m in one.attempt) for one in rollouts]
    return MeasuredEpisodes(MeasuredRows(said, table), episode_metrics(rollouts))


def play_in_batches(
    scenarios: Sequence[Scenario],
    size: int,
    label: str,
    attempt: Callable[[Sequence[Scenario], Sequence[Sequence[str]]], Sequence[Sequence[Rollout]]],
) -> list[Rollout]:
    """One attempt at each scenario, so many at once; `attempt` gets them and rollouts' ids."""
    rollouts: list[Rollout] = []
    with counting_progress(f"playing, {label}", total=len(scenarios)) as on_progress:
        for first in range(0, len(scenarios), size):
            chosen = scenarios[first : first + size]
            names = [[f"evaluation {scenario.id}"] for scenario in chosen]
            rollouts += [rollout for (rollout,) in attempt(chosen, names)]
            on_progress(len(rollouts))
    return rollouts


def report_episodes(
    before: MeasuredEpisodes,
    after: MeasuredEpisodes,
    held_out: Sequence[Scenario],
    folder: Path,
) -> None:
    """Print the comparison and write it into `folder`, the counts of episodes too."""
    report(before.measured, after.measured, held_out, folder)
    header, rows = ("", "before", "after"), _counts(before.counts, after.counts)
    console.print(plain_table(header, rows))
    counts = {"before": before.counts, "after": after.counts}
    (folder / "episodes.json").write_text(json.dumps(counts, indent=2), encoding="utf-8")
    with (folder / "evaluation.md").open("a", encoding="utf-8") as file:
        file.write(f"\nHow the episodes went:\n\n{markdown_table(header, rows)}\n")


def held_out_episodes(
    scenarios: Sequence[Scenario], measure: Callable[[str], MeasuredEpisodes]
) -> HeldOut[MeasuredEpisodes]:
    """What a job measures whose held-out rows are `scenarios`."""
    return HeldOut(
        scenarios,
        MeasuredEpisodes,
        measure=measure,
        score=lambda played: played.measured.score,
        report=lambda before, after, folder: report_episodes(before, after, scenarios, folder),
    )


def _counts(before: Mapping[str, Any], after: Mapping[str, Any]) -> Sequence[tuple[str, str, str]]:
    """A line for every number that is not 0 on both sides; counts by kind one by one."""
    flat = [_flat(side) for side in (before, after)]
    names = dict.fromkeys(name for side in flat for name in side)
    return [
        (name, f"{flat[0].get(name, 0):g}", f"{flat[1].get(name, 0):g}")
        for name in names
        if any(side.get(name, 0) for side in flat)
    ]


def _flat(counts: Mapping[str, Any]) -> dict[str, float]:
    return {
        f"{name} {kind}".strip().replace("_", " "): number
        for name, value in counts.items()
        for kind, number in (value if isinstance(value, Mapping) else {"": value}).items()
    }
