"""One training job of any task that trains on rows: measure, train, measure again.

A task says what it needs in a `Job`; making the run folder, going on with one, and the order of
things are the same for all and stand here. Invariant: a run that was killed and resumed gives the
numbers of the run that never stopped. Several processes (`memograd.grpo.distributed`) train a job
together; rank 0 writes, speaks and measures.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from rich.console import Console

from memograd.config import TrainConfig
from memograd.evaluation import plot_curves
from memograd.grpo import RunFolder
from memograd.grpo.distributed import World
from memograd.grpo.drawing import Drawing
from memograd.grpo.resume import check_task, resumed_config, stored_config
from memograd.grpo.trackers import check_trackers, open_trackers
from memograd.grpo.trainer import Trainer
from memograd.policy.language_model import LanguageModel
from memograd.rewards import WeightedReward
from memograd.rollout.types import Scenario
from memograd.tasks.base.progress import training_progress
from memograd.tasks.base.ranks import held, joined_ranks, share_weights
from memograd.tasks.base.starting_adapter import settings_with_adapter

M = TypeVar("M")


@dataclass(frozen=True)
class Job(Generic[M]):
    """What is trained on what, and how it is measured.

    `describe` says it before training begins; `measure` (None: nothing is held out) gets a label
    for the screen; `report` gets what was measured before and after, and the run folder. `opened`
    gets the run folder too, and holds what drawing and measuring need while they go on. Before
    training means with the adapter that training began with, if any (`adapter=`), so that what a
    warm start had learnt is not counted as learnt here; `before_alone`: without any, for a task
    whose report measures the warm start beside it.
    """

    policy: LanguageModel
    rewards: list[WeightedReward]
    train: list[Scenario]
    describe: Callable[[RunFolder], None]
    measure: Callable[[str], M] | None
    report: Callable[[M, M, Path], None]
    drawing: Drawing | None = None
    opened: Callable[[Path], AbstractContextManager[object]] = nullcontext
    before_alone: bool = False


def train_job(
    config: TrainConfig,
    task: str,
    prepare: Callable[[TrainConfig, Path | None], Job[M]],
    console: Console,
) -> Path:
    """Train the job that `prepare` makes of settings and checkpoint; returns the run folder.

    With `config.resume`, the run in that folder goes on from its last complete checkpoint.

    Raises:
        BadInput: that folder is a run of another task; or what `prepare` refuses.
    """
    if config.resume is not None:
        began = RunFolder.open(config.resume)
        check_task(began, task)
        device = stored_config(began).device
        with joined_ranks(device, console) as world, held(began, world) as run:
            # The run of `adapter` is in the settings as its checkpoint.
            given = settings_with_adapter(config)
            config = world.led(lambda: resumed_config(run, given))
            checkpoint = world.led(run.latest_checkpoint)
            job = world.guarded(lambda: prepare(config, checkpoint))
            return _train_in(world, run, config, job, checkpoint, console, resumed=True)
    with joined_ranks(config.device, console) as world:
        out = world.led(lambda: _free_folder(config, task))
        config = settings_with_adapter(config)
        job = world.guarded(lambda: prepare(config, None))
        with held(world.led(lambda: _new_run(out, config, job, task)), world) as run:
            return _train_in(world, run, config, job, None, console)


def _free_folder(config: TrainConfig, task: str) -> Path:
    out = config.out or Path("runs") / f"{task}-{time.strftime('%Y%m%d-%H%M%S')}"
    RunFolder.check_free(out)
    check_trackers(config.track)
    return out


def _new_run(out: Path, config: TrainConfig, job: Job[M], task: str) -> RunFolder:
    run = RunFolder.create(out, config.model_dump_json(indent=2), task=task)
    environment = json.dumps(job.policy.environment(), indent=2)
    (run.path / "environment.json").write_text(environment, encoding="utf-8")
    return run


def _train_in(
    world: World,
    run: RunFolder,
    config: TrainConfig,
    job: Job[M],
    checkpoint: Path | None,
    console: Console,
    *,
    resumed: bool = False,
) -> Path:
    """Train in a folder that is ours."""
    share_weights(job.policy, config, world)
    trackers = world.guarded(lambda: open_trackers(config, run))
    world.led(lambda: job.describe(run))
    with ExitStack() as stack:
        world.guarded(lambda: stack.enter_context(job.opened(run.path)))
        before = world.led(lambda: measured_before(job))
        with training_progress(console, total=config.steps) as on_step:
            trainer = world.guarded(
                lambda: Trainer(
                    job.policy,
                    job.train,
                    job.rewards,
                    config,
                    run,
                    drawing=job.drawing,
                    on_step=on_step,
                    trackers=trackers,
                    world=world,
                )
            )
            if checkpoint is not None:
                world.guarded(lambda: trainer.restore(checkpoint))
                console.print(f"going on after step {trainer.step} ({checkpoint.name})")
            elif resumed:
                console.print(
                    "there is no complete checkpoint yet: starting over from the first step"
                )
            if resumed:
                world.guarded(lambda: run.truncate_metrics(trainer.step))
            trainer.train()
        world.led(lambda: _finish(run, job, before))
    return run.path


def measured_before(job: Job[M]) -> M | None:
    """What is measured of the policy that training began with; None if nothing is held out."""
    if job.measure is None:
        return None
    with job.policy.untrained() if job.before_alone else job.policy.at_start():
        return job.measure("untrained" if job.before_alone else "before training")


def _finish(run: RunFolder, job: Job[M], before: M | None) -> None:
    """Plot the curves, measure again and report both measurements."""
    plot_curves(run.metrics_path, run.path / "curves.png")
    if job.measure is not None and before is not None:
        job.report(before, job.measure("trained"), run.path)
