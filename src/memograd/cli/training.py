"""The commands that train: `train`, `evaluate` and `demo`, each over a verb of `memograd.recipes`.

Tested in `tests/test_cli.py`. The recipes, and torch with them, arrive when a command runs.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from memograd.cli.help import epilog
from memograd.config import known_settings, load_config
from memograd.errors import BadInput

app = typer.Typer()
train_app = typer.Typer(no_args_is_help=True)
app.add_typer(
    train_app,
    name="train",
    help="Train a policy on a task.",
    epilog=epilog(
        "Examples:\n  memograd train memory-qa --help\n  memograd train memory-qa steps=20"
    ),
)


def _setting_lines() -> str:
    lines = ["Settings (key=value, with their defaults):"]
    for key, field in known_settings().items():
        default = ",".join(field.default) if isinstance(field.default, list) else field.default
        lines += [f"  {key}={'none' if default is None else default}", f"      {field.description}"]
    return "\n".join(lines)


@train_app.command(
    "memory-qa",
    epilog=epilog(
        "Examples:\n"
        "  memograd train memory-qa --data locomo.json --train conv-26 --eval conv-30\n"
        "  memograd train memory-qa --config run.toml steps=100 lora.r=32\n"
        "  memograd train memory-qa resume=runs/my-run steps=200",
        _setting_lines(),
    ),
)
def train_memory_qa(
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings that win over the file and options."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Conversations in LoCoMo's format; else generated ones."),
    ] = None,
    train: Annotated[
        str | None, typer.Option(metavar="IDS", help="Conversations to train on: conv-26,conv-30.")
    ] = None,
    evaluate: Annotated[
        str | None, typer.Option("--eval", metavar="IDS", help="Conversations to evaluate on.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings in a TOML file.")
    ] = None,
) -> None:
    """Train a model to answer from what is remembered."""
    options = {"data": data, "train": train, "eval": evaluate}
    overrides = [f"{key}={value}" for key, value in options.items() if value is not None]
    resolved = load_config(config, [*overrides, *(settings or [])])
    memory_qa = _recipe()

    run = memory_qa.train(resolved)
    typer.echo(f"The run is in {run}")


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd evaluate --run runs/my-run\n"
        "  memograd evaluate --run runs/my-run --data locomo.json --conversation conv-30\n"
        "  memograd evaluate --run runs/my-run --baselines"
    )
)
def evaluate(
    run: Annotated[Path, typer.Option(metavar="RUN", help="Folder of a training run.")],
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Conversations in LoCoMo's format; else the run's own."),
    ] = None,
    conversation: Annotated[
        str, typer.Option(metavar="IDS", help="Conversations to ask about; else the run's own.")
    ] = "",
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Also measure other prompts: no memory, last turns.")
    ] = False,
) -> None:
    """Measure a run on the questions of whole conversations."""
    memory_qa = _recipe()

    conversations = [name.strip() for name in conversation.split(",") if name.strip()]
    memory_qa.evaluate(run, data, conversations, baselines)


@app.command(epilog=epilog("Examples:\n  memograd demo\n  memograd demo --steps 3 --out demo-run"))
def demo(
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Conversations in LoCoMo's format; else generated ones."),
    ] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", min=1, help="Training steps.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="New folder of the run.")] = None,
) -> None:
    """Train for a few steps, show before and after."""
    memory_qa = _recipe()

    memory_qa.demo(data, steps, out)


def _recipe() -> ModuleType:
    """The recipes, which need the training libraries."""
    try:
        return importlib.import_module("memograd.recipes.memory_qa")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("memograd"):
            raise
        raise BadInput(
            f"This command needs the package {error.name}; run pip install 'memograd[train]'."
        ) from error
