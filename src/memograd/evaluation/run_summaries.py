"""What is in run folders, in a form for tables: which runs there are, what each was told, how it
went.

Reads `config.json`, `metrics.jsonl`, `state.json` and manifests as plain JSON, so that runs of
other recipes and other versions are shown too. Invariant: nothing is written, and one damaged run
is shown as damaged and hides no other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from memograd.config import Settings
from memograd.config.load import values_of_kind
from memograd.errors import BadInput, MemogradError
from memograd.evaluation.run_log import flat, last_means
from memograd.grpo.checkpoint_folder import CheckpointSummary, list_checkpoints, read_object
from memograd.grpo.run_folder import RunFolder
from memograd.grpo.run_state import run_state

FOLDERS = {"out", "resume"}
"""Settings that say where a run is, not what it is."""


@dataclass(frozen=True)
class RunSummary:
    """One line of `memograd runs list`; None where a run does not say it."""

    path: Path
    task: str | None
    model: str | None
    steps_done: int
    steps_asked: int | None
    state: str
    reason: str
    reward_mean: float | None
    idle_seconds: float
    """Since the run last wrote metrics, or since it was made."""


@dataclass(frozen=True)
class RunDetails:
    """All of `memograd runs show`."""

    summary: RunSummary
    changed: dict[str, Any]
    """Settings that differ from the defaults, dotted."""
    environment: dict[str, Any]
    metrics: dict[str, Any]
    """The last line of metrics; empty before the first step."""
    checkpoints: list[CheckpointSummary]
    bytes: int
    """Size of the whole folder."""


def find_runs(folder: Path) -> list[Path]:
    """The run folders in `folder`, the one that was last at work first; a model that lies there,
    as `memograd merge` writes one, is none.

    Raises:
        BadInput: there is no such folder.
    """
    if not folder.is_dir():
        raise BadInput(f"There is no folder {folder}; say where the runs are with --dir FOLDER.")
    runs = [
        path
        for path in folder.iterdir()
        if (path / "config.json").is_file() and not any(path.glob("model*.safetensors*"))
    ]
    return sorted(runs, key=lambda path: (-_last_change(path), path.name))


def summarise_run(path: Path) -> RunSummary:
    """One run in a line; what is damaged in it becomes its state."""
    idle = max(0.0, time.time() - _last_change(path))
    try:
        run = RunFolder.open(path)
        config, rows, state = _config(run), run.read_metrics(), run_state(path)
        last: Mapping[str, Any] = rows[-1] if rows else {}
        return RunSummary(
            path=path,
            task=config.get("recipe") or run.task or None,
            model=config.get("model"),
            steps_done=int(last.get("step", 0)),
            steps_asked=config.get("steps"),
            state=state.name,
            reason=state.reason,
            reward_mean=last.get("reward_mean"),
            idle_seconds=idle,
        )
    except MemogradError as error:
        return RunSummary(path, None, None, 0, None, "damaged", str(error), None, idle)


def show_run(path: Path, kind_of: Callable[[str], type[Settings] | None]) -> RunDetails:
    """Everything about one run.

    kind_of: the settings of a task, or of a warm start, by its name; None where nobody knows it.

    Raises:
        BadInput: there is no run, or its settings or metrics are damaged.
    """
    run = RunFolder.open(path)
    rows = run.read_metrics()
    return RunDetails(
        summary=summarise_run(path),
        changed=changed_settings(run, kind_of(_config(run).get("recipe") or run.task)),
        environment=read_object(path / "environment.json"),
        metrics=rows[-1] if rows else {},
        checkpoints=list_checkpoints(path),
        bytes=sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
    )


def changed_settings(run: RunFolder, kind: type[Settings] | None) -> dict[str, Any]:
    """The settings of a run that differ from the defaults of its kind, dotted; all of them where
    the kind is not known."""
    values = _config(run)
    defaults: dict[str, Any] = {}
    if kind is not None:
        values = values_of_kind(values, kind)
        fields = {name: field.get_default() for name, field in kind.model_fields.items()}
        defaults = flat(TypeAdapter(dict[str, Any]).dump_python(fields, mode="json"), ".")
    missing = object()
    return {
        name: value
        for name, value in flat(values, ".").items()
        if name not in FOLDERS and defaults.get(name, missing) != value
    }


def compare_runs(paths: Sequence[Path], last: int) -> dict[str, dict[str, list[Any]]]:
    """Settings in which runs differ, and their metrics at the end, a value a run.

    Returns:
        `{"settings": {name: [...]}, "metrics": {name: [...]}}`; None where a run lacks it. Metrics
        are means over each run's last `last` steps.

    Raises:
        BadInput: there is no run at one of the paths, or the settings or metrics of one are
            damaged.
    """
    runs = [RunFolder.open(path) for path in paths]
    configs = [flat(_config(run), ".") for run in runs]
    means = [last_means(run.read_metrics(), last) for run in runs]
    return {
        "settings": {
            name: values
            for name, values in _side_by_side(configs).items()
            if name not in FOLDERS and any(value != values[0] for value in values)
        },
        "metrics": _side_by_side(means),
    }


def _side_by_side(columns: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for column in columns for name in column)
    return {name: [column.get(name) for column in columns] for name in names}


def _config(run: RunFolder) -> dict[str, Any]:
    try:
        config = json.loads(run.config_json)
    except ValueError as error:
        raise BadInput(
            f"{run.path / 'config.json'} is no JSON ({error}): put back the settings that the run"
            " began with."
        ) from error
    if not isinstance(config, dict):
        raise BadInput(
            f"{run.path / 'config.json'} is no JSON object: put back the settings that the run"
            " began with."
        )
    return config


def _last_change(path: Path) -> float:
    """When the run last measured something, or else when it was made; seconds since 1970."""
    metrics = path / "metrics.jsonl"
    return (metrics if metrics.is_file() else path / "config.json").stat().st_mtime
