"""Whether a run is running, finished or stopped, and what it takes to stop it and go on.

`state.json` holds what the run's process last wrote about itself; whether that process still lives
is told by the lock that it holds, which the system takes back when it dies. The first SIGTERM or
SIGINT (Ctrl-C) is only noted: the trainer finishes its step, writes a checkpoint and ends; from
then on the signals do again what they did before, so that a second one ends the process at once.
What a step may draw from, the sampler's own generator and those of torch, Python and numpy, goes
into checkpoints.

Invariants: a run whose process was killed is never called running; after
`restore_random_states(capture_random_states())` all generators give the numbers that they would
have given.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import numpy as np
import torch

from memograd.errors import BadInput, MemogradError
from memograd.grpo import checkpoint_folder

LOCK_FILE = ".lock"

STATE_FILE = "state.json"


@dataclass(frozen=True)
class RunState:
    """What became of a run; `reason` is a sentence, empty where there is nothing to explain."""

    name: Literal["running", "finished", "stopped"]
    reason: str = ""


@contextmanager
def recorded(run: Path) -> Iterator[None]:
    """Writes down in `state.json` that work on the run began, and how it ended.

    `BadInput` leaves the earlier state: a refused attempt to go on is no part of the run's history.
    """
    before = checkpoint_folder.read_object(run / STATE_FILE)
    begun = {"pid": os.getpid(), "began": _now()}
    _write(run, {"state": "running", **begun})
    try:
        yield
    except BaseException as error:
        explained = isinstance(error, MemogradError)
        reason = str(error) if explained else f"{type(error).__name__}: {error}".rstrip(": ")
        with suppress(OSError):  # a full disk must not hide what went wrong before it
            refused = isinstance(error, BadInput) and before
            ended = {"state": "stopped", **begun, "ended": _now(), "reason": reason}
            _write(run, before if refused else ended)
        raise
    _write(run, {"state": "finished", **begun, "ended": _now()})


def run_state(run: Path) -> RunState:
    """The state of the run in that folder; nothing in it is changed."""
    if is_locked(run):
        return RunState("running")
    written = checkpoint_folder.read_object(run / STATE_FILE)
    match written.get("state"):
        case "finished":
            return RunState("finished")
        case "stopped":
            return RunState("stopped", str(written.get("reason", "")))
        case "running":
            return RunState("stopped", "its process died or was killed")
        case _:  # made before runs wrote their state
            finished = (run / checkpoint_folder.FINAL / checkpoint_folder.MANIFEST).is_file()
            return RunState("finished" if finished else "stopped")


def is_locked(run: Path) -> bool:
    """Whether a living process trains in that folder."""
    try:
        descriptor = os.open(run / LOCK_FILE, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two who look at once do not see each other.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def _write(run: Path, state: dict[str, Any]) -> None:
    checkpoint_folder.replace_text(run / STATE_FILE, json.dumps(state, ensure_ascii=False))


SIGNALS = (signal.SIGTERM, signal.SIGINT)

_NOTICE = b"\nmemograd: finishing this step, then saving; a second signal ends at once\n"


class StopRequest:
    """Whether a signal has asked to stop: its number in `signal`, or none."""

    def __init__(self) -> None:
        self.signal: int | None = None


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Notes the first SIGTERM or SIGINT within it; a signal that the process ignores stays ignored.

    Outside the main thread, where Python takes no signals, nothing is ever noted.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def give_back() -> None:
        for number, handler in before.items():
            # None: a handler that was not installed from Python and cannot be put back by it.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def note(number: int, _frame: FrameType | None) -> None:
        request.signal = number
        give_back()
        with suppress(OSError):  # nobody may be reading any more
            os.write(2, _NOTICE)

    for number in SIGNALS:
        if before[number] != signal.SIG_IGN:
            signal.signal(number, note)
    try:
        yield request
    finally:
        give_back()


def seed_everything(seed: int) -> None:
    """Begin all process-wide generators from `seed` (any whole number from 0)."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def capture_random_states(generator: torch.Generator) -> dict[str, Any]:
    """The states of `generator` and of the process-wide ones, in plain types and tensors."""
    numpy_state = np.random.get_state(legacy=False)
    states: dict[str, Any] = {
        "sampler": generator.get_state(),
        "torch": torch.get_rng_state(),
        "python": random.getstate(),
        "numpy": {
            "keys": numpy_state["state"]["key"].tolist(),
            "position": int(numpy_state["state"]["pos"]),
            "has_gauss": int(numpy_state["has_gauss"]),
            "gauss": float(numpy_state["gauss"]),
        },
    }
    if generator.device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(generator.device)
    return states


def restore_random_states(states: dict[str, Any], generator: torch.Generator) -> None:
    """Put back what `capture_random_states` returned, on the same kind of device."""
    generator.set_state(states["sampler"])
    torch.set_rng_state(states["torch"])
    random.setstate(states["python"])
    numpy_state = states["numpy"]
    keys = np.asarray(numpy_state["keys"], dtype=np.uint32)
    np.random.set_state(
        ("MT19937", keys, numpy_state["position"], numpy_state["has_gauss"], numpy_state["gauss"])
    )
    if generator.device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], generator.device)
