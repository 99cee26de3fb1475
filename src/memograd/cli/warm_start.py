"""The commands around training: `sft` and `dpo` before it, `merge` after it.

Each is a few lines over a function of `memograd.warm_start`. They, and torch with them, arrive when
a command runs.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from memograd.cli.help import epilog, setting_paragraphs
from memograd.cli.training import GivenSettings, Out, SettingsFile, room, told
from memograd.warm_start.settings import DpoSettings, SftSettings

app = typer.Typer()


class NumberType(StrEnum):
    """Number types that merged weights can be written in."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


Begun = Annotated[
    Path | None,
    typer.Option("--from", metavar="RUN", help="Run whose adapter this begins with."),
]


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd sft --data chats.jsonl\n"
        "  memograd sft --task memory-qa --data locomo.json --train conv-26 steps=60\n"
        "  memograd sft --data more.jsonl --from runs/my-run learning_rate=1e-4",
        *setting_paragraphs(SftSettings),
    )
)
def sft(
    settings: GivenSettings = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rows with messages, or with prompt and completion."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="memory-qa: learn the gold answers about conversations."),
    ] = None,
    train: Annotated[
        str | None, typer.Option(metavar="IDS", help="memory-qa: conversations to train on.")
    ] = None,
    evaluate: Annotated[
        str | None,
        typer.Option("--eval", metavar="IDS", help="memory-qa: conversations to keep apart."),
    ] = None,
    begun: Begun = None,
    out: Out = None,
    config: SettingsFile = None,
) -> None:
    """Train a model on given answers (needs memograd[trl])."""
    options = {
        "data": data,
        "task": task,
        "train": train,
        "eval": evaluate,
        "adapter": begun,
        "out": out,
    }
    resolved = told(SftSettings, options, settings, config)
    run = room("warm_start.sft", "trl").sft(resolved)
    typer.echo(f"The run is in {run}")


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd dpo --data pairs.jsonl\n"
        "  memograd dpo --data pairs.jsonl --from runs/my-sft beta=0.2",
        *setting_paragraphs(DpoSettings),
    )
)
def dpo(
    settings: GivenSettings = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rows with prompt, chosen and rejected."),
    ] = None,
    begun: Begun = None,
    out: Out = None,
    config: SettingsFile = None,
) -> None:
    """Train a model on which of two answers is better (needs memograd[trl])."""
    options = {"data": data, "adapter": begun, "out": out}
    resolved = told(DpoSettings, options, settings, config)
    run = room("warm_start.dpo", "trl").dpo(resolved)
    typer.echo(f"The run is in {run}")


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd merge --run runs/my-run --out my-model\n"
        "  memograd merge --run runs/my-run --out my-model --dtype bfloat16"
    )
)
def merge(
    run: Annotated[Path, typer.Option(metavar="RUN", help="Folder of a training run.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="New folder of the whole model.")],
    dtype: Annotated[
        NumberType, typer.Option(help="Number type of the weights.")
    ] = NumberType.float32,
) -> None:
    """Write model and trained adapter as one model, which loads without peft."""
    folder = room("warm_start.merge").merge(run, out, dtype.value)
    typer.echo(f"The model is in {folder}")
