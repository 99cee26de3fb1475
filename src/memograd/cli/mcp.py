"""`memograd mcp`: the memory for coding agents and other clients of the Model Context Protocol.

The serve room arrives when a command runs.
"""

from __future__ import annotations

import difflib
import re
from typing import Annotated

import typer

from memograd.cli import given
from memograd.cli.help import epilog
from memograd.errors import BadInput, need_packages

KEY = "MEMOGRAD_KEY"

app = typer.Typer(
    no_args_is_help=True,
    help="Give the memory to coding agents and other clients of MCP.",
    epilog=epilog(
        "Examples:\n  memograd mcp serve --user alice --path memories",
        "memograd serve offers the same at /mcp to clients that come by HTTP, each with its key.",
    ),
)


@app.command(epilog=epilog("Examples:\n  memograd mcp serve --user alice --path memories"))
def serve(
    user: given.User = None,
    agent: given.Agent = None,
    run: given.Run = None,
    path: given.Where = None,
) -> None:
    """Serve one owner's memory over standard input and output, for a client that starts it."""
    need_packages("MCP", ("mcp", "fastapi"), "serve")
    from memograd.memory import Memory
    from memograd.serve.keys import owner_of
    from memograd.serve.mcp.server import serve_stdio

    owner = owner_of(user, agent, run)
    if owner is None:
        raise BadInput("Whose memory is it? Give --user NAME, or --agent or --run.")
    with Memory.open(settings=given.settings(path)) as memory:
        serve_stdio(memory, owner)


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd mcp install claude-code --user alice --path memories\n"
        "  memograd mcp install claude-code --url http://127.0.0.1:8322 \\\n"
        '    --key "$(memograd serve keys create claude --user alice)"',
        "With --url the client also gets hooks: they recall before each prompt and remember what\n"
        "the user said, and let the client go on within a second when the memory is down.",
    )
)
def install(
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="claude-code, codex or cursor.")],
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="A running memograd serve to use.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", envvar=KEY, help=f"A key of that server; better in {KEY}."),
    ] = None,
    user: given.User = None,
    agent: given.Agent = None,
    run: given.Run = None,
    path: given.Where = None,
    yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False,
) -> None:
    """Let a coding agent use the memory: shows what it would write, asks, and keeps a copy."""
    need_packages("MCP", ("mcp", "fastapi"), "serve")
    from memograd.serve.keys import owner_of
    from memograd.serve.mcp.install import RunningServer, Started, check, plan, write

    owner = owner_of(user, agent, run)
    server: Started | RunningServer
    if url is not None:
        if key is None or owner is not None or path is not None:
            raise BadInput(
                f"With --url give --key (or set {KEY}), and no owner or path: the key says whose it"
                " is."
            )
        server = RunningServer(url, key)
        if not check(server):
            typer.echo(f"No server answers at {url} now: start it by memograd serve.", err=True)
    elif key is not None:
        raise BadInput(
            f"--key (or {KEY}, which is set) belongs to a running server: give its --url too, or"
            " leave the key out."
        )
    elif owner is None:
        raise BadInput(
            "Say whose memory it is by --user NAME, or give --url and --key of a running server."
        )
    else:
        option, _, name = owner.partition(":")
        folder = given.settings(path).path.resolve()
        server = Started((f"--{option}", name, "--path", str(folder)))
    changes = plan(client, server)
    if not changes:
        typer.echo("Nothing to change: it is installed already.")
        return
    for change in changes:
        lines = difflib.unified_diff(
            (change.before or "").splitlines(), change.after.splitlines(), lineterm="", n=1
        )
        shown = "\n".join([str(change.path), *list(lines)[2:]])
        typer.echo(re.sub(r"Bearer [^\s\"]+", "Bearer ...", shown))
    if not yes and not typer.confirm("Write this?"):
        raise typer.Exit(1)
    for change in changes:
        kept = write(change)
        typer.echo(f"written: {change.path}" + (f" (before: {kept})" if kept else ""))
    typer.echo(f"Start {client} again to use it.")
