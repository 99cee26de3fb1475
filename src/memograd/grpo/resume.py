"""With which settings a run goes on.

A resumed run keeps the settings it began with, because its numbers shall be those of the run that
never stopped. Those in `CHANGEABLE` may be given anew: they move no weight, except that a schedule
which is spread over all `steps` is then spread over more. Everything else is refused. Invariant:
what is refused leaves `config.json` as it was.

Notices that a resumed run would be trained on other data than it began with.

`data.json` in the run folder holds a SHA-256 of every scenario (id, prompt, columns) in order,
written when training begins. Invariant: scenarios that differ anywhere, or come in another order,
are refused on resume with the first rows that differ; equal ones are never refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from memograd.config import TrainConfig
from memograd.config.run_settings import RECIPES, settings_of_run
from memograd.config.warm_start_settings import WarmStartSettings
from memograd.errors import BadInput
from memograd.grpo.run_folder import RunFolder, checkpoint_step, plain_json
from memograd.rollout.types import Scenario

SHOWN = 3
"""How many rows that differ are named."""


def fingerprint(scenario: Scenario) -> str:
    """SHA-256 (hexadecimal) of one scenario's id, prompt and columns."""
    content = plain_json([scenario.id, scenario.prompt, dict(scenario.columns)])
    return hashlib.sha256(content.encode()).hexdigest()


def check_data(run: RunFolder, scenarios: Sequence[Scenario]) -> None:
    """Write the fingerprint of `scenarios` into a new run, or compare it with a resumed one's.

    Raises:
        BadInput: they are not the scenarios that the run began with.
    """
    now = [(scenario.id, fingerprint(scenario)) for scenario in scenarios]
    stored = run.read_data()
    if stored is None:
        digest = hashlib.sha256("".join(row for _, row in now).encode()).hexdigest()
        run.write_data({"sha256": digest, "scenarios": now})
        return
    began = [(str(name), str(row)) for name, row in stored["scenarios"]]
    if began != now:
        raise BadInput(
            f"The data changed since {run.path} began ({'; '.join(_differences(began, now))}): "
            "resume with the data as it was, or begin a new run with out=FOLDER."
        )


def _differences(began: list[tuple[str, str]], now: list[tuple[str, str]]) -> Iterator[str]:
    """What differs, in words, rows counted from 1."""
    if len(began) != len(now):
        yield f"{len(now)} rows now, {len(began)} then"
    differing = [
        (row, old[0], new[0])
        for row, (old, new) in enumerate(zip(began, now, strict=False), start=1)
        if old != new
    ]
    for row, old, new in differing[:SHOWN]:
        if old == new:
            yield f"row {row}, {new}, has another prompt or other columns"
        else:
            yield f"row {row} is {new} and was {old}"
    if len(differing) > SHOWN:
        yield f"{len(differing) - SHOWN} more"


CHANGEABLE = frozenset({"steps", "save_steps", "rollout_log_steps", "eval_batch_size", "track"})
"""Settings that may differ when a run goes on; `docs/runs.md` lists them."""


def stored_config(run: RunFolder) -> TrainConfig:
    """The settings that a training run began with.

    Raises:
        BadInput: this version of memograd does not know them, or they are those of a warm start.
    """
    settings = stored_settings(run)
    if isinstance(settings, WarmStartSettings):
        raise BadInput(
            f"{run.path} was made by memograd {settings.recipe} and cannot be resumed; begin a new "
            f"run with its adapter: adapter={run.path}"
        )
    return settings


def check_task(run: RunFolder, task: str, *, or_unsaid: bool = False) -> None:
    """Refuse to go on with a run of another task; `or_unsaid`: the first runs did not say theirs.

    Raises:
        BadInput: it is one, or was made by a warm start.
    """
    if run.task in RECIPES:
        stored_config(run)  # says what to do instead
    if run.task != task and not (or_unsaid and not run.task):
        raise BadInput(
            f"{run.path} is a run of {run.task or 'another task'}, not of {task}; go on with it by "
            "the command that began it."
        )


def stored_settings(run: RunFolder) -> TrainConfig | WarmStartSettings:
    """The settings that a run began with, whichever command made it.

    Raises:
        BadInput: this version of memograd does not know them, or their file is damaged.
    """
    try:
        return settings_of_run(run.config_json)
    except (JSONDecodeError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{run.path / 'config.json'} is damaged ({error}); put back the settings that the run "
            "began with."
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInput(
            f"{run.path / 'config.json'} does not fit this version of memograd: "
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        ) from error


def resumed_config(run: RunFolder, config: TrainConfig) -> TrainConfig:
    """The settings the run began with and those given now that may change; written down again.

    Raises:
        BadInput: a setting that may not change is given another value, or fewer steps than are
            done are asked for.
    """
    began = stored_config(run)
    if config.data is not None:
        config = config.model_copy(update={"data": config.data.resolve()})
    if "model" in config.model_fields_set and Path(config.model).is_dir():
        config = config.model_copy(update={"model": str(Path(config.model).resolve())})
    given = config.model_fields_set - {"resume"}
    refused = sorted(
        name
        for field in given - CHANGEABLE
        for name in _differing(field, getattr(config, field), getattr(began, field))
    )
    if refused:
        raise BadInput(
            f"a resumed run keeps its settings, but {', '.join(refused)} would change "
            f"{run.path / 'config.json'}; only {', '.join(sorted(CHANGEABLE))} may"
        )
    resumed = began.model_copy(update={name: getattr(config, name) for name in given & CHANGEABLE})
    checkpoint = run.latest_checkpoint()
    if checkpoint is not None and checkpoint_step(checkpoint) > resumed.steps:
        raise BadInput(
            f"{checkpoint} is at step {checkpoint_step(checkpoint)} already, beyond "
            f"steps={resumed.steps}; ask for more"
        )
    run.replace_config(resumed.model_dump_json(indent=2))
    return resumed


def _differing(name: str, given: Any, began: Any) -> list[str]:
    """The dotted names of what differs; of a section, only what was given counts."""
    if given == began:
        return []
    if isinstance(given, BaseModel):
        return [
            inner
            for key in sorted(given.model_fields_set)
            for inner in _differing(f"{name}.{key}", getattr(given, key), getattr(began, key))
        ]
    return [name]
