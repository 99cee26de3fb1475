"""From the names in the setting `track` to trackers that are ready to start.

`check_trackers` finds what is missing before a run folder is made; `open_trackers` is what a recipe
hands to the `Trainer`. Invariant: a name without its package is `BadInput` in both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from memograd.errors import BadInput
from memograd.grpo.run_folder import RunFolder
from memograd.grpo.trackers.expendable import Expendable
from memograd.grpo.trackers.swanlab import SwanlabTracker
from memograd.grpo.trackers.tensorboard import TensorboardTracker
from memograd.grpo.trackers.trackio import TrackioTracker
from memograd.grpo.trackers.wandb import WandbTracker
from memograd.grpo.tracking import Tracker

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
