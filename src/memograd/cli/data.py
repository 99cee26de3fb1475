"""`memograd data`: data sets to train on and to measure on.

`get` and `list` are over `memograd.data.download` and `catalogue`, `generate` over
`memograd.data.lifelog`, `export` over `memograd.interop`; `construct-rows` and `memory-ops-rows`
write gold answers that a warm start learns from. `memograd sql` is over `memograd.tasks.sql`. The
recipes, and torch with them, arrive when a command runs.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memograd.cli import show
from memograd.cli.given import AsJson
from memograd.cli.help import epilog
from memograd.cli.training import GivenSettings, SettingsFile, room, told
from memograd.errors import BadInput
from memograd.tasks.registry import TASKS
from memograd.tasks.sql.settings import SqlTrainConfig

if TYPE_CHECKING:
    from memograd.data.lifelog import Lifelog

app = typer.Typer(
    no_args_is_help=True,
    help="Fetch and make data sets.",
    epilog=epilog(
        "Examples:\n"
        "  memograd data list\n"
        "  memograd data get locomo\n"
        "  memograd data generate --n 100 --out logs.jsonl",
        "None of the data is part of memograd: each set keeps its makers' licence.",
    ),
)

Folder = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder that holds the data sets.")
]


@app.command("list", epilog=epilog("Examples:\n  memograd data list"))
def list_(folder: Folder = Path("data"), json: AsJson = False) -> None:
    """List the public data sets that can be fetched, their licences and loaders."""
    from memograd.data.catalogue import CATALOGUE

    rows = []
    for name, one in CATALOGUE.items():
        there = sum((folder / name / file.name).is_file() for file in one.files)
        rows.append(
            {
                "name": name,
                "about": one.about,
                "licence": one.licence,
                "home": one.home,
                "loader": f"memograd.data.{one.loader}",
                "files": [file.name for file in one.files],
                "fetched": there == len(one.files),
            }
        )
    if json:
        show.as_json(rows)
        return
    headings = ["name", "fetched", "what, licence and loader"]
    cells = [
        [
            row["name"],
            "yes" if row["fetched"] else "no",
            f"{row['about']}\n{row['licence']}\n{row['loader']}",
        ]
        for row in rows
    ]
    show.table(headings, cells, whole=2)


@app.command(
    "get",
    epilog=epilog(
        "Examples:\n"
        "  memograd data get locomo\n"
        "  memograd data get longmemeval-oracle --out /big/disk\n"
        "  HF_ENDPOINT=https://hub.example memograd data get mem-alpha",
        "The files come to DIR/NAME. A download that was interrupted goes on where it stopped.\n"
        "MEMOGRAD_DATA_MIRROR names a server that holds NAME/<file> in place of the makers' own.",
    ),
)
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set of `data list`.")],
    folder: Folder = Path("data"),
) -> None:
    """Fetch a public data set, checked, and resumed where it was interrupted."""
    from memograd.data.catalogue import data_set
    from memograd.data.download import get_data

    wanted = data_set(name)
    typer.echo(f"{name}: {wanted.about}\nLicence: {wanted.licence}. {wanted.home}")
    with show.Transfer() as transfer:
        paths = get_data(name, folder, progress=transfer)
    for path in paths:
        typer.echo(str(path))
    typer.echo(f"Load with memograd.data.{wanted.loader}(path).")


@app.command(
    "generate",
    epilog=epilog(
        "Examples:\n"
        "  memograd data generate --n 100 --out logs.jsonl\n"
        "  memograd data generate --n 20 --seed 7 --language zh --split test --out test.jsonl\n"
        "  memograd data generate --n 5 --out hard.jsonl sessions=24 hearsay=0.1 small_talk=0.4",
        "Settings (KEY=VALUE, with their defaults):\n"
        "  sessions=12, statements_per_session=12, people=6, questions=0.34\n"
        "  shares of all statements: small_talk=0.26 changes=0.24 hearsay=0.05 repeats=0.08\n"
        "  forgets=0.03; the rest is new\n"
        "docs/lifelog.md says what is in a log.",
    ),
)
def generate(
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The JSONL file to write, a log a line.")
    ],
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="How long and how hard.")
    ] = None,
    n: Annotated[int, typer.Option("--n", help="How many logs.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="The same seed makes the same logs.")] = 0,
    language: Annotated[str, typer.Option("--language", help="en or zh.")] = "en",
    split: Annotated[
        str, typer.Option("--split", help="train, or test with other words.")
    ] = "train",
) -> None:
    """Generate life logs: what was told, what to do with it, and the questions that come later."""
    from memograd.data.lifelog import LifelogSettings, generate_lifelogs, write_lifelogs

    pairs = [f"language={language}", f"split={split}", *(settings or [])]
    logs = generate_lifelogs(n, seed, LifelogSettings().with_pairs(pairs))
    if out.is_file() and out.stat().st_size and not _holds(out, logs):
        raise BadInput(f"{out} is there already; choose another name, or remove it.")
    write_lifelogs(logs, out)
    statements = sum(len(log.statements) for log in logs)
    probes = sum(len(log.probes) for log in logs)
    typer.echo(f"{out}: {n} life logs, {statements} statements, {probes} questions.")


def _holds(path: Path, logs: list[Lifelog]) -> bool:
    """Whether the file holds these very logs, so that nothing is lost by writing them again."""
    from memograd.data.lifelog import read_lifelogs

    try:
        return read_lifelogs(path) == logs
    except BadInput:
        return False


Data = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Logs, conversations or Mem-alpha parquet; else generated."),
]
Rows = Annotated[Path, typer.Option(metavar="FILE", help="New file of chat rows.")]


@app.command(
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


@app.command(
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
    task = TASKS[name]
    resolved = told(task.settings, {"data": data}, settings, config)
    count = room(task.recipe.removeprefix("memograd.")).warm_start_rows(resolved, out)
    typer.echo(f"{out}: {count} rows.")


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


sql_app = typer.Typer(
    no_args_is_help=True, help="The SQL agent's sample database, and gold attempts to learn from."
)


@sql_app.command(
    "warm-start-rows",
    epilog=epilog(
        "Examples:\n"
        "  memograd sql warm-start-rows --out rows.jsonl\n"
        "  memograd sft --data rows.jsonl --out runs/sft\n"
        "  memograd train sql adapter=runs/sft"
    ),
)
def warm_start_rows(
    out: Rows,
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


@sql_app.command(epilog=epilog("Examples:\n  memograd sql sample --out medical"))
def sample(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the two files.")],
) -> None:
    """Write the sample database and its questions, to look at or to change."""
    database, questions = room("tasks.sql.recipe", "train,sql").write_sample_files(out)
    typer.echo(f"database   {database}\nquestions  {questions}")
