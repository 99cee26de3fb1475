"""All commands in one program, and its exit code."""

from __future__ import annotations

import errno
import os
import sys
import time
from typing import Annotated, Any, Final, NoReturn

import typer

import memograd
from memograd.cli import (
    chat,
    data,
    gateway,
    learn,
    mcp,
    memory,
    memory_upkeep,
    optimize,
    plan,
    runs,
    serve,
    training,
    warm_start,
)
from memograd.cli.help import epilog
from memograd.errors import BadInput, MemogradError

FIRST_SPEAKS: Final = 15.0
"""Seconds that the other processes of torchrun leave the first one to refuse and end them all."""

app = typer.Typer(
    name="memograd",
    help="A memory for language-model agents: use it, talk with it, train it.",
    epilog=epilog(
        "Examples:\n"
        '  memograd memory add "I moved to Boston in May." --user alice\n'
        '  memograd memory search "Where does she live?" --user alice\n'
        "  memograd chat --user alice\n"
        "  memograd demo --steps 3\n"
        "  memograd train memory-qa --data locomo.json --train conv-26 --eval conv-30"
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # examples and key=value lists keep their line breaks
    pretty_exceptions_enable=False,
)
app.add_typer(memory.app, name="memory")
app.add_typer(data.app, name="data")
app.add_typer(chat.app)
app.add_typer(memory_upkeep.doctor_app)
app.add_typer(training.app)
app.add_typer(warm_start.app)
app.add_typer(runs.app)
app.add_typer(plan.app)
app.add_typer(optimize.app, name="optimize")
app.add_typer(learn.app)
app.add_typer(learn.policy_app, name="policy")
app.add_typer(learn.ranker_app, name="ranker")
app.add_typer(data.sql_app, name="sql")
app.add_typer(serve.app, name="serve")
app.add_typer(mcp.app, name="mcp")
app.add_typer(gateway.app)
app.add_typer(gateway.traces_app, name="traces")


@app.command(epilog=epilog("Examples:\n  memograd version"))
def version() -> None:
    """Show the version."""
    typer.echo(memograd.__version__)


def _show_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code; the arguments are the process's own if None."""
    try:
        ended = app(args=arguments, prog_name="memograd", standalone_mode=False)
    except _UsageError as error:
        _wait_for_the_first()
        _tell_usage(error)
        sys.exit(2)
    except typer.Abort:
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except MemogradError as error:
        if isinstance(error, BadInput):
            _wait_for_the_first()
        typer.echo(f"memograd: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno in _NOT_OURS and error.filename:
            _wait_for_the_first()
            typer.echo(
                f"memograd: {error.filename} cannot be used ({error.strerror}): choose another"
                " place, or see that it is yours to write to.",
                err=True,
            )
            sys.exit(2)
        if error.errno != errno.ENOSPC:
            raise
        where = f" ({error.filename})" if error.filename else ""  # a write does not know its file
        typer.echo(f"memograd: The disk is full{where}; make room.", err=True)
        sys.exit(1)
    sys.exit(ended if isinstance(ended, int) else 0)


_NOT_OURS: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG)
"""What a place refuses whatever we do there."""

# typer has carried click in itself since 0.26, so the class has no name that is always there.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def _wait_for_the_first() -> None:
    """Of several processes that torchrun started here and that refuse alike, let the first say why.

    When it ends, torchrun ends the others. One that refuses alone is not ended, and speaks.
    """
    if os.environ.get("WORLD_SIZE", "1") != "1" and os.environ.get("LOCAL_RANK", "0") != "0":
        time.sleep(FIRST_SPEAKS)


def _tell_usage(error: Any) -> None:
    """One sentence of what is wrong with the command line; where nothing was given, the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return
    command = error.ctx.command_path if error.ctx is not None else "memograd"
    what = " ".join(error.format_message().split()).rstrip(".")
    typer.echo(f"memograd: {what}; {command} --help says what there is.", err=True)
