"""The loop of a training that is not GRPO on a language model: step, write down, save, stop.

Invariant: after a signal the step is finished and a checkpoint written, so the run goes on to the
numbers of the run that never stopped.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import memograd
from memograd.config import RunSettings
from memograd.errors import BadInput, Stopped
from memograd.grpo.run_folder import RunFolder
from memograd.grpo.run_state import stop_request
from memograd.grpo.tracking import flat_metrics, tracked
from memograd.grpo.trainer import Stage


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


def train_by_steps(
    stage: Stage,
    config: RunSettings,
    *,
    done: Callable[[], int],
    one_step: Callable[[], dict[str, Any]],
    save: Callable[[str], Path],
) -> Path:
    """Run up to `config.steps`; returns the folder of the final checkpoint.

    done: how many steps are done. one_step: does one more and returns its line of metrics. save:
    writes a checkpoint of that name.

    Raises:
        Stopped: a signal came; a checkpoint was written.
    """
    run = stage.run
    settings = config.model_dump(mode="json")
    with stop_request() as stop, tracked(stage.trackers, run.path.name, settings):
        while done() < config.steps:
            metrics = one_step()
            run.append_metrics(metrics)
            stage.on_step(metrics)
            for tracker in stage.trackers:
                tracker.log(done(), flat_metrics(metrics))
            if done() == config.steps:
                break
            if stop.signal or done() % config.save_steps == 0:
                save(f"checkpoint-{done()}")
            if stop.signal:
                raise Stopped(
                    f"stopped by a signal after step {done()} of {config.steps}; go on with "
                    f"resume={run.path}",
                    stop.signal,
                )
        return save("final")
