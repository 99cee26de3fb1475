"""From the names in the setting `track` to trackers that are ready to start.

`check_trackers` finds what is missing before a run folder is made; `open_trackers` is what a recipe
hands to the `Trainer`. A service that cannot start is an error before the first step, when nothing
is lost yet. One that fails later does not end hours of work, because `metrics.jsonl` has every
number anyway: `Expendable` warns once, naming the step from which the service misses the rest, and
does not call it again until the run is resumed.

Invariants: a name without its package is `BadInput` in both functions; after `start`, no method of
a tracker raises.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from memograd.errors import BadInput, MemogradError
from memograd.grpo.run_folder import RunFolder
from memograd.grpo.trackers.services import (
    SwanlabTracker,
    TensorboardTracker,
    TrackioTracker,
    WandbTracker,
)
from memograd.grpo.tracking import Tracker

logger = logging.getLogger(__name__)

TRACKERS: Mapping[str, Callable[[Path, str], Tracker]] = {
    "tensorboard": TensorboardTracker,
    "wandb": WandbTracker,
    "swanlab": SwanlabTracker,
    "trackio": TrackioTracker,
}
"""By the name of its package; each takes the run folder and the run's identity."""


def check_trackers(names: Sequence[str]) -> None:
    """Refuse names whose package is not installed.

    Raises:
        BadInput: the sentence names the package and how to install it.
    """
    for name in names:
        try:
            version(name)
        except PackageNotFoundError:
            raise BadInput(
                f"track={name} needs the package {name}; run pip install 'memograd[trackers]'."
            ) from None


def open_trackers(names: Sequence[str], run: RunFolder) -> list[Tracker]:
    """The trackers of these names for `run`, each once; they are started by the trainer.

    Raises:
        BadInput: the package of one is not installed.
    """
    check_trackers(names)
    identity = _identity(run)
    return [Expendable(name, TRACKERS[name](run.path, identity)) for name in dict.fromkeys(names)]


def _identity(run: RunFolder) -> str:
    """Sixteen characters that stay the same when the run is resumed, renamed or moved."""
    made = run.path / "run.json"
    known = made if made.is_file() else run.path / "config.json"  # run.json is of later versions
    return hashlib.sha256(known.read_bytes()).hexdigest()[:16]


class Expendable:
    """Passes a run's metrics on to the tracker of a service for as long as that works."""

    def __init__(self, service: str, tracker: Tracker) -> None:
        self._service = service
        self._tracker = tracker
        self._works = True

    def start(self, name: str, config: Mapping[str, Any]) -> None:
        """Start it.

        Raises:
            BadInput: the service is set up in a way that cannot work.
            MemogradError: it cannot start for another reason.
        """
        try:
            self._tracker.start(name, config)
        except MemogradError:
            raise
        except Exception as error:
            raise MemogradError(
                f"track={self._service} could not start ({_reason(error)}); mend it, or leave "
                f"{self._service} out of track."
            ) from error

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Pass on all numbers but `step` itself, which is every service's own horizontal axis."""
        if not self._works:
            return
        numbers = {key: value for key, value in metrics.items() if key != "step"}
        try:
            self._tracker.log(step, numbers)
        except Exception as error:
            self._works = False
            logger.warning(
                "track=%s failed (%s) and misses everything from step %d on; training goes on, and "
                "metrics.jsonl has every step.",
                *(self._service, _reason(error), step),
            )

    def finish(self) -> None:
        """Let it write down what it still holds."""
        try:
            self._tracker.finish()
        except Exception as error:
            logger.warning(
                "track=%s failed at the end (%s) and may miss the last steps; metrics.jsonl has "
                "every step.",
                *(self._service, _reason(error)),
            )


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
