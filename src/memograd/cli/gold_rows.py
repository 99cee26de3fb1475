"""`memograd data construct-rows` and `memory-ops-rows`: gold answers that a warm start learns from.

The recipes, and torch with them, arrive when a command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memograd.cli.data import app as data_app
from memograd.cli.help import epilog
from memograd.cli.training import GivenSettings, SettingsFile, room
from memograd.config import load_settings
from memograd.tasks.registry import TASKS, tasks_that_read

Data = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Logs, conversations or Mem-alpha parquet; else generated."),
]
Rows = Annotated[Path, typer.Option(metavar="FILE", help="New file of chat rows.")]


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
    out: Rows, settings: GivenSettings = None, data: Data = None, config: SettingsFile = None
) -> None:
    """Write gold answers to the chunks that memory-construct trains on, for memograd sft."""
    _write("memory-construct", out, settings, data, config)


@data_app.command(
    "memory-ops-rows",
    epilog=epilog(
        "Examples:\n"
        "  memograd data memory-ops-rows --out rows.jsonl\n"
        "  memograd sft --data rows.jsonl --out runs/sft-ops"
    ),
)
def memory_ops_rows(
    out: Rows, settings: GivenSettings = None, data: Data = None, config: SettingsFile = None
) -> None:
    """Write the gold operation of every statement that memory-ops-text trains on, for memograd
    sft."""
    _write("memory-ops-text", out, settings, data, config)


def _write(
    name: str, out: Path, settings: list[str] | None, data: Path | None, config: Path | None
) -> None:
    overrides = [] if data is None else [f"data={data}"]
    overrides += settings or []
    task = TASKS[name]
    resolved = load_settings(task.settings, config, overrides, read_elsewhere=tasks_that_read)
    count = room(task.recipe.removeprefix("memograd.")).warm_start_rows(resolved, out)
    typer.echo(f"{out}: {count} rows.")
