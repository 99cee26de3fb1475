"""`memograd memory`: the methods of `memograd.Memory`, one a command.

The memory arrives when a command runs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memograd.cli import given, show
from memograd.cli.help import epilog
from memograd.errors import BadInput

if TYPE_CHECKING:
    from memograd.memory import Memory

app = typer.Typer(
    no_args_is_help=True,
    help="Remember, find and forget.",
    epilog=epilog(
        "Examples:\n"
        '  memograd memory add "I moved to Boston in May." --user alice\n'
        '  memograd memory search "Where does she live?" --user alice --explain\n'
        "  memograd memory list --user alice --as-of 2024-05-01\n"
        "  memograd memory purge --user alice --yes",
        "The memory is the folder --path, else MEMOGRAD_PATH, else the one that is set in .env.",
    ),
)


@app.command(
    epilog=epilog(
        "Examples:\n"
        '  memograd memory add "I moved to Boston in May." --user alice\n'
        "  memograd memory add --file chat.jsonl --user alice --at 2024-05-07\n"
        "  cat notes.txt | memograd memory add - --user alice --verbatim"
    )
)
def add(
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="What was said; - reads standard input.")
    ] = None,
    user: given.User = None,
    agent: given.Agent = None,
    run: given.Run = None,
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Chat messages: a JSON list, or one JSON object a line."),
    ] = None,
    verbatim: Annotated[
        bool, typer.Option("--verbatim", help="Remember it word for word, without reading it.")
    ] = False,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="When it was said; else now.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="DATE", help="The last day on which it is shown."),
    ] = None,
    policy: given.Policy = None,
    defer_below: given.DeferBelow = None,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Remember what matters in a text or in chat messages."""
    said = given.messages(text, file)
    with _open(path, make=True, policy=policy, defer_below=defer_below) as memory:
        result = memory.add(
            said,
            **given.ids(user, agent, run),
            infer=not verbatim,
            timestamp=at,
            expiration_date=until,
        )
    if json:
        show.as_json(result)
    else:
        show.operations(result["results"])


@app.command(
    epilog=epilog(
        "Examples:\n"
        '  memograd memory search "Where does she live?" --user alice\n'
        '  memograd memory search tea --user alice --filters \'{"kind": {"ne": "core"}}\'\n'
        '  memograd memory search "她住在哪里" --user 小红 --turns 3 --explain --json'
    )
)
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")],
    user: given.User = None,
    agent: given.Agent = None,
    run: given.Run = None,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="N", min=1, help="How many memories, at most.")
    ] = None,
    filters: given.FilterText = None,
    as_of: given.AsOf = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say of each hit why it was found.")
    ] = False,
    turns: Annotated[
        int, typer.Option("--turns", metavar="N", min=0, help="Raw turns behind the memories, too.")
    ] = 0,
    ranking: given.Ranking = None,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Find the memories that answer a query best."""
    with _open(path, ranking=ranking) as memory:
        result = memory.search(
            query,
            **given.ids(user, agent, run),
            filters=given.filters(filters),
            top_k=top_k,
            as_of=as_of,
            turns=turns,
            explain=explain,
        )
    if json:
        show.as_json(result)
        return
    show.items(result["results"])
    behind = result.get("turns", [])
    if behind:
        show.turns(behind)
    if explain:
        show.reasons([*result["results"], *behind])


@app.command("list", epilog=epilog("Examples:\n  memograd memory list --user alice --limit 20"))
def list_(
    user: given.User = None,
    agent: given.Agent = None,
    run: given.Run = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="The first N only.")
    ] = None,
    filters: given.FilterText = None,
    as_of: given.AsOf = None,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Show what is remembered, oldest first."""
    with _open(path) as memory:
        result = memory.get_all(
            **given.ids(user, agent, run),
            filters=given.filters(filters),
            limit=limit,
            as_of=as_of,
        )
    if json:
        show.as_json(result)
    else:
        show.items(result["results"])


@app.command("show", epilog=epilog("Examples:\n  memograd memory show 0b2c..."))
def show_(memory_id: given.MemoryId, path: given.Where = None, json: given.AsJson = False) -> None:
    """Show everything about one memory."""
    with _open(path) as memory:
        item = memory.get(memory_id)
    if item is None:
        raise _unknown(memory_id)
    (show.as_json if json else show.fields)(item)


@app.command(epilog=epilog("Examples:\n  memograd memory history 0b2c..."))
def history(
    memory_id: given.MemoryId, path: given.Where = None, json: given.AsJson = False
) -> None:
    """Show what happened to one memory: when, by whom, why."""
    with _open(path) as memory:
        lines = memory.history(memory_id)
    if not lines:
        raise _unknown(memory_id)
    (show.as_json if json else show.history)(lines)


@app.command(
    epilog=epilog(
        "Examples:\n  memograd memory forget 0b2c...\n  memograd memory forget --all --user alice"
    )
)
def forget(
    memory_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="The id of a memory.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All memories of --user, --agent or --run.")
    ] = False,
    user: given.User = None,
    agent: given.Agent = None,
    run: given.Run = None,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Forget a memory; its history stays."""
    scope = given.ids(user, agent, run)
    one = memory_id is not None and not any((everything, user, agent, run))
    if not one and (memory_id is not None or not everything):
        raise BadInput("Give either the id of a memory, or --all with --user, --agent or --run.")
    with _open(path) as memory:
        result: Mapping[str, Any]
        result = memory.delete_all(**scope) if memory_id is None else memory.delete(memory_id)
    if json:
        show.as_json(result)
    else:
        typer.echo(f"Forgotten: {result.get('deleted', 1)}.")


@app.command(
    epilog=epilog(
        "Examples:\n  memograd memory purge 0b2c...\n  memograd memory purge --user alice --yes"
    )
)
def purge(
    memory_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="The id of a memory.")
    ] = None,
    user: given.User = None,
    agent: given.Agent = None,
    run: given.Run = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Erase for good: one memory, or all of a user, agent or run."""
    scope = given.ids(user, agent, run)
    what = memory_id or ", ".join(name for name in (user, agent, run) if name)
    if not what:
        raise BadInput("Say what to purge: the id of a memory, or --user, --agent or --run.")
    if not yes:
        if not sys.stdin.isatty():
            raise BadInput("Purging cannot be undone: without a terminal to ask, it needs --yes.")
        typer.echo(f"Erase {show.plain(what)} and its history for good? [y/N] ", err=True, nl=False)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise BadInput("Nothing was purged.")
    with _open(path) as memory:
        result = memory.purge(memory_id, **scope)
    if json:
        show.as_json(result)
    else:
        typer.echo(f"Erased: {result['items']} memories, {result['turns']} raw turns.")


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd memory feedback 5f0c... good --user alice\n"
        '  memograd memory feedback 5f0c... "She lives in Denver." --user alice',
        "The last verdict on an answer counts; memograd learn trains the policy on it.",
    )
)
def feedback(
    answer_id: Annotated[str, typer.Argument(metavar="ANSWER_ID", help="The id of an answer.")],
    verdict: Annotated[
        str, typer.Argument(metavar="VERDICT", help="good, bad, or the right answer.")
    ],
    user: given.User = None,
    agent: given.Agent = None,
    run: given.Run = None,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Say whether an answer was right."""
    with _open(path) as memory:
        result = memory.feedback(answer_id, verdict, **given.ids(user, agent, run))
    if json:
        show.as_json(result)
    else:
        typer.echo(f"Noted: {result['verdict']}.")


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd memory compact --budget 2000 --user alice\n"
        "  memograd memory compact --undo 0a1b2c3d4e5f"
    )
)
def compact(
    budget: Annotated[
        int | None, typer.Option("--budget", metavar="N", min=0, help="Tokens that may stay.")
    ] = None,
    user: given.User = None,
    agent: given.Agent = None,
    run: given.Run = None,
    undo: Annotated[
        str | None, typer.Option("--undo", metavar="ID", help="Take this compaction back.")
    ] = None,
    policy: given.Policy = None,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Merge what is said twice and retire what is worth least, until the rest fits a budget."""
    scope = given.ids(user, agent, run)
    if (undo is None) == (budget is None) or (undo is not None and any((user, agent, run))):
        raise BadInput("Give either --budget with --user, --agent or --run, or --undo alone.")
    with _open(path, policy=policy) as memory:
        if undo is not None:
            result = memory.undo_compact(undo)
        else:
            result = memory.compact(budget or 0, **scope)
    (show.as_json if json else show.fields)(result)


@app.command(
    epilog=epilog("Examples:\n  memograd memory sweep\n  memograd memory sweep --user alice")
)
def sweep(
    user: given.User = None,
    agent: given.Agent = None,
    run: given.Run = None,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Forget what has expired (add --until); it is hidden before."""
    with _open(path) as memory:
        result = memory.sweep(**given.ids(user, agent, run))
    if json:
        show.as_json(result)
    else:
        typer.echo(f"{result['swept']} expired memories were forgotten.")


@app.command(epilog=epilog("Examples:\n  memograd memory export backup.jsonl --user alice"))
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON Lines; replaced if there.")],
    user: given.User = None,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Write the memory, or one user's part, to a file."""
    with _open(path) as memory:
        count = memory.export(file, user_id=user)
    if json:
        show.as_json(count)
    else:
        typer.echo(f"{count} events are in {file}")


@app.command("import", epilog=epilog("Examples:\n  memograd memory import backup.jsonl"))
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What export wrote.")],
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Take over what export wrote; twice changes nothing."""
    with _open(path, make=True) as memory:
        count = memory.import_(file)
    if json:
        show.as_json(count)
    else:
        typer.echo(f"{count} events were new.")


@app.command(epilog=epilog("Examples:\n  memograd memory reindex --embedder e5"))
def reindex(
    embedder: Annotated[
        str | None, typer.Option(metavar="NAME", help="Embed everything anew with this one.")
    ] = None,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Compute vectors and index anew from the journal."""
    from memograd.memory.write.reindex import reindex as build

    result = build(given.settings(path, embedder=embedder))
    (show.as_json if json else show.fields)(result)


@app.command(epilog=epilog("Examples:\n  memograd memory stats --json"))
def stats(path: given.Where = None, json: given.AsJson = False) -> None:
    """Show how much is kept, where, and by which embedder."""
    with _open(path) as memory:
        result = memory.stats()
    (show.as_json if json else show.fields)(result)


def _open(
    path: Path | None,
    *,
    make: bool = False,
    policy: Path | None = None,
    defer_below: float | None = None,
    ranking: str | None = None,
) -> Memory:
    """The memory of the settings; only what writes into it may make a new one."""
    from memograd.memory import Memory

    settings = given.settings(path, policy=policy, defer_below=defer_below, ranking=ranking)
    if not make and not settings.journal_url and not (settings.path / "journal.db").is_file():
        raise BadInput(
            f"There is no memory in {settings.path}: add something to it first, or give --path."
        )
    return Memory.open(settings=settings)


def _unknown(memory_id: str) -> BadInput:
    return BadInput(f"There is no memory with the id {memory_id!r}: see memograd memory list.")
