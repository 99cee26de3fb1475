"""The text task from end to end: a file of prompts, reward functions, any causal language model.

`train` makes a run folder (or goes on with one) and measures the held-out rows before and after.
The command line calls it as `memograd train text`; `docs/text-task.md` is the user's guide.

Invariant: a run that was killed and resumed gives the numbers of the run that never stopped.
Tested in `tests/recipes/test_text.py`. May import every room below the recipes.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rich.console import Console

from memograd.config import TrainConfig
from memograd.grpo import RunFolder
from memograd.recipes.job import Job, train_job
from memograd.recipes.rows_report import describe_dropped, describe_rewards
from memograd.recipes.text_measure import Measured, measure, report
from memograd.recipes.text_setup import TextJob, located, prepare

console = Console(markup=False, highlight=False, soft_wrap=True)

TASK = "text"


def train(config: TrainConfig) -> Path:
    """Train on the rows of `config.data` by `config.rewards`; returns the run folder.

    With `config.resume`, the run in that folder goes on from its last complete checkpoint.
    """
    return train_job(located(config), TASK, make_job, console)


def make_job(config: TrainConfig, checkpoint: Path | None) -> Job[Measured]:
    """What is trained on which rows, and how it is measured."""
    job = prepare(config, checkpoint)
    held_out = job.evaluation
    return Job(
        policy=job.policy,
        rewards=job.rewards,
        train=job.train,
        describe=partial(_describe, job),
        measure=(
            (lambda label: measure(job.policy, held_out, job.rewards, config, label, console))
            if held_out
            else None
        ),
        report=lambda before, after, folder: report(before, after, held_out, folder, console),
    )


def _describe(job: TextJob, run: RunFolder) -> None:
    """Say what is trained on and by what, and write down which rows were left out."""
    policy = job.policy
    describe_rewards(job.rewards, console)
    describe_dropped(job.dropped, job.prompt_limit, run.path, console)
    if policy.tokenizer.chat_template and any(one.text is not None for one in job.train):
        console.print(
            f"string prompts are continued as they stand; {policy.name} has a chat template, which "
            "text.string_prompts=chat would put them in"
        )
    console.print(
        f"training {policy.name} on {len(job.train)} prompts, "
        f"{len(job.evaluation)} held out, on {policy.device.type}"
    )
