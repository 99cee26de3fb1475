"""Measuring a run that is there already, whatever its task: `memograd evaluate --run`.

A run on conversations is measured by `memory_qa.evaluate`; runs that train on rows (`RECIPES`) by
the `Job` that their training made, with the last complete checkpoint; policies over memory
operations by `memory_ops_evaluate`. Invariant: a run is never measured on what it was trained on.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memograd.config import TrainConfig
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.resume import stored_config
from memograd.tasks.base.job import Job, measured_before
from memograd.tasks.memory_ops import evaluate as memory_ops_evaluate
from memograd.tasks.memory_ops.settings import OperationsEvaluation
from memograd.tasks.memory_qa import recipe as memory_qa

RECIPES = {
    "text": "memograd.tasks.text.recipe",
    "agent": "memograd.tasks.agent.recipe",
    "served-agent": "memograd.tasks.agent.served",
    "sql": "memograd.tasks.sql.recipe",
    "memory-construct": "memograd.tasks.memory_construct.recipe",
    "memory-ops-text": "memograd.tasks.memory_ops_text.recipe",
}
"""Tasks whose recipe has `make_job(config, checkpoint)`."""


def evaluate(run: Path, data: Path | None, conversations: Sequence[str], baselines: bool) -> None:
    """Measure `run` before and after training; tables go to the terminal and into its folder.

    `data` are other conversations, rows or questions than the run's held-out ones; what is measured
    on them goes into a subfolder. `conversations` and `baselines` are for runs on conversations,
    see `memory_qa.evaluate`.

    Raises:
        BadInput: there is nothing to measure on, or it was trained on.
    """
    folder = RunFolder.open(run)
    if folder.task == memory_ops_evaluate.TASK:
        options = OperationsEvaluation(data=[data] if data else [])
        memory_ops_evaluate.evaluate_run(run, options, conversations=conversations)
        return
    if folder.task not in RECIPES:
        memory_qa.evaluate(run, data, list(conversations), baselines)
        return
    if conversations or baselines:
        raise BadInput(
            f"{run} is a run of {folder.task}: --conversation and --baselines are for runs on "
            "conversations."
        )
    config = stored_config(folder)
    checkpoint = folder.latest_checkpoint()
    if checkpoint is None:
        raise BadInput(f"{run} has no complete checkpoint yet; train it first (resume={run}).")
    if data is not None:
        text = config.text.model_copy(update={"eval_data": data.resolve()})
        config = config.model_copy(update={"text": text})
    job = _make_job(folder.task)(config, checkpoint)
    if job.measure is None:
        raise BadInput(f"{run} holds nothing out; give rows to measure on with --data FILE.")
    results = run if data is None else run / f"evaluation-{data.stem}"
    results.mkdir(exist_ok=True)
    with job.opened(results):
        before = measured_before(job)
        job.report(before, job.measure("trained"), results)


def _make_job(task: str) -> Callable[[TrainConfig, Path], Job[Any]]:
    make: Callable[[TrainConfig, Path], Job[Any]] = importlib.import_module(RECIPES[task]).make_job
    return make
