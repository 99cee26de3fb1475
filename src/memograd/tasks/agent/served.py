"""Agents of any framework from end to end: unchanged code, rows to try it on, any chat model.

`train` makes a run folder (or goes on with one): the agent attempts each row at a gateway over the
policy, the calls of the chosen agents are trained, and the held-out rows are attempted at
temperature 0 before and after. The command line calls it as `memograd train served-agent`;
`docs/gateway.md` is the user's guide.

Invariant: a run that was killed and resumed asks what the run that never stopped would have asked,
with the same seeds; with `served.concurrency=1` and an agent that repeats itself its numbers are
the same too, and otherwise up to the rounding of calls decoded together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.policy.language_model import LanguageModel
from memograd.rewards import ENVIRONMENT_COLUMN, WeightedReward
from memograd.rollout.types import Scenario
from memograd.tasks.agent.measure import MeasuredEpisodes, measured, report_episodes
from memograd.tasks.agent.serving import Serving, located_served
from memograd.tasks.agent.settings import ServedTrainConfig
from memograd.tasks.agent.setup import located_episodes
from memograd.tasks.base.policy import load_policy
from memograd.tasks.base.recipe import Job, Recipe, policy_job
from memograd.tasks.base.rewards import parse_rewards
from memograd.tasks.text.recipe import check_columns
from memograd.tasks.text.report import describe_rewards
from memograd.tasks.text.rows import TextRow, check_apart, read_rows, split_rows

console = Console(markup=False, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class ServedJob:
    """What is trained and measured, and the agent that does it."""

    policy: LanguageModel
    rewards: list[WeightedReward]
    train: list[Scenario]
    evaluation: list[Scenario]
    serving: Serving

    def measure(self, label: str) -> MeasuredEpisodes:
        """How the agent fares on the held-out rows."""
        rollouts = self.serving.play(self.evaluation, label, console)
        return measured(self.rewards, self.evaluation, rollouts)


def settled(config: ServedTrainConfig) -> ServedTrainConfig:
    """The given settings with every path absolute."""
    return located_served(located_episodes(config))


def make_job(config: ServedTrainConfig, checkpoint: Path | None) -> Job[MeasuredEpisodes]:
    """What is trained on which rows, and how it is measured."""
    job = prepare(config, checkpoint)
    return policy_job(
        job.policy,
        job.rewards,
        lambda world: job.train,
        config,
        held_out=job.evaluation,
        measured=MeasuredEpisodes,
        score=lambda episodes: episodes.measured.score,
        describe=partial(_describe, job, config),
        measure=job.measure if job.evaluation else None,
        report=lambda before, after, folder: report_episodes(
            before, after, job.evaluation, folder, console
        ),
        drawing=job.serving,
        opened=partial(job.serving.opened, job.policy, job.rewards),
    )


def prepare(config: ServedTrainConfig, checkpoint: Path | None) -> ServedJob:
    """Load the agent, read the rows and open the policy, with the checkpoint's adapter.

    Raises:
        BadInput: something is missing or does not fit.
    """
    if config.served.agent is None:
        raise BadInput(
            "There is no agent to train; give --agent my_agent.py:run, or "
            "--agent 'exec:python my_agent.py'."
        )
    if config.data is None:
        raise BadInput("An agent needs rows to train on; give --data FILE.jsonl.")
    serving = Serving(config)
    rewards = parse_rewards(config.rewards)
    train, evaluation = _rows(config, config.data)
    files = (config.data, config.text.eval_data or config.data)
    for part, file in zip((train, evaluation), files, strict=True):
        if part:
            check_columns(rewards, part, file, given=(ENVIRONMENT_COLUMN,))
    policy = load_policy(config, checkpoint)
    return ServedJob(policy, rewards, _scenarios(train), _scenarios(evaluation), serving)


def _rows(config: ServedTrainConfig, data: Path) -> tuple[list[TextRow], list[TextRow]]:
    rows = read_rows(data)
    if config.text.eval_data is None:
        return split_rows(rows, config.text.eval_fraction, by_columns=True)
    evaluation = read_rows(config.text.eval_data)
    check_apart(rows, evaluation, by_columns=True)
    return rows, evaluation


def _scenarios(rows: Sequence[TextRow]) -> list[Scenario]:
    """Rows as they stand: what of them becomes a prompt is the agent's affair."""
    return [
        Scenario(row.id, (), row.columns, text=row.prompt)
        if isinstance(row.prompt, str)
        else Scenario(row.id, row.prompt, row.columns)
        for row in rows
    ]


def _describe(job: ServedJob, config: ServedTrainConfig, run: RunFolder) -> None:
    """Say who is trained on what, and by what."""
    describe_rewards(job.rewards, console)
    named = ", ".join(config.served.optimize_agents) or "all agents"
    console.print(
        f"training {job.policy.name} as {named} of {config.served.agent} on {len(job.train)} rows, "
        f"{len(job.evaluation)} held out, on {job.policy.device.type}"
    )


RECIPE: Recipe[ServedTrainConfig, MeasuredEpisodes] = Recipe(make_job, console, settled)
