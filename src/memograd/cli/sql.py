"""What goes with `memograd train sql`: the sample database, and gold attempts to learn from.

Each command is a few lines over a function of `memograd.tasks.sql.recipe`. The recipes, and torch
with them, arrive when a command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memograd.cli.help import epilog
from memograd.cli.training import room, told
from memograd.tasks.sql.settings import SqlTrainConfig

app = typer.Typer(
    no_args_is_help=True, help="The SQL agent's sample database, and gold attempts to learn from."
)


@app.command(
    "warm-start-rows",
    epilog=epilog(
        "Examples:\n"
        "  memograd sql warm-start-rows --out rows.jsonl\n"
        "  memograd sft --data rows.jsonl --out runs/sft\n"
        "  memograd train sql adapter=runs/sft"
    ),
)
def warm_start_rows(
    out: Annotated[Path, typer.Option(metavar="FILE", help="New file of chat rows.")],
    database: Annotated[
        Path | None,
        typer.Option("--db", metavar="FILE", help="SQLite file to ask; else the medical sample."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Questions with gold SQL; else the sample's own."),
    ] = None,
    share: Annotated[float, typer.Option(help="Share of the training questions.")] = 0.5,
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings of the run that will follow."),
    ] = None,
) -> None:
    """Write gold attempts at training questions, for memograd sft."""
    options = {"sql.database": database, "data": data}
    resolved = told(SqlTrainConfig, options, settings)
    room("tasks.sql.recipe", "train,sql").warm_start_rows(resolved, out, share)


@app.command(epilog=epilog("Examples:\n  memograd sql sample --out medical"))
def sample(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the two files.")],
) -> None:
    """Write the sample database and its questions, to look at or to change."""
    database, questions = room("tasks.sql.recipe", "train,sql").write_sample_files(out)
    typer.echo(f"database   {database}\nquestions  {questions}")
