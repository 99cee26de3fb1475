"""Weights & Biases: to its service where you have logged in, else offline in the run folder.

The files lie in the run folder's `wandb/`, or where `WANDB_DIR` says. What `WANDB_MODE`,
`WANDB_PROJECT` and wandb's own settings say counts. Invariant: without an API key nothing is sent,
and nothing is ever asked. Imports wandb, when started.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from memograd.errors import BadInput

FINISH_SECONDS = 120.0
"""How long the end of a run waits for uploads; what is left can be sent by `wandb sync`."""


class WandbTracker:
    """One wandb run, the same before and after a resume."""

    def __init__(self, run: Path, identity: str) -> None:
        self._folder = Path(os.environ.get("WANDB_DIR") or run)  # wandb puts a "wandb" in it
        self._identity = identity
        self._run: Any = None

    def start(self, name: str, config: Mapping[str, Any]) -> None:
        """Begin the run, or go on with it.

        Raises:
            BadInput: `WANDB_MODE` asks for the service, and there is no API key.
        """
        # wandb reports its own failures to its makers, even offline, unless told not to.
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        wandb = import_module("wandb")
        self._folder.mkdir(parents=True, exist_ok=True)  # else it would choose another by itself
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "memograd"),
            name=name,
            id=self._identity,
            resume="allow",
            reinit="create_new",
            dir=self._folder,
            mode=_mode(wandb),
            config=dict(config),
            settings=wandb.Settings(
                finish_timeout=FINISH_SECONDS,
                console="off",
                disable_code=True,
                disable_git=True,
                x_disable_machine_info=True,
                x_disable_meta=True,
                x_disable_stats=True,
                x_save_requirements=False,
            ),
        )

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """The metrics of a step; steps that the service has already keep their numbers."""
        self._run.log(dict(metrics), step=step)

    def finish(self) -> None:
        """Send or write down what is left."""
        self._run.finish()


def _mode(wandb: ModuleType) -> str:
    mode = str(wandb.setup().settings.mode)  # of WANDB_MODE, `wandb offline` or "online"
    if mode not in ("online", "shared") or wandb.login(prompt=False, verify=False):
        return mode
    if os.environ.get("WANDB_MODE"):
        raise BadInput(
            f"WANDB_MODE={mode} needs an API key, and there is none; run wandb login, or unset "
            "WANDB_MODE to track offline."
        )
    return "offline"
