"""SwanLab: to its service where you have logged in, else offline in the run folder.

The files lie in the run folder's `swanlab/`, or where `SWANLAB_LOG_DIR` says. What `SWANLAB_MODE`
(online, offline, local, disabled) and SwanLab's other variables say counts. Invariant: without an
API key nothing is sent, and nothing is ever asked; Ctrl-C stays the trainer's. Imports swanlab,
when started.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memograd.errors import BadInput


class SwanlabTracker:
    """One SwanLab run; offline, every resume adds a folder to it."""

    def __init__(self, run: Path, identity: str) -> None:
        self._folder = run / "swanlab"
        self._identity = identity
        self._run: Any = None

    def start(self, name: str, config: Mapping[str, Any]) -> None:
        """Begin the run, or go on with it.

        Raises:
            BadInput: `SWANLAB_MODE` asks for the service, and there is no API key, or for the
                local dashboard, and that is not installed.
        """
        swanlab = import_module("swanlab")
        settings = swanlab.Settings(
            interactive=False,
            terminal={"proxy_type": "none"},
            probe=dict.fromkeys(
                ("hardware", "runtime", "requirements", "git", "swanlab", "monitor"), False
            ),
        )
        given = settings.model_fields_set
        mode = _mode(settings.mode if "mode" in given else None, settings.api_key)
        online = mode == "online"
        with _signal_handler_kept():
            self._run = swanlab.init(
                project=settings.project.name or "memograd",
                name=name,
                id=self._identity,
                resume="allow" if online else None,
                log_dir=str(settings.log_dir if "log_dir" in given else self._folder),
                mode=mode,
                config=dict(config),
                settings=settings,
            )

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """The metrics of a step."""
        self._run.log(dict(metrics), step=step)

    def finish(self) -> None:
        """Send or write down what is left."""
        self._run.finish()


def _mode(given: str | None, api_key: str | None) -> str:
    mode = given or ("online" if api_key else "offline")
    if mode == "online" and not api_key:
        raise BadInput(
            "SWANLAB_MODE=online needs an API key, and there is none; run swanlab login, or unset "
            "SWANLAB_MODE to track offline."
        )
    if mode == "local" and find_spec("swanboard") is None:
        raise BadInput(
            "SWANLAB_MODE=local needs SwanLab's dashboard; run pip install 'swanlab[dashboard]', "
            "or unset SWANLAB_MODE to track offline."
        )
    return mode


@contextmanager
def _signal_handler_kept() -> Iterator[None]:
    """SwanLab takes over SIGINT, by which a user asks the trainer for a checkpoint."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not handler:
            signal.signal(signal.SIGINT, handler)
