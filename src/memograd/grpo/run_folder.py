"""The folder of one training run: what it was told, what it measured, and where it can go on.

    config.json              the resolved settings
    run.json                 what kind of run it is, when and by which version it was made
    state.json               whether it runs, has finished or was stopped, see `run_state`
    data.json                what it was trained on, to compare when it is resumed
    metrics.jsonl            one JSON line a step
    rollouts/step-0010.txt   readable samples; step-0010.jsonl with token ids, see `rollout_files`
    checkpoint-20/, final/   see `checkpoint_folder`; best/ is a copy of the best one
    failures/                the groups that stopped the run, written like rollouts

One process writes to a run folder at a time; any number may read. Ranks other than 0 have a
`FollowerFolder`, so that the trainer writes without asking which rank it is: whatever is called on
it, no byte in the folder changes. Columns of scenarios are free (numbers, texts, dates, arrays,
objects of the user's); `plain_json` writes them as strict JSON that never depends on an object's
address or on the order of a set or a mapping, so that it can be hashed.

Invariants: killed at any instant, the folder still opens, its latest checkpoint is complete, and
after `truncate_metrics(its step)` the metrics are those of the run up to there, none twice. Line N
of metrics is that of step N; `eval_best` is chosen by them, so a run whose lines do not reach its
checkpoint is refused (`check_metrics`) and never goes on with a gap.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from errno import EACCES, ENOTDIR
from pathlib import Path
from typing import Any, Final

import numpy as np
from filelock import FileLock, Timeout

import memograd
from memograd.errors import BadInput, MemogradError
from memograd.grpo import checkpoint_folder
from memograd.grpo.checkpoint_folder import checkpoint_step, replace_text
from memograd.grpo.run_state import LOCK_FILE, STATE_FILE, recorded

TOLD: Final = {"config.json", "run.json", "environment.json", STATE_FILE, LOCK_FILE}
"""What stands in the folder of a run before anything is measured or trained."""


def plain_json(value: object) -> str:
    """One line of strict JSON; an object of an unknown type is told by its type's name alone."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, sort_keys=True)


def plain(value: object) -> Any:
    """`value` made of dicts, lists, texts, finite numbers, booleans and None only.

    A dataclass leaves out the fields that it declares with `metadata={"plain": False}`.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case np.ndarray() | np.generic():
            return plain(value.tolist())
        case Mapping():
            return {str(key): plain(entry) for key, entry in value.items()}
        case list() | tuple():
            return [plain(entry) for entry in value]
        case set() | frozenset():
            return sorted((plain(entry) for entry in value), key=plain_json)
        case Path() | datetime.date() | datetime.time():
            return str(value)
        case bytes():
            return value.hex()
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {
                field.name: plain(getattr(value, field.name))
                for field in dataclasses.fields(value)
                if field.metadata.get("plain", True)
            }
        case _:
            kind = type(value)
            return f"<{kind.__module__}.{kind.__qualname__}>"


__all__ = ["RunFolder", "checkpoint_step"]


def unnamed(kind: str) -> Path:
    """The folder of a run that was given none: runs/<kind>-<timestamp>."""
    return Path("runs") / f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}"


def damaged_data(folder: Path) -> BadInput:
    """What is wrong where the file of `RunFolder.write_data` does not say what was written."""
    return BadInput(
        f"{folder / 'data.json'} is damaged; remove it to go on without comparing the data."
    )


def _cannot_be_written(path: Path, error: OSError) -> MemogradError:
    return MemogradError(
        f"{path} could not be written ({error.strerror}); make room and go on with resume=."
    )


def _cannot_be_made(path: Path, error: OSError) -> BadInput:
    return BadInput(
        f"The run folder {path} cannot be made ({error.strerror}); choose another with out=FOLDER."
    )


class RunFolder:
    """One run's folder on disk; made with `create` or `open`, never directly."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, config_json: str, *, task: str = "") -> RunFolder:
        """A new run folder that holds `config_json` and the name of what is trained, if any.

        Raises:
            BadInput: something is at `path` already, or no folder can be made or written there.
        """
        cls.check_free(path)
        made = {"task": task, "memograd": memograd.__version__, "made": time.time()}
        try:
            path.mkdir(parents=True, exist_ok=True)
            replace_text(path / "run.json", json.dumps(made))
            replace_text(path / "config.json", config_json)  # last: with it the folder is a run
        except OSError as error:
            (path / "run.json").unlink(missing_ok=True)
            with suppress(OSError):
                path.rmdir()
            raise _cannot_be_made(path, error) from error
        return cls(path)

    @classmethod
    def check_free(cls, path: Path) -> None:
        """Refuse a path that is taken or cannot be written to, before hours of work want to be.

        Raises:
            BadInput: something other than an empty folder is at `path`, or no folder can be made
                there.
        """
        if "\0" in str(path):
            raise BadInput("The name of a run folder cannot hold a NUL; choose another with out=.")
        try:
            taken = path.exists() and any(path.iterdir())
        except OSError as error:
            raise _cannot_be_made(path, error) from error
        if taken:
            raise BadInput(
                f"The run folder {path} is not empty; go on with the run in it by resume={path}, "
                "or choose another folder with out=FOLDER."
            )
        above = next(one for one in (path, *path.absolute().parents) if one.exists())
        if not above.is_dir():
            raise _cannot_be_made(path, NotADirectoryError(ENOTDIR, f"{above} is a file"))
        if not os.access(above, os.W_OK | os.X_OK):
            raise _cannot_be_made(path, PermissionError(EACCES, f"{above} may not be written to"))

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The run folder at `path`, to read or to go on with; nothing in it is changed.

        Raises:
            BadInput: there is no run at `path`.
        """
        if not path.is_dir():
            raise BadInput(f"There is no run folder {path}.")
        if not (path / "config.json").is_file():
            raise BadInput(f"{path} is not a run folder: it has no config.json.")
        return cls(path)

    @property
    def config_json(self) -> str:
        """The settings that the run was created with."""
        return (self.path / "config.json").read_text(encoding="utf-8")

    @property
    def task(self) -> str:
        """What is trained ("memory-qa", for example); empty where nobody said it.

        Raises:
            BadInput: the file that says it is damaged.
        """
        path = self.path / "run.json"
        try:
            task = json.loads(path.read_bytes())["task"]
            if not isinstance(task, str):
                raise TypeError(f"{task!r} is no name")
        except FileNotFoundError:  # made before runs wrote it down
            return ""
        except (ValueError, TypeError, KeyError) as error:
            raise BadInput(
                f'{path} is damaged; write {{"task": NAME}} into it, with the name of what is '
                "trained (such as text or memory-qa), to go on."
            ) from error
        return task

    @property
    def metrics_path(self) -> Path:
        """Where `append_metrics` writes; the file is there from the first line on."""
        return self.path / "metrics.jsonl"

    def append_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Write one line of metrics, of which `step` is one.

        Raises:
            MemogradError: a value is NaN or infinite, or there is no whole-numbered `step`, or
                nothing beside it.
        """
        step = metrics.get("step")
        if not isinstance(step, int):
            raise MemogradError(f"A line of metrics needs a whole-numbered step, but has {step!r}.")
        if len(metrics) == 1:
            raise MemogradError(
                f"The line of metrics of step {step} says nothing but its step: let the training "
                "write what it measured, such as its loss."
            )
        try:
            line = json.dumps(dict(metrics), allow_nan=False, ensure_ascii=False)
        except ValueError as error:
            bad = ", ".join(
                f"{name} = {value}" for name, value in metrics.items() if not _is_finite(value)
            )
            raise MemogradError(
                f"Step {step} measured what is not a finite number: {bad}."
            ) from error
        try:
            with self.metrics_path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            raise _cannot_be_written(self.metrics_path, error) from error

    def read_metrics(self) -> list[dict[str, Any]]:
        """All complete lines of metrics, oldest first; a last line that a kill cut off is left out.

        Raises:
            BadInput: the file cannot be read, or a line before the last one is damaged.
        """
        complete, _, _torn = self._metrics().rpartition(b"\n")
        rows: list[dict[str, Any]] = []
        for number, line in enumerate(complete.splitlines(), start=1):
            row = _metrics_row(line)
            if row is None:
                raise BadInput(
                    f"{self.metrics_path} is damaged in line {number}; put the file back as it was."
                )
            rows.append(row)
        return rows

    def check_metrics(self, step: int) -> None:
        """Refuse to go on after `step` where its line or one before it is lost or damaged.

        Raises:
            BadInput: one is, or the file cannot be read.
        """
        self._metrics_lines(step)

    def truncate_metrics(self, step: int) -> str | None:
        """Forget what was measured after `step`: call it before resuming.

        Returns:
            What is to be said of a line behind it that was damaged or half written.

        Raises:
            BadInput: as `check_metrics`.
            MemogradError: the file could not be written.
        """
        lines = self._metrics_lines(step)
        if not self.metrics_path.exists():
            return None
        kept, dropped = lines[:step], lines[step:]
        try:
            replace_text(self.metrics_path, "".join(line.decode() + "\n" for line in kept))
        except OSError as error:
            raise _cannot_be_written(self.metrics_path, error) from error
        for number, line in enumerate(dropped, start=step + 1):
            if _metrics_row(line) is None:
                return (
                    f"line {number} of {self.metrics_path} is damaged or half written: it is"
                    f" dropped, and what was done after step {step} is done again"
                )
        return None

    def _metrics(self) -> bytes:
        try:
            return self.metrics_path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise BadInput(f"{self.metrics_path} cannot be read ({error.strerror}).") from error

    def _metrics_lines(self, step: int) -> list[bytes]:
        """The lines as they stand, of which the first ones are those of the steps up to `step`."""
        lines = self._metrics().removesuffix(b"\n").split(b"\n")
        lines = [] if lines == [b""] else lines
        for number in range(1, step + 1):
            row = _metrics_row(lines[number - 1]) if number <= len(lines) else None
            if row is None or row["step"] != number:
                raise BadInput(
                    f"{self.metrics_path} does not say in line {number} what step {number} "
                    f"measured, and the run would go on after step {step}: put the file back as it "
                    "was, or begin a new run with out=FOLDER."
                )
        return lines

    def write_rollouts(
        self, step: int, text: str, records: Sequence[str] = (), *, folder: str = "rollouts"
    ) -> Path:
        """Write a step's rollouts, replacing those of the same step.

        Args:
            text: the readable form, which goes into step-N.txt.
            records: one JSON object a group, which go into step-N.jsonl.
            folder: "rollouts", or "failures" for those that stopped the run.

        Returns:
            The readable file.
        """
        readable = self.path / folder / f"step-{step:04d}.txt"
        lines = "".join(record + "\n" for record in records)
        for path, content in ((readable.with_suffix(".jsonl"), lines), (readable, text)):
            try:
                path.parent.mkdir(exist_ok=True)
                path.write_text(content, encoding="utf-8")
            except OSError as error:
                raise _cannot_be_written(path, error) from error
        return readable

    def write_data(self, fingerprint: Mapping[str, Any]) -> None:
        """Write down what the run is trained on."""
        path = self.path / "data.json"
        try:
            replace_text(path, json.dumps(fingerprint, ensure_ascii=False))
        except OSError as error:
            raise _cannot_be_written(path, error) from error

    def read_data(self) -> dict[str, Any] | None:
        """What `write_data` wrote; none before training began.

        Raises:
            BadInput: the file is damaged.
        """
        try:
            stored = json.loads((self.path / "data.json").read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise damaged_data(self.path) from error
        if not isinstance(stored, dict):
            raise damaged_data(self.path)
        return stored

    def save_checkpoint(
        self, name: str, writer: Callable[[Path], None], *, step: int | None = None
    ) -> Path:
        """Let `writer` fill a folder, and publish it as `name` when all of it is safe on disk.

        Args:
            name: "checkpoint-N" or "final"; one of the same name is replaced.
            writer: writes its files into the folder that it is given; subfolders are fine.
            step: the training step that it holds. Unless given: N, or for "final" the step of the
                last line of metrics.

        Raises:
            MemogradError: it could not be written; every earlier checkpoint is as it was.
        """
        if step is None:
            step = checkpoint_folder.step_of_name(name)
        if step is None:
            rows = self.read_metrics()
            step = int(rows[-1]["step"]) if rows else 0
        if self.metrics_path.exists():
            # No checkpoint outlives the numbers before it.
            checkpoint_folder.sync(self.metrics_path)
        target = self.path / name
        checkpoint_folder.publish(target, step, writer)
        return target

    def remove_untouched(self) -> None:
        """Remove the folder of a new run, whose lock is held, where nothing stands in it but what
        it was told."""
        if {entry.name for entry in self.path.iterdir()} <= TOLD:
            shutil.rmtree(self.path)

    def replace_config(self, config_json: str) -> None:
        """Write down the settings that a resumed run goes on with."""
        replace_text(self.path / "config.json", config_json)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep every other process from training in this folder, and mend what a killed one left.

        How the work within it ends is written into `state.json`.

        Raises:
            BadInput: another process holds it, or the folder cannot be written into.
        """
        lock = FileLock(self.path / LOCK_FILE, thread_local=False)
        try:
            # Not at once: `run_state.is_locked` holds it for a moment when somebody looks.
            lock.acquire(timeout=0.5)
        except Timeout:
            raise BadInput(
                f"Another process trains in {self.path}; wait for it, or stop it first."
            ) from None
        except OSError as error:
            raise BadInput(
                f"The run folder {self.path} cannot be written into ({error.strerror}); go on with "
                "a copy of it that can."
            ) from error
        try:
            checkpoint_folder.remove_leftovers(self.path)
            with recorded(self.path):
                yield
        finally:
            lock.release()

    def latest_checkpoint(self) -> Path | None:
        """The complete checkpoint of the highest step, or none; damaged ones are passed over."""
        return checkpoint_folder.latest_complete(self.path)

    def trained_checkpoint(self) -> Path:
        """The same; BadInput where there is none yet."""
        checkpoint = self.latest_checkpoint()
        if checkpoint is None:
            raise BadInput(
                f"{self.path} has no complete checkpoint yet; train it first (resume={self.path})."
            )
        return checkpoint


def _metrics_row(line: bytes) -> dict[str, Any] | None:
    """A line of metrics, which says more than its step; None if it is none."""
    try:
        row = json.loads(line.decode())  # as UTF-8 and nothing that JSON may be besides
    except (ValueError, RecursionError):  # brackets without end
        return None
    said = isinstance(row, dict) and isinstance(row.get("step"), int) and len(row) > 1
    return row if said else None


def _is_finite(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


class FollowerFolder(RunFolder):
    """Says where things are written, but leaves writing them to rank 0's `RunFolder`."""

    def append_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Nothing."""

    def truncate_metrics(self, step: int) -> str | None:
        """Nothing; rank 0 says what it dropped."""
        return None

    def write_rollouts(
        self, step: int, text: str, records: Sequence[str] = (), *, folder: str = "rollouts"
    ) -> Path:
        """The readable file that rank 0 writes."""
        return self.path / folder / f"step-{step:04d}.txt"

    def write_data(self, fingerprint: Mapping[str, Any]) -> None:
        """Nothing."""

    def save_checkpoint(
        self, name: str, writer: Callable[[Path], None], *, step: int | None = None
    ) -> Path:
        """The checkpoint that rank 0 writes."""
        return self.path / name

    def remove_untouched(self) -> None:
        """Nothing: it is the folder of rank 0."""

    def replace_config(self, config_json: str) -> None:
        """Nothing."""

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Rank 0 holds the lock for all."""
        yield
