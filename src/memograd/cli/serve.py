"""`memograd serve`: the memory over HTTP, and its keys.

FastAPI and the serve room arrive when a command runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memograd.cli import given, show
from memograd.cli.help import epilog
from memograd.errors import BadInput, Stopped, need_packages

if TYPE_CHECKING:
    from memograd.serve.keys import Keys

TOKEN = "MEMOGRAD_SERVE_TOKEN"
PORT = 8322

app = typer.Typer(
    invoke_without_command=True,
    help="Serve the memory over HTTP: REST, MCP and a page to look at.",
    epilog=epilog(
        "Examples:\n"
        "  memograd serve\n"
        "  memograd serve --path memories --port 8322\n"
        "  memograd serve --traces sqlite:///traces.db\n"
        "  memograd serve keys create phone --user alice\n"
        "  memograd serve --host 0.0.0.0 --allow-host memory.example.org",
        "On this machine it prints an address that opens the page once, and an admin token for\n"
        "clients unless there is a key. Beyond this machine it needs a key and --allow-host.\n"
        "Where no memory is named and there is none yet, it shows what the last demo left.",
        "Environment:\n"
        f"  {TOKEN}   an admin key, kept nowhere: the same for all processes\n"
        "  MEMOGRAD_PATH, MEMOGRAD_JOURNAL_URL, ...   the memory's settings, as everywhere",
    ),
)
keys_app = typer.Typer(
    no_args_is_help=True,
    help="Make, list and revoke the keys of clients.",
    epilog=epilog(
        "Examples:\n"
        "  memograd serve keys create phone --user alice --rights read,write\n"
        "  memograd serve keys create backend\n"
        "  memograd serve keys list\n"
        "  memograd serve keys revoke 3f2a90c1d4e5"
    ),
)
app.add_typer(keys_app, name="keys")


@app.callback()
def serve(
    context: typer.Context,
    path: given.Where = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = PORT,
    token: Annotated[
        str | None,
        typer.Option(metavar="KEY", help=f"An admin key of your own; better in {TOKEN}."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name that clients and pages may call it by; repeat."),
    ] = None,
    runs: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of training runs that the page shows.")
    ] = Path("runs"),
    traces: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A gateway's trace store that the page shows, unchanged."),
    ] = None,
    access_log_days: Annotated[
        float,
        typer.Option(metavar="N", min=0.0, help="Days that who read what is kept; 0 is for ever."),
    ] = 90.0,
) -> None:
    """Serve until it is interrupted."""
    if context.invoked_subcommand is not None:
        return
    need_packages(
        "The server", ("fastapi", "uvicorn", "jinja2", "mcp", "python_multipart"), "serve"
    )
    from memograd.memory import Memory
    from memograd.serve import left_by_run
    from memograd.serve.app import create_app
    from memograd.serve.starting import settle
    from memograd.web.host_check import is_loopback
    from memograd.web.running import address, listen
    from memograd.web.running import serve as run

    named = token or os.environ.get(TOKEN) or None
    settings = given.settings(path)
    shown = None
    if named is None and is_loopback(host):
        shown = left_by_run.instead_of(settings, runs)
    if shown is not None:
        typer.echo(
            f"There is no memory in {settings.path} yet. What is shown is what the run"
            f" {shown.name} left; for your own memory: memograd serve --path {settings.path}"
        )
        settings = left_by_run.settings_of(shown, settings)
    listening = listen(host, port)
    start = settle(
        settings,
        host,
        token=named,
        allowed=allow_host or (),
        runs=runs,
        traces=traces,
        access_days=access_log_days,
        clients=shown is None,
    )
    with Memory.open(settings=settings) as memory:
        served = create_app(memory, start.settings)
        place = address(listening, named=allow_host or ())
        typer.echo(f"serving {settings.path} at {place}")
        if start.made_token is not None:
            typer.echo(f"admin token of this run, for clients: {start.made_token}")
        typer.echo(f"open once in a browser, within 15 minutes: {place}{start.login}")
        ended_by = run(served, listening)
    if ended_by is not None:
        raise Stopped("The server has ended; what it was asked is answered.", ended_by)


@app.command(epilog=epilog("Examples:\n  memograd serve login --path memories"))
def login(path: given.Where = None) -> None:
    """Print a path that opens the page of the running server once, as an admin."""
    from memograd.serve.keys import Right
    from memograd.serve.session import login_path

    with _keys(path, new=False) as keys:
        made = keys.login_token(name="page", owner=None, rights=[Right.admin])
    typer.echo(login_path(made))


@keys_app.command(
    "create", epilog=epilog("Examples:\n  memograd serve keys create phone --user alice")
)
def create_key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    user: given.User = None,
    agent: given.Agent = None,
    run: given.Run = None,
    rights: Annotated[
        str, typer.Option(metavar="LIST", help="Of read, write, erase, admin; by commas.")
    ] = "read,write",
    days: Annotated[
        float | None, typer.Option(metavar="N", help="Days until it expires; else never.")
    ] = None,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Make a key, and show its secret this once; without --user, --agent or --run it opens all."""
    from memograd.serve.keys import owner_of

    with _keys(path) as keys:
        made = keys.create(
            name,
            owner=owner_of(user, agent, run),
            rights=[right.strip() for right in rights.split(",")],
            days=days,
        )
    if json:
        show.as_json({**made.key.shown(), "secret": made.secret})
    else:
        typer.echo(made.secret)
        typer.echo(f"key {made.key.id}, shown only now: keep it safe.", err=True)


@keys_app.command("list", epilog=epilog("Examples:\n  memograd serve keys list"))
def list_keys(path: given.Where = None, json: given.AsJson = False) -> None:
    """Show all keys, revoked ones too, and the browsers that are signed in."""
    with _keys(path, new=False) as keys:
        found = [key.shown() for key in (*keys.list(), *keys.sessions())]
    if json:
        show.as_json(found)
    elif not found:
        typer.echo("There are no keys yet.")
    else:
        rows = [
            [
                key["id"],
                "revoked" if key["revoked_at"] else show.day(key["expires_at"]) or "never",
                ", ".join(key["rights"]),
                key["owner"] or "everybody's",
                key["name"] if key["kind"] == "key" else f"{key['name']} (browser)",
            ]
            for key in found
        ]
        show.table(["id", "ends", "rights", "owner", "name"], rows, whole=2)


@keys_app.command("revoke", epilog=epilog("Examples:\n  memograd serve keys revoke 3f2a90c1d4e5"))
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Of a key or a browser.")],
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Let a key, or a browser that is signed in, open nothing from now on."""
    with _keys(path, new=False) as keys:
        key = keys.revoke(key_id)
    if json:
        show.as_json(key.shown())
    else:
        typer.echo(f"Revoked: {key.id} ({show.plain(key.name)}).")


@contextmanager
def _keys(path: Path | None, *, new: bool = True) -> Iterator[Keys]:
    """The keys that belong to the memory of the settings. new: there may be none yet; else a folder
    without any is another one than the server's, and is left as it is."""
    from memograd.serve.database import FILE, ServeDatabase
    from memograd.serve.keys import Keys

    settings = given.settings(path)
    beside = Path(settings.path).expanduser()
    if not new and settings.journal_url is None and not (beside / FILE).is_file():
        raise BadInput(
            f"The memory {settings.path} has no keys and no server: name the server's by --path."
        )
    database = ServeDatabase.beside(settings)
    try:
        yield Keys(database)
    finally:
        database.close()
