"""`memograd data export`: rows as other trainers take them, over `memograd.interop`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from memograd.cli.data import app
from memograd.cli.help import epilog


class OtherTrainer(StrEnum):
    """Whose rows can be written."""

    verl = "verl"
    verifiers = "verifiers"


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd data export verl --data rows.jsonl --rewards locomo_f1 --out rows.parquet\n"
        "  memograd data export verifiers --data rows.jsonl --rewards locomo_f1 --out my_tasks",
        "TRL takes our rewards and environments as they are: docs/interop.md.",
    )
)
def export(
    trainer: Annotated[OtherTrainer, typer.Argument(metavar="TRAINER", help="verl or verifiers.")],
    data: Annotated[Path, typer.Option(metavar="FILE", help="Rows, as for train text.")],
    rewards: Annotated[str, typer.Option(metavar="SPEC", help="Rewards, as for train text.")],
    out: Annotated[
        Path,
        typer.Option(metavar="PATH", help="New .parquet or .jsonl file (verl), or folder."),
    ],
) -> None:
    """Write rows, with their rewards, for another trainer."""
    from memograd.interop.taskset import write_taskset
    from memograd.interop.verl import verl_rows, write_verl
    from memograd.rewards import with_absolute_files
    from memograd.tasks.text.rows import read_rows

    rows = read_rows(data)
    if trainer is OtherTrainer.verl:
        write_verl(verl_rows(rows, with_absolute_files(rewards)), out)
    else:
        write_taskset(rows, rewards, out)
    typer.echo(f"{len(rows)} rows in {out}")
