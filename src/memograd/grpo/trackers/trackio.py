"""trackio: a database in the run folder's `trackio/`, or what its own variables choose.

`TRACKIO_DIR` names another folder, which several runs may share; `TRACKIO_SPACE_ID` or
`TRACKIO_SERVER_URL` a place to send to. Invariant: with neither of the latter nothing is sent, not
even to ask for the user's name. Imports trackio and huggingface_hub, when started.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from memograd.errors import BadInput

PROJECT = "memograd"


class TrackioTracker:
    """One trackio run, the same before and after a resume."""

    def __init__(self, run: Path, identity: str) -> None:
        self._folder = run.resolve() / "trackio"
        self._identity = identity
        self._run: Any = None
        self._known_step = 0

    def start(self, name: str, config: Mapping[str, Any]) -> None:
        """Begin the run, or go on with it.

        Raises:
            BadInput: in this process trackio writes into another run's folder already.
        """
        self._import()
        trackio = import_module("trackio")
        storage = import_module("trackio.sqlite_storage").SQLiteStorage
        # Runs that share a folder are told apart by name alone.
        name = f"{name}-{self._identity[:6]}"
        sends = os.environ.get("TRACKIO_SPACE_ID") or os.environ.get("TRACKIO_SERVER_URL")
        if not sends:
            self._known_step = storage.get_max_step_for_run(PROJECT, name) or 0
        with nullcontext() if sends else _without_hub():
            self._run = trackio.init(
                PROJECT,
                name=name,
                resume="allow",
                config=dict(config),
                embed=False,
                auto_log_cpu=False,
                auto_log_gpu=False,
            )

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """The metrics of a step; steps that the database has already keep their numbers."""
        if step > self._known_step:
            self._run.log(dict(metrics), step=step)

    def finish(self) -> None:
        """Write down what is left."""
        self._run.finish()

    def _import(self) -> None:
        """Import trackio, which decides while it is imported, once and for all, on its folder."""
        chosen = os.environ.get("TRACKIO_DIR")
        os.environ["TRACKIO_DIR"] = chosen or str(self._folder)
        try:
            folder = import_module("trackio.utils").TRACKIO_DIR
        finally:
            if chosen is None:
                del os.environ["TRACKIO_DIR"]
        if not chosen and folder != self._folder:
            raise BadInput(
                f"trackio writes to {folder} in this process already, not to {self._folder}; set "
                "TRACKIO_DIR to one folder for all runs, or train each in a process of its own."
            )


@contextmanager
def _without_hub() -> Iterator[None]:
    """While trackio starts: it would ask the Hugging Face Hub whose token it finds."""
    constants: Any = import_module("huggingface_hub.constants")
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
