"""`memograd train memory-ops`: train the policy that decides what a memory keeps.

A few lines over `memograd.tasks.memory_ops.recipe`. The recipe, and torch with it, arrives when the
command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memograd.cli.help import epilog, setting_lines
from memograd.cli.training import recipe
from memograd.config.load import load_settings
from memograd.tasks.memory_ops.settings import OperationsConfig

app = typer.Typer()


@app.command(
    "memory-ops",
    epilog=epilog(
        "Examples:\n"
        "  memograd train memory-ops\n"
        "  memograd train memory-ops languages=en,zh embedder=e5 logs=64 steps=60\n"
        "  memograd train memory-ops --data my-logs.jsonl --eval others.jsonl\n"
        "  memograd train memory-ops algorithm=ppo steps=80\n"
        "  memograd train memory-ops resume=runs/my-run",
        "The trained policy is the folder final of the run:\n"
        '  Memory.open("memories/", policy="runs/my-run/final", embedder="minilm")',
        setting_lines(OperationsConfig),
    ),
)
def train_memory_ops(
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings that win over the file and options."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="FILES", help="Logs or conversations to train on; else generated."),
    ] = None,
    evaluate: Annotated[
        str | None, typer.Option("--eval", metavar="FILES", help="What to measure on.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="New folder of the run.")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings in a TOML file.")
    ] = None,
) -> None:
    """Train what a memory adds, updates, deletes and ignores, by later questions."""
    options = {"data": data, "eval_data": evaluate, "out": out}
    overrides = [f"{key}={value}" for key, value in options.items() if value is not None]
    resolved = load_settings(OperationsConfig, config, [*overrides, *(settings or [])])
    run = recipe("tasks.memory_ops.recipe").train(resolved)
    typer.echo(f"The run is in {run}")
