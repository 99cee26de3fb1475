"""With which settings, and on which data, a run goes on.

A resumed run keeps the settings it began with, because its numbers shall be those of the run that
never stopped. Those in `CHANGEABLE` may be given anew: they move no weight, except that a schedule
which is spread over all `steps` is then spread over more. `data.json` in the run folder holds a
SHA-256 of every scenario (id, prompt, columns) in order, written when training begins. Everything
else that would change is refused.

Invariants: what is refused leaves `config.json` as it was; scenarios that differ anywhere, or come
in another order, are refused with the first rows that differ; equal ones never are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from memograd.config.load import Begun, begun_with, stored_settings
from memograd.config.settings import RunSettings, Settings
from memograd.errors import BadInput
from memograd.grpo.run_folder import RunFolder, checkpoint_step, damaged_data, plain_json
from memograd.rollout.types import Scenario

S = TypeVar("S", bound=Settings)

R = TypeVar("R", bound=RunSettings)

T = TypeVar("T")

CHANGEABLE: Final = frozenset(
    {"steps", "save_steps", "rollout_log_steps", "eval_batch_size", "track", "shard"}
)
"""Settings that may differ when a run goes on; `docs/runs.md` lists them."""

SHOWN = 3
"""How many rows that differ are named."""


def resumed_config(run: RunFolder, config: R) -> R:
    """The settings the run began with and those given now that may change; written down again.

    `config` has absolute paths.

    Raises:
        BadInput: a setting that may not change is given another value, fewer steps than are done
            are asked for, or what they measured is not there any more.
    """
    began = stored_config(run, type(config))
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
    step = 0 if checkpoint is None else checkpoint_step(checkpoint)
    if step > resumed.steps:
        raise BadInput(
            f"{checkpoint} is at step {step} already, beyond steps={resumed.steps}; ask for more"
        )
    run.check_metrics(step)
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


def stored_config(run: RunFolder, kind: type[S]) -> S:
    """The settings of that kind that a run began with.

    Raises:
        BadInput: this version of memograd does not know them, they are those of a warm start, or
            their file is damaged.
    """
    recipe = begun(run).recipe
    if recipe:
        raise BadInput(
            f"{run.path} was made by memograd {recipe} and cannot be resumed; begin a new run with "
            f"its adapter: adapter={run.path}"
        )
    return _read(run, lambda text: stored_settings(text, kind))


def begun(run: RunFolder) -> Begun:
    """Model, adapter and recipe of a run, whichever command made it.

    Raises:
        BadInput: its settings are damaged, or of a version that is not known.
    """
    return _read(run, begun_with)


def _read(run: RunFolder, read: Callable[[str], T]) -> T:
    try:
        return read(run.config_json)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInput(
            f"{run.path / 'config.json'} does not fit this version of memograd: "
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        ) from error
    except ValueError as error:  # no JSON, or not UTF-8
        raise BadInput(
            f"{run.path / 'config.json'} is damaged ({error}); put back the settings that the run "
            "began with."
        ) from error


def check_task(run: RunFolder, task: str, *, or_unsaid: bool = False) -> None:
    """Refuse to go on with a run of another task; `or_unsaid`: the first runs did not say theirs.

    Raises:
        BadInput: it is one, or was made by a warm start.
    """
    if begun(run).recipe:
        stored_config(run, Settings)  # says what to do instead
    if run.task != task and not (or_unsaid and not run.task):
        raise BadInput(
            f"{run.path} is a run of {run.task or 'another task'}, not of {task}; go on with it by "
            "the command that began it."
        )


def check_data(run: RunFolder, scenarios: Sequence[Scenario]) -> None:
    """Write the fingerprint of `scenarios` into a new run, or compare it with a resumed one's.

    Raises:
        BadInput: they are not the scenarios that the run began with, or what it wrote is damaged.
    """
    now = [(scenario.id, fingerprint(scenario)) for scenario in scenarios]
    stored = run.read_data()
    if stored is None:
        digest = hashlib.sha256("".join(row for _, row in now).encode()).hexdigest()
        run.write_data({"sha256": digest, "scenarios": now})
        return
    try:
        began = [(str(name), str(row)) for name, row in stored["scenarios"]]
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_data(run.path) from error
    if began != now:
        raise BadInput(
            f"The data changed since {run.path} began ({'; '.join(_differences(began, now))}): "
            "resume with the data as it was, or begin a new run with out=FOLDER."
        )


def fingerprint(scenario: Scenario) -> str:
    """SHA-256 (hexadecimal) of one scenario's id, prompt and columns."""
    content = plain_json([scenario.id, scenario.prompt, dict(scenario.columns)])
    return hashlib.sha256(content.encode()).hexdigest()


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
