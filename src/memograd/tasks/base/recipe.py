"""What a task brings to a run: how its settings become a job, and how a run of it is measured.

The life of a run (`tasks.base.life`) is the same for all tasks and calls what stands here. A job of
GRPO on a language model is made by `policy_job`; a task that trains something else gives a
`Training` of its own.

What recipes share stands here too: settings with absolute paths, so that a run goes on from
anywhere (`located`), and rewards by name that fit the rows (`parse_rewards`, `check_columns`):
`memograd.rewards` must not know the reward model, so what makes one is handed to its parser here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

from rich.console import Console

from memograd.config import RunSettings, Settings, TrainConfig
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.checkpoint_folder import replace_text
from memograd.grpo.distributed import World
from memograd.grpo.drawing import Drawing
from memograd.grpo.trainer import Stage, Trainer, check_unmeasured
from memograd.policy.model_policy import ModelPolicy
from memograd.reward_model.reward import NAME, make_reward
from memograd.rewards import WeightedReward, needed_columns, with_absolute_files
from memograd.rewards.compose import environment
from memograd.rewards.spec import Makers
from memograd.rewards.spec import parse_rewards as parse
from memograd.rollout.types import Scenario
from memograd.tasks.base.policy import plan_memory, sampling_of, share_weights
from memograd.tasks.base.progress import describe_step

MEASURED_ON: Final = "measured_on.json"
MAKERS: Makers = {NAME: make_reward}
PROGRAM: Final = "exec:"
"""How an agent begins that is a program."""


def parse_rewards(spec: str) -> list[WeightedReward]:
    """Read a specification of rewards; see `memograd.rewards.spec`."""
    return parse(spec, MAKERS)


def check_columns(
    rewards: Sequence[WeightedReward],
    columns: Collection[str],
    rows: str,
    given: Sequence[str] = (),
) -> None:
    """Refuse a reward that cannot be called, for a column that it needs is not among the `columns`.

    rows: what has the columns, for the message. given: columns that are no part of the rows.
    """
    for reward in rewards:
        if reward.function is environment and not given:
            raise BadInput("Reward environment is that of an agent; use memograd train agent.")
        missing = [
            name for name in needed_columns(reward.function) if name not in (*columns, *given)
        ]
        if missing:
            raise BadInput(
                f"Reward {reward.name} needs {', '.join(missing)}, but {rows} have only "
                f"{', '.join(columns)}; add the column, or give the parameter a default."
            )


C = TypeVar("C", bound=RunSettings)
S = TypeVar("S", bound=Settings)
M = TypeVar("M")


def identity(config: C) -> C:
    """The settings as they are."""
    return config


class Training(Protocol):
    """What moves weights, and can go on from a checkpoint.

    It writes a line of metrics a step, with what `plot_curves` draws: `step`, `loss`, and mean and
    spread of `reward` and of `reward_normalised`.
    """

    @property
    def step(self) -> int:
        """Steps that are done."""
        ...

    def restore(self, checkpoint: Path) -> None:
        """Go on from `checkpoint`."""
        ...

    def train(self) -> Path:
        """Run all steps that the settings ask for; returns the folder of the last checkpoint."""
        ...


@dataclass(frozen=True)
class HeldOut(Generic[M]):
    """What is measured before and after training, and on what.

    data: what is measured on, as `plain_json` tells it; a run that goes on must measure on the
    same. measured: the type of what comes out, of plain values, so that what was measured before
    training can be written down. measure: gets a label for the screen. score: the number by which
    `eval_steps` keeps the best checkpoint. report: gets what was measured before and after, and the
    run folder.
    """

    data: Sequence[object]
    measured: type[M]
    measure: Callable[[str], M]
    score: Callable[[M], float]
    report: Callable[[M, M, Path], None]

    def scored(self, label: str) -> float:
        """The score of the policy as it is now."""
        return self.score(self.measure(label))


@dataclass(frozen=True)
class Job(Generic[M]):
    """What is trained on what, and how it is measured.

    training: made when the folder is there. environment: what the run began with, for
    `environment.json`. describe: says it before training begins. held_out: None where nothing is
    measured before training. settings: those for `config.json`, where the job chose some itself;
    None: as given. opened: gets the run folder and the processes that train, and holds what drawing
    and measuring need while they go on. at_start: the context in which the policy is as training
    began. share: cuts the weights among processes, or refuses them, and returns what is to be said,
    if anything; called before there is a run folder. finish: gets the run folder when all else is
    done.
    """

    training: Callable[[Stage], Training]
    environment: Callable[[], dict[str, Any]]
    describe: Callable[[RunFolder], None]
    held_out: HeldOut[M] | None = None
    settings: RunSettings | None = None
    opened: Callable[[Path, World], AbstractContextManager[object]] = lambda folder, world: (
        nullcontext()
    )
    at_start: Callable[[], AbstractContextManager[object]] = nullcontext
    share: Callable[[World], str | None] = lambda world: None
    finish: Callable[[Path], None] = lambda folder: None
    label_before: str = "before training"
    describe_step: Callable[[dict[str, Any]], str] = describe_step


@dataclass(frozen=True)
class Recipe(Generic[C, M]):
    """How a task is trained.

    make_job: from settings and the checkpoint to go on from. settled: the settings with absolute
    paths, refused where they cannot be used. evaluate: measures a run that is there; None: by its
    job, before and after (`tasks.evaluate`). or_unsaid: runs that do not say their task are of this
    one.
    """

    make_job: Callable[[C, Path | None], Job[M]]
    console: Console
    settled: Callable[[C], C] = identity
    evaluate: Callable[[Path, Evaluation], None] | None = None
    or_unsaid: bool = False


@dataclass(frozen=True)
class Evaluation:
    """What `memograd evaluate` was asked for.

    data: other data than the run's held-out ones. conversations: ids in them. baselines: other
    methods too.
    """

    data: Path | None = None
    conversations: Sequence[str] = field(default_factory=list)
    baselines: bool = False

    def open_results(self, run: Path) -> Path:
        """The folder for what is measured: `run` itself, or one in it for other data."""
        return open_results(run, [] if self.data is None else [self.data])

    def check_by_data(self, run: Path, task: str) -> None:
        """Raise BadInput for what only runs on conversations can be asked."""
        if self.conversations or self.baselines:
            raise BadInput(
                f"{run} is a run of {task}: --conversation and --baselines are for runs on"
                " conversations."
            )


def open_results(run: Path, data: Sequence[Path]) -> Path:
    """The folder in `run`, made if need be, for what is measured on the files `data`; `run` itself
    where there are none.

    It is called after them. `measured_on.json` in it names them, so that files of the same name
    from elsewhere get a folder of their own, with a number.
    """
    if not data:
        return run
    name = "evaluation-" + "-".join(path.stem for path in data)
    files = [str(path.resolve()) for path in data]
    for number in count(1):
        folder = run / (name if number == 1 else f"{name}-{number}")
        note = folder / MEASURED_ON
        if not folder.exists():
            folder.mkdir(parents=True)
            replace_text(note, json.dumps(files, ensure_ascii=False))
        if note.is_file() and json.loads(note.read_bytes()) == files:
            return folder
    raise AssertionError


@contextmanager
def _opened(
    policy: ModelPolicy,
    config: TrainConfig,
    opened: Callable[[Path], AbstractContextManager[object]],
    folder: Path,
    world: World,
) -> Iterator[None]:
    with sampling_of(policy, config.sampler, folder, world=world), opened(folder):
        yield


def policy_job(
    policy: ModelPolicy,
    rewards: Sequence[WeightedReward],
    scenarios: Callable[[World], Sequence[Scenario]],
    config: TrainConfig,
    held_out: HeldOut[M],
    *,
    describe: Callable[[RunFolder], None],
    drawing: Drawing | None = None,
    opened: Callable[[Path], AbstractContextManager[object]] = nullcontext,
    before_alone: bool = False,
) -> Job[M]:
    """A job of GRPO on a language model.

    scenarios: what is trained on, once the folder is there. held_out: without data, nothing is
    measured. Before training means with the adapter
    that training began with, if any (`adapter=`), so that what a warm start had learnt is not
    counted as learnt here; `before_alone`: without any, for a task whose report measures the warm
    start beside it.
    """

    if not held_out.data:
        check_unmeasured(config)

    def share(world: World) -> str:
        said = world.guarded(lambda: plan_memory(policy, config, world))
        share_weights(policy, config, world)
        return said

    def training(stage: Stage) -> Trainer:
        return Trainer(
            policy,
            scenarios(stage.world),
            rewards,
            config,
            stage,
            drawing=drawing,
            evaluate=held_out.scored if held_out.data else None,
        )

    return Job(
        training=training,
        environment=policy.environment,
        describe=describe,
        held_out=held_out if held_out.data else None,
        opened=lambda folder, world: _opened(policy, config, opened, folder, world),
        at_start=policy.untrained if before_alone else policy.at_start,
        share=share,
        label_before="untrained" if before_alone else "before training",
    )


def located(settings: S) -> S:
    """The given settings for any working directory: paths are absolute, those of sections and in
    texts too (`NAMES_FILES`); where the run itself lies stays as it was said."""
    update: dict[str, object] = {}
    for name in type(settings).model_fields.keys() - LEFT_ALONE:
        value = getattr(settings, name)
        if isinstance(value, Settings):
            found: object = located(value)
        elif name not in settings.model_fields_set or not value:
            continue
        elif isinstance(value, Path):
            found = value.resolve()
        elif isinstance(value, list) and isinstance(value[0], Path):
            found = [path.resolve() for path in value]
        elif isinstance(value, str) and name in NAMES_FILES:
            found = NAMES_FILES[name](value)
        else:
            continue
        if found != value:
            update[name] = found
    return settings.model_copy(update=update) if update else settings


def _folder(model: str) -> str:
    """A model's folder absolute; an alias or a hub id as it is."""
    return str(Path(model).resolve()) if Path(model).is_dir() else model


def _agent(agent: str) -> str:
    return agent if agent.startswith(PROGRAM) else with_absolute_files(agent)


LEFT_ALONE: Final = {"out", "resume", "adapter"}
NAMES_FILES: Final[Mapping[str, Callable[[str], str]]] = {
    "model": _folder,
    "reader": _folder,
    "rewards": with_absolute_files,
    "environment": with_absolute_files,
    "agent": _agent,
}
"""Settings that are texts and may name files of the user's."""
