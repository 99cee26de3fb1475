"""What a training that is not GRPO on a language model stands on: step, write down, save, stop.

Invariant: after a signal the step is finished and a checkpoint written, so the run goes on to the
numbers of the run that never stopped.
"""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import memograd
from memograd.config import RunSettings
from memograd.errors import BadInput, Stopped
from memograd.grpo.distributed import World
from memograd.grpo.run_folder import RunFolder
from memograd.grpo.run_state import stop_request
from memograd.grpo.tracking import flat_metrics, tracked
from memograd.grpo.trainer import Stage


def one_process(task: str) -> Callable[[World], None]:
    """`Job.share` of a task that several processes cannot share."""

    def refuse_several(world: World) -> None:
        if world.size > 1:
            raise BadInput(f"{task} trains in one process: start it without torchrun.")

    return refuse_several


def environment(*libraries: str) -> dict[str, Any]:
    """What a run on a CPU began with, for `environment.json`: our version and the libraries'."""
    return {
        "memograd": memograd.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in libraries},
        "device": "cpu",
    }


CHANGED: Final = (
    "The data changed since {run} began: resume with the data as it was, or begin a new run with"
    " out=FOLDER."
)


def check_began_with(
    run: RunFolder,
    sha256: str,
    others: Mapping[str, str | None] | None = None,
    differs: Mapping[str, str] | None = None,
) -> None:
    """Write down what a new run is trained on and by what, or compare it with a resumed one's.

    sha256: of the data. others: more that it began with. differs: what is said of each where a
    resumed run would go on with something else.
    """
    now = {"sha256": sha256, **(others or {})}
    stored = run.read_data()
    if stored is None:
        run.write_data(now)
        return
    for name, sentence in {"sha256": CHANGED, **(differs or {})}.items():
        began = stored.get(name, now[name])  # the first runs did not say all of it
        if began != now[name]:
            raise BadInput(sentence.format(run=run.path, began=began, now=now[name]))


@dataclass
class TrainingBySteps(ABC):
    """A training that says what one step does and what a checkpoint holds."""

    stage: Stage
    config: RunSettings

    @property
    @abstractmethod
    def step(self) -> int:
        """Steps that are done."""

    @abstractmethod
    def one_step(self) -> dict[str, Any]:
        """Do one more; returns its line of metrics."""

    @abstractmethod
    def write(self, folder: Path) -> None:
        """Write what a checkpoint holds into its new folder."""

    def train(self) -> Path:
        """Run up to `config.steps`; returns the folder of the final checkpoint.

        Raises:
            Stopped: a signal came; a checkpoint was written.
        """
        run, config = self.stage.run, self.config
        settings = config.model_dump(mode="json")
        with stop_request() as stop, tracked(self.stage.trackers, run.path.name, settings):
            while self.step < config.steps:
                metrics = self.one_step()
                run.append_metrics(metrics)
                self.stage.on_step(metrics)
                for tracker in self.stage.trackers:
                    tracker.log(self.step, flat_metrics(metrics))
                if self.step == config.steps:
                    break
                if stop.signal or self.step % config.save_steps == 0:
                    self._save(f"checkpoint-{self.step}")
                if stop.signal:
                    raise self._stopped(stop.signal)
            final = self._save("final")
        if stop.signal:  # what follows is no part of training, and its user wants to be gone
            raise self._stopped(stop.signal)
        return final

    def _stopped(self, signal_number: int) -> Stopped:
        return Stopped(
            f"stopped by a signal after step {self.step} of {self.config.steps}; go on with "
            f"resume={self.stage.run.path}",
            signal_number,
        )

    def _save(self, name: str) -> Path:
        return self.stage.run.save_checkpoint(name, self.write, step=self.step)
