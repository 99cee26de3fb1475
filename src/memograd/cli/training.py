"""The commands that train: `train TASK`, `evaluate` and the demos.

Each task of the registry (`memograd.tasks.registry`) is a command; its options and settings stand
in its definition. Recipes, and torch with them, arrive when a command runs.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, TypeVar

import typer

from memograd.cli.help import epilog, examples, setting_paragraphs
from memograd.config import RunSettings, Settings, load_settings
from memograd.errors import BadInput
from memograd.tasks.memory_ops.settings import OperationsEvaluation
from memograd.tasks.registry import TASKS, Task, tasks_that_read

app = typer.Typer()
train_app = typer.Typer(no_args_is_help=True)
app.add_typer(
    train_app,
    name="train",
    help="Train a policy on a task.",
    epilog=epilog(
        "Examples:\n"
        "  memograd train memory-qa --help\n"
        "  memograd train memory-qa steps=20\n"
        "  memograd train text --data prompts.jsonl --rewards my_rewards.py:exact\n"
        "  memograd train agent --environment my_env.py:GuessNumber --data rows.jsonl"
    ),
)

GivenSettings = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Settings that win over the file and options."),
]
SettingsFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Settings in a TOML file.")]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="New folder of the run.")]
S = TypeVar("S", bound=Settings)


def told(
    kind: type[S],
    options: Mapping[str, object],
    settings: Sequence[str] | None,
    config: Path | None = None,
) -> S:
    """A command's settings: those of its file, over them its options, over these what is typed."""
    given = [f"{key}={value}" for key, value in options.items() if value is not None]
    of_tasks = {"read_elsewhere": tasks_that_read} if issubclass(kind, RunSettings) else {}
    return load_settings(kind, config, [*given, *(settings or [])], **of_tasks)


def add_task(name: str) -> None:
    """Make `memograd train NAME` of a task; one that does not load says so when it is called."""
    try:
        task = TASKS[name]
    except BadInput as error:
        train_app.command(name, help=f"(does not load: {error})")(_refusing(str(error)))
        return
    train_app.command(
        name,
        help=task.summary,
        epilog=epilog(examples(task.examples), *task.notes, *setting_paragraphs(task.settings)),
    )(_command(task))


def _command(task: Task) -> Callable[..., None]:
    """A function with one parameter an option, as typer reads them."""
    keys = {_parameter(option.name): option.key for option in task.options}
    presets = {_parameter(flag): settings for flag, (_, settings) in task.presets.items()}

    def command(**given: Any) -> None:
        chosen = [one for flag, some in presets.items() if given[flag] for one in some]
        options: dict[str, Any] = dict(one.split("=", 1) for one in chosen)
        options |= {key: given[name] for name, key in keys.items() if given[name] is not None}
        options |= {"out": given["out"]}
        say_where(task.train(told(task.settings, options, given["settings"], given["config"])))

    parameters = [_keyword("settings", GivenSettings)]
    parameters += [
        _keyword(
            _parameter(option.name),
            Annotated[
                str | None, typer.Option(option.name, metavar=option.metavar, help=option.help)
            ],
        )
        for option in task.options
    ]
    parameters += [
        _keyword(_parameter(flag), Annotated[bool, typer.Option(flag, help=meaning)], False)
        for flag, (meaning, _) in task.presets.items()
    ]
    parameters += [_keyword("out", Out), _keyword("config", SettingsFile)]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _keyword(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


def _parameter(option: str) -> str:
    """`--ci-fast` as a name in Python; behind an underscore, apart from the names of all tasks."""
    return "_" + option.removeprefix("--").replace("-", "_")


def _refusing(sentence: str) -> Callable[[], None]:
    def refuse() -> None:
        raise BadInput(sentence)

    return refuse


for _name in TASKS:
    add_task(_name)


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd evaluate --run runs/my-run\n"
        "  memograd evaluate --run runs/my-sql-run --data more-questions.jsonl\n"
        "  memograd evaluate --run runs/my-run --data locomo.json --conversation conv-30\n"
        "  memograd evaluate --run runs/my-run --baselines\n"
        "  memograd evaluate --policy heads/ours --data locomo.json,logs.jsonl ks=10\n"
        "  memograd evaluate --run runs/ops --with supervised=runs/sup/final budgets=0.5",
        "For policies over memory operations (train memory-ops) only:",
        *setting_paragraphs(OperationsEvaluation),
    )
)
def evaluate(
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings for memory-ops; see below."),
    ] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Folder of a training run.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of a head alone, without its run.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Conversations, rows or questions, as in training; else its own. Several, by"
            " commas, for memory-ops.",
        ),
    ] = None,
    conversation: Annotated[
        str, typer.Option(metavar="IDS", help="Conversations to ask about; else the run's own.")
    ] = "",
    baselines: Annotated[
        bool,
        typer.Option(
            "--baselines",
            help="Also measure other prompts: no memory, last turns (memory-ops: always).",
        ),
    ] = False,
    others: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="NAME=DIR", help="Another trained head for the table."),
    ] = None,
) -> None:
    """Measure a run before and after training, on what it was not trained on."""
    if (run is None) == (policy is None):
        raise BadInput("Say what is measured: --run RUN, or --policy DIR for a head alone.")
    conversations = [name.strip() for name in conversation.split(",") if name.strip()]
    files = [name.strip() for name in (data or "").split(",") if name.strip()]
    if run is not None and not settings and not others and len(files) < 2:
        asked = room("tasks.base.recipe").Evaluation(
            Path(files[0]) if files else None, conversations, baselines
        )
        room("tasks.evaluate").evaluate(run, asked)
        return
    typed = [f"data={','.join(files)}"] if files else []
    typed += [f"heads={','.join(others)}"] if others else []
    options = load_settings(OperationsEvaluation, None, [*typed, *(settings or [])])
    measuring = room("tasks.memory_ops.evaluate")
    measure = measuring.evaluate_head if run is None else measuring.evaluate_run
    measure(run or policy, options, conversations=conversations)


@app.command(epilog=epilog("Examples:\n  memograd demo\n  memograd demo --steps 10 --out demo-run"))
def demo(
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Life logs or conversations; else generated ones."),
    ] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", min=1, help="Training steps.")] = None,
    out: Out = None,
) -> None:
    """Train what a memory keeps for two minutes, show before and after."""
    room("tasks.memory_ops.demo").demo(data, steps, out)


@app.command(
    "demo-lm",
    epilog=epilog("Examples:\n  memograd demo-lm\n  memograd demo-lm --steps 3 --out demo-run"),
)
def demo_lm(
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Conversations (docs/data.md); else generated ones."),
    ] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", min=1, help="Training steps.")] = None,
    out: Out = None,
) -> None:
    """Train a language model to answer from a memory, show before and after."""
    room("tasks.memory_qa.recipe").demo(data, steps, out)


def say_where(run: Path) -> None:
    """Say where the run is, once: of several processes (torchrun), the first one speaks."""
    if os.environ.get("RANK", "0") == "0":
        typer.echo(f"The run is in {run}")


def room(name: str, extra: str = "train") -> ModuleType:
    """A part of memograd that needs the packages of an extra.

    Raises:
        BadInput: one of them is missing.
    """
    try:
        return importlib.import_module(f"memograd.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("memograd"):
            raise
        raise BadInput(
            f"This command needs the package {error.name}; run pip install 'memograd[{extra}]'."
        ) from error
