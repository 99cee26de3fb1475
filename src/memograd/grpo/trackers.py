"""The services that a run can also send its metrics to: from the names in `track` to trackers.

    tensorboard   event files in the run folder's `tensorboard/`, by the writer that torch brings;
                  after a resume its reader shows every step once
    trackio       a database in the run folder's `trackio/`, or what its own variables choose:
                  `TRACKIO_DIR` another folder, which several runs may share, `TRACKIO_SPACE_ID` or
                  `TRACKIO_SERVER_URL` a place to send to. With neither of the latter nothing is
                  sent, not even to ask for the user's name
    wandb         to its service where you have logged in, else offline in the run folder's
                  `wandb/`; `WANDB_DIR`, `WANDB_MODE`, `WANDB_PROJECT` and its own settings count
    swanlab       likewise in `swanlab/`; `SWANLAB_LOG_DIR`, `SWANLAB_MODE` (online, offline, local,
                  disabled) and its other variables count

`check_trackers` finds what is missing before a run folder is made; `open_trackers` is what the
`Trainer` is given. A service that cannot start is an error before the first step, when nothing is
lost yet. One that fails later does not end hours of work, because `metrics.jsonl` has every number
anyway: `Expendable` warns once, naming the step from which the service misses the rest, and does
not call it again until the run is resumed.

Invariants: a service gets the run's settings and the numbers of `metrics.jsonl`, no more; without
an API key nothing is sent, and nothing is ever asked; Ctrl-C stays the trainer's. A name without
its package is `BadInput` in both functions; after `start`, no method of a tracker raises. Each
service is imported when it starts, so importing this loads none.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from memograd.errors import BadInput, MemogradError
from memograd.grpo.run_folder import RunFolder
from memograd.grpo.tracking import Tracker

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

logger = logging.getLogger(__name__)

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
            mode=_wandb_mode(wandb),
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


def _wandb_mode(wandb: ModuleType) -> str:
    mode = str(wandb.setup().settings.mode)  # of WANDB_MODE, `wandb offline` or "online"
    if mode not in ("online", "shared") or wandb.login(prompt=False, verify=False):
        return mode
    if os.environ.get("WANDB_MODE"):
        raise BadInput(
            f"WANDB_MODE={mode} needs an API key, and there is none; run wandb login, or unset "
            "WANDB_MODE to track offline."
        )
    return "offline"


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
        mode = _swanlab_mode(settings.mode if "mode" in given else None, settings.api_key)
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


def _swanlab_mode(given: str | None, api_key: str | None) -> str:
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
