"""TensorBoard: event files in the run folder's `tensorboard/`, by the writer that torch brings.

Invariant: after a resume its reader shows every step once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class TensorboardTracker:
    """Writes `RUN/tensorboard`; `tensorboard --logdir RUN` shows it."""

    def __init__(self, run: Path, identity: str) -> None:
        self._folder = run / "tensorboard"
        self._settings = ""
        self._writer: SummaryWriter | None = None

    def start(self, name: str, config: Mapping[str, Any]) -> None:
        """Make the folder; the file is begun with the first step."""
        import_module("torch.utils.tensorboard")
        self._folder.mkdir(exist_ok=True)
        # TensorBoard reads texts as Markdown; indented by four it is shown as it stands.
        self._settings = "    " + json.dumps(config, indent=2).replace("\n", "\n    ")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """One point for every metric, on disk at once."""
        if self._writer is None:
            self._writer = self._begun_at(step)
        for key, value in metrics.items():
            self._writer.add_scalar(key, value, step)
        self._writer.flush()

    def finish(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()

    def _begun_at(self, step: int) -> SummaryWriter:
        from torch.utils.tensorboard import SummaryWriter

        # `purge_step` takes back what was measured from that step on before the run was resumed.
        writer = SummaryWriter(str(self._folder), purge_step=step)
        writer.add_text("settings", self._settings, step)
        return writer
