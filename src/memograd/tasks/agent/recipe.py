"""Agents from end to end: an environment with tools, rows to reset it with, any chat model.

`train` makes a run folder (or goes on with one) and plays the held-out rows before and after. The
command line calls it as `memograd train agent`; `docs/episodes.md` is the user's guide.

Invariant: a run that was killed and resumed gives the numbers of the run that never stopped.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rich.console import Console

from memograd.grpo import RunFolder
from memograd.grpo.drawing import Episodes
from memograd.tasks.agent.measure import MeasuredEpisodes, held_out_episodes, measure_episodes
from memograd.tasks.agent.settings import AgentTrainConfig
from memograd.tasks.agent.setup import AgentJob, prepare, settled
from memograd.tasks.base.recipe import Job, Recipe, policy_job
from memograd.tasks.text.measure import describe_dropped, describe_rewards

console = Console(markup=False, highlight=False, soft_wrap=True)


def make_job(config: AgentTrainConfig, checkpoint: Path | None) -> Job[MeasuredEpisodes]:
    """What is trained in which episodes, and how it is measured."""
    job = prepare(config, checkpoint)
    return policy_job(
        job.policy,
        job.rewards,
        lambda world: job.train,
        config,
        held_out_episodes(
            job.evaluation, lambda label: measure_episodes(job, config, label, console), console
        ),
        describe=partial(_describe, job),
        drawing=Episodes(
            job.policy,
            job.chat,
            job.task,
            limits=job.limits,
            num_generations=config.num_generations,
            max_completion_length=config.max_completion_length,
        ),
    )


def _describe(job: AgentJob, run: RunFolder) -> None:
    """Say what is trained on and by what, and write down which rows were left out."""
    describe_rewards(job.rewards, console)
    describe_dropped(job.dropped, job.prompt_limit, run.path, console)
    if job.template_note is not None:
        console.print(job.template_note)
    console.print(
        f"training {job.policy.name} on {len(job.train)} rows, {len(job.evaluation)} held out, at "
        f"most {job.limits.max_turns} turns each, on {job.policy.device.type}"
    )


RECIPE: Recipe[AgentTrainConfig, MeasuredEpisodes] = Recipe(make_job, console, settled)
