"""Measuring a run that is there already, whatever its task: `memograd evaluate --run`.

A recipe that knows a way of its own is asked to (`Recipe.evaluate`); any other run is measured by
the job that its training made, with the last complete checkpoint. Invariant: a run is never
measured on what it was trained on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memograd.config import SamplerConfig, TrainConfig
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.distributed import ALONE
from memograd.grpo.resume import begun, stored_config
from memograd.tasks.base.life import measured_before
from memograd.tasks.base.recipe import Evaluation, Recipe
from memograd.tasks.registry import TASKS, Task

CONVERSATIONS = "memory-qa"
"""Warm starts (sft and dpo), and the first runs, which did not say their task, are asked about
conversations."""


def evaluate(run: Path, asked: Evaluation) -> None:
    """Measure `run` before and after training; tables go to the terminal and into its folder.

    What is measured on other data than the run's held-out ones goes into a subfolder.

    Raises:
        BadInput: there is nothing to measure on, or it was trained on.
    """
    folder = RunFolder.open(run)
    of_no_task = begun(folder).recipe or not folder.task
    name = CONVERSATIONS if of_no_task else folder.task
    if name not in TASKS:
        raise BadInput(
            f"{run} is a run of {name}, which no installed package brings: install the one that"
            " trained it."
        )
    task = TASKS[name]
    recipe = task.load()
    if recipe.evaluate is not None:
        recipe.evaluate(run, asked)
    else:
        _by_its_job(folder, task, recipe, asked)


def _by_its_job(folder: RunFolder, task: Task, recipe: Recipe[Any, Any], asked: Evaluation) -> None:
    run, data = folder.path, asked.data
    asked.check_by_data(run, task.name)
    config: Any = stored_config(folder, task.settings)
    if isinstance(config, TrainConfig):  # the servers that it was drawn from may be gone
        config = config.model_copy(update={"sampler": SamplerConfig()})
    checkpoint = folder.trained_checkpoint()
    if data is not None:
        if not hasattr(config, "text"):
            raise BadInput(f"{run} is a run of {task.name}, which takes no --data.")
        text = config.text.model_copy(update={"eval_data": data.resolve()})
        config = config.model_copy(update={"text": text})
    job = recipe.make_job(config, checkpoint)
    held_out = job.held_out
    if held_out is None:
        raise BadInput(f"{run} holds nothing out; give rows to measure on with --data FILE.")
    results = asked.open_results(run)
    with job.opened(results, ALONE):
        before = measured_before(job, held_out)
        held_out.report(before, held_out.measure("trained"), results)
