"""The one life of a run, whatever its task: settle, create or resume, measure, train, report.

Invariants: a run that was killed and resumed gives the numbers of the run that never stopped; what
was measured before training is measured once, and read back when the run goes on. What a run came
to is measured and reported even where its curves cannot be drawn. Several processes
(`memograd.grpo.distributed`) train a job together; rank 0 writes, speaks and measures.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Final, TypeVar

from pydantic import TypeAdapter
from rich.console import Console

from memograd.config import RunSettings, TrainConfig
from memograd.errors import BadInput
from memograd.evaluation import plot_curves
from memograd.grpo import RunFolder
from memograd.grpo.checkpoint_folder import replace_text
from memograd.grpo.distributed import World
from memograd.grpo.resume import check_task, resumed_config, stored_config
from memograd.grpo.run_folder import plain_json, unnamed
from memograd.grpo.trackers import check_trackers, open_trackers
from memograd.grpo.trainer import Stage
from memograd.tasks.base.policy import (
    check_before_loading,
    check_shared,
    held,
    joined_ranks,
    settings_with_adapter,
)
from memograd.tasks.base.progress import training_progress
from memograd.tasks.base.recipe import HeldOut, Job, Recipe

C = TypeVar("C", bound=RunSettings)
M = TypeVar("M")

BEFORE: Final = "before.json"
"""What was measured before training, in the run folder."""


def train_task(task: str, recipe: Recipe[C, M], config: C) -> Path:
    """Train the job that `recipe` makes of the settings; returns the run folder.

    With `config.resume`, the run in that folder goes on from its last complete checkpoint.

    Raises:
        BadInput: that folder is a run of another task; or what the recipe refuses.
        Stopped: a signal came; a checkpoint was written.
    """
    config, console = recipe.settled(config), recipe.console
    if config.resume is not None:
        began = RunFolder.open(config.resume)
        check_task(began, task, or_unsaid=recipe.or_unsaid)
        device = _device(stored_config(began, type(config)))
        with joined_ranks(device, console) as world, held(began, world) as run:
            # The run of `adapter` is in the settings as its checkpoint.
            given = world.guarded(lambda: _with_adapter(config))
            config = world.led(lambda: _going_on(run, given, world))
            world.guarded(lambda: _check_before_loading(config, world))
            checkpoint = world.led(run.latest_checkpoint)
            job = world.guarded(lambda: recipe.make_job(config, checkpoint))
            _said(console, job.share(world))
            return _train_in(world, run, config, job, checkpoint, console, resumed=True)
    with joined_ranks(_device(config), console) as world:
        out = world.led(lambda: _free_folder(config, task))
        config = world.guarded(lambda: _with_adapter(config))
        world.guarded(lambda: _check_before_loading(config, world))
        job = world.guarded(lambda: recipe.make_job(config, None))
        # Who cannot be shared, or does not fit, is refused before there is a folder.
        _said(console, job.share(world))
        with held(world.led(lambda: _new_run(out, config, job, task)), world) as run:
            try:
                return _train_in(world, run, config, job, None, console)
            except BadInput:
                if world.leads:  # what is wrong is mended, and the same command given again
                    run.remove_untouched()
                raise


def measured_before(job: Job[M], held_out: HeldOut[M]) -> M:
    """What is measured of the policy that training began with."""
    with job.at_start():
        return held_out.measure(job.label_before)


def _said(console: Console, line: str | None) -> None:
    if line:
        console.print(line)


def _device(config: RunSettings) -> str:
    return config.device if isinstance(config, TrainConfig) else "cpu"


def _with_adapter(config: C) -> C:
    return settings_with_adapter(config) if isinstance(config, TrainConfig) else config


def _check_before_loading(config: RunSettings, world: World) -> None:
    if isinstance(config, TrainConfig):
        check_before_loading(config, world)


def _free_folder(config: RunSettings, task: str) -> Path:
    out = config.out or unnamed(task)
    RunFolder.check_free(out)
    check_trackers(config.track)
    return out


def _going_on(run: RunFolder, given: C, world: World) -> C:
    # What may be given anew is looked at before it is written down.
    check_trackers(given.track)
    if isinstance(given, TrainConfig):
        check_shared(given, world)
    return resumed_config(run, given)


def _new_run(out: Path, config: RunSettings, job: Job[M], task: str) -> RunFolder:
    settings = job.settings or config
    run = RunFolder.create(out, settings.model_dump_json(indent=2), task=task)
    environment = json.dumps(job.environment(), indent=2)
    (run.path / "environment.json").write_text(environment, encoding="utf-8")
    return run


def _train_in(
    world: World,
    run: RunFolder,
    config: RunSettings,
    job: Job[M],
    checkpoint: Path | None,
    console: Console,
    *,
    resumed: bool = False,
) -> Path:
    """Train in a folder that is ours."""
    trackers = world.guarded(lambda: open_trackers(config.track, run))
    with ExitStack() as stack:
        world.guarded(lambda: stack.enter_context(job.opened(run.path, world)))
        world.led(lambda: job.describe(run))
        before = world.led(lambda: _before(run, job))
        progress = training_progress(console, total=config.steps, describe=job.describe_step)
        with progress as on_step:  # ends before anything else is counted on the screen
            training = world.guarded(lambda: job.training(Stage(run, world, trackers, on_step)))
            if checkpoint is not None:
                world.guarded(lambda: training.restore(checkpoint))
                console.print(f"going on after step {training.step} ({checkpoint.name})")
            elif resumed:
                console.print(
                    "there is no complete checkpoint yet: starting over from the first step"
                )
            if resumed:
                _said(console, world.guarded(lambda: run.truncate_metrics(training.step)))
            training.train()
        world.led(lambda: _finish(run, job, before, console))
    return run.path


def _before(run: RunFolder, job: Job[M]) -> M | None:
    """What was measured before training: read back if it stands in the folder already."""
    held_out, path = job.held_out, run.path / BEFORE
    if held_out is None:
        return None
    measured_on = hashlib.sha256(plain_json(held_out.data).encode()).hexdigest()
    if path.is_file():
        return _read_before(path, held_out, measured_on)
    before = measured_before(job, held_out)
    values = TypeAdapter(held_out.measured).dump_python(before, mode="json")
    replace_text(path, json.dumps({"measured_on": measured_on, "measured": values}))
    return before


def _read_before(path: Path, held_out: HeldOut[M], measured_on: str) -> M:
    try:
        stored = json.loads(path.read_bytes())
        before = TypeAdapter(held_out.measured).validate_json(json.dumps(stored["measured"]))
        same = stored["measured_on"] == measured_on
    except (ValueError, KeyError, TypeError) as error:  # ValidationError is a ValueError
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise BadInput(
            f"{path} is damaged ({reason}): remove it, and it is measured again."
        ) from error
    if not same:
        raise BadInput(
            f"What is measured on changed since {path} was written: put the held-out data back, or"
            " remove that file, and what the run began with is measured on the new data."
        )
    return before


def _finish(run: RunFolder, job: Job[M], before: M | None, console: Console) -> None:
    """Plot the curves, measure again and report both measurements."""
    try:
        plot_curves(run.metrics_path, run.path / "curves.png")
    except Exception as error:  # whatever a picture stumbles over, what was trained is measured
        reason = str(error) if isinstance(error, BadInput) else f"{type(error).__name__}: {error}"
        console.print(f"the curves are not drawn: {reason.rstrip('.')}; all else is done")
    if job.held_out is not None and before is not None:
        job.held_out.report(before, job.held_out.measure("trained"), run.path)
    job.finish(run.path)
