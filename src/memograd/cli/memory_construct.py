"""`memograd train memory-construct` and `memory-ops-text`, and the rows that warm them up.

Each command is a few lines over `memograd.tasks.memory_construct.recipe` or `memory_ops_text`. The
recipes, and torch with them, arrive when a command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memograd.cli.data import app as data_app
from memograd.cli.help import epilog, setting_lines
from memograd.cli.training import recipe, train_app
from memograd.config import load_config

Given = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Settings that win over the file and options."),
]
Data = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Logs, conversations or Mem-alpha parquet; else generated."),
]
Evaluate = Annotated[
    Path | None, typer.Option("--eval", metavar="FILE", help="What to measure on.")
]
Model = Annotated[
    str | None, typer.Option(metavar="MODEL", help="A causal language model: hub id or folder.")
]
Out = Annotated[Path, typer.Option(metavar="FILE", help="New file of chat rows.")]
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="Settings in a TOML file.")]


@train_app.command(
    "memory-construct",
    epilog=epilog(
        "Examples:\n"
        "  memograd data construct-rows --out rows.jsonl\n"
        "  memograd sft --data rows.jsonl --out runs/sft\n"
        "  memograd train memory-construct adapter=runs/sft steps=20\n"
        "  memograd train memory-construct build.chunks=6 build.first_chunks=2\n"
        "  memograd train memory-construct build.credit=trajectory\n"
        "  memograd train memory-construct resume=runs/my-run",
        setting_lines(),
    ),
)
def train_memory_construct(
    settings: Given = None,
    data: Data = None,
    evaluate: Evaluate = None,
    model: Model = None,
    config: Config = None,
) -> None:
    """Train a model to build a memory from chunks of conversation."""
    _train("memory_construct", settings, data, evaluate, model, config)


@train_app.command(
    "memory-ops-text",
    epilog=epilog(
        "Examples:\n"
        "  memograd data memory-ops-rows --out rows.jsonl\n"
        "  memograd sft --data rows.jsonl --out runs/sft-ops\n"
        "  memograd train memory-ops-text adapter=runs/sft-ops steps=20\n"
        "  memograd train memory-ops-text resume=runs/my-run",
        setting_lines(),
    ),
)
def train_memory_ops_text(
    settings: Given = None,
    data: Data = None,
    evaluate: Evaluate = None,
    model: Model = None,
    config: Config = None,
) -> None:
    """Train a model to say ADD, UPDATE n, DELETE n or NONE to one statement."""
    _train("memory_ops_text", settings, data, evaluate, model, config)


@data_app.command(
    "construct-rows",
    epilog=epilog(
        "Examples:\n"
        "  memograd data construct-rows --out rows.jsonl\n"
        "  memograd data construct-rows --out rows.jsonl build.logs=60 build.chunks=6\n"
        "  memograd sft --data rows.jsonl --out runs/sft"
    ),
)
def construct_rows(
    out: Out, settings: Given = None, data: Data = None, config: Config = None
) -> None:
    """Write gold answers to the chunks that memory-construct trains on, for memograd sft."""
    _rows("memory_construct", out, settings, data, config)


@data_app.command(
    "memory-ops-rows",
    epilog=epilog(
        "Examples:\n"
        "  memograd data memory-ops-rows --out rows.jsonl\n"
        "  memograd sft --data rows.jsonl --out runs/sft-ops"
    ),
)
def memory_ops_rows(
    out: Out, settings: Given = None, data: Data = None, config: Config = None
) -> None:
    """Write the gold operation of every statement that memory-ops-text trains on, for memograd
    sft."""
    _rows("memory_ops_text", out, settings, data, config)


def _train(
    name: str,
    settings: list[str] | None,
    data: Path | None,
    evaluate: Path | None,
    model: str | None,
    config: Path | None,
) -> None:
    options = {"data": data, "text.eval_data": evaluate, "model": model}
    overrides = [f"{key}={value}" for key, value in options.items() if value is not None]
    run = recipe(f"tasks.{name}.recipe").train(load_config(config, [*overrides, *(settings or [])]))
    typer.echo(f"The run is in {run}")


def _rows(
    name: str, out: Path, settings: list[str] | None, data: Path | None, config: Path | None
) -> None:
    overrides = [] if data is None else [f"data={data}"]
    count = recipe(f"tasks.{name}.recipe").warm_start_rows(
        load_config(config, [*overrides, *(settings or [])]), out
    )
    typer.echo(f"{out}: {count} rows.")
