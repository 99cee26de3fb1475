"""`memograd memory`: the methods of `memograd.Memory`, one a command.

What looks after a whole memory is in `memory_upkeep.py`. The memory arrives when a command runs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from memograd.cli import given, memory_upkeep, show
from memograd.cli.help import epilog
from memograd.errors import BadInput

if TYPE_CHECKING:
    from memograd.memory.search.hits import Mode

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
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="core, semantic, episodic or procedural; else as read."),
    ] = None,
    category: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A category of yours; repeat.")
    ] = None,
    metadata: given.MetadataText = None,
    request_id: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Made again under this name, it writes nothing."),
    ] = None,
    policy: given.Policy = None,
    defer_below: given.DeferBelow = None,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Remember what matters in a text or in chat messages."""
    from memograd.memory.write.calls import check_call

    said = given.messages(text, file)
    call: dict[str, Any] = {
        **given.ids(user, agent, run),
        "infer": not verbatim,
        "timestamp": at,
        "expiration_date": until,
        "kind": kind,
        "categories": category or (),
        "metadata": given.metadata(metadata),
        "request_id": request_id,
    }
    check_call(said, call)  # what is refused makes no memory
    with given.open_memory(path, make=True, policy=policy, defer_below=defer_below) as memory:
        result = memory.add(said, **call)
    if json:
        show.as_json(result)
    else:
        show.operations(result["results"])


@app.command(
    epilog=epilog(
        "Examples:\n"
        '  memograd memory search "Where does she live?" --user alice\n'
        '  memograd memory search tea --user alice --filters \'{"kind": {"ne": "core"}}\'\n'
        "  memograd memory search tea --user alice --threshold 0.3 --show-expired\n"
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
    threshold: Annotated[
        float | None, typer.Option(metavar="S", help="Only memories with at least this score.")
    ] = None,
    filters: given.FilterText = None,
    as_of: given.AsOf = None,
    asked_at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help='When it is asked, which "last week" counts from.'),
    ] = None,
    show_expired: given.ShowExpired = False,
    mode: Annotated[
        str, typer.Option(metavar="MODE", help="hybrid; or dense or lexical alone.")
    ] = "hybrid",
    half_life: Annotated[
        float | None,
        typer.Option("--half-life", metavar="DAYS", help="The age at which a score is halved."),
    ] = None,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Let the reranker of the settings order them.")
    ] = False,
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
    with given.open_memory(path, ranking=ranking) as memory:
        result = memory.search(
            query,
            **given.ids(user, agent, run),
            filters=given.filters(filters),
            top_k=top_k,
            threshold=threshold,
            as_of=as_of,
            asked_at=asked_at,
            show_expired=show_expired,
            mode=cast("Mode", mode),  # the search refuses any other
            recency_half_life=half_life,
            rerank=rerank,
            turns=turns,
            explain=explain,
        )
    if json:
        show.as_json(result)
        return
    if threshold is None:
        show.items(result["results"])
    else:
        show.items(result["results"], f"No memory found has a score of {threshold:g} or more.")
    behind = result.get("turns", [])
    if behind:
        show.turns(behind)
    if explain:
        show.reasons([*result["results"], *behind])


@app.command(
    epilog=epilog('Examples:\n  memograd memory context "Where does she live?" --user alice')
)
def context(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What the prompt is about.")],
    user: given.User = None,
    agent: given.Agent = None,
    run: given.Run = None,
    tokens: Annotated[
        int, typer.Option("--tokens", metavar="N", min=0, help="How long the text may be.")
    ] = 2000,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="N", min=1, help="How many memories, at most.")
    ] = None,
    turns: Annotated[
        int, typer.Option("--turns", metavar="N", min=0, help="Raw turns behind the memories, too.")
    ] = 10,
    filters: given.FilterText = None,
    ranking: given.Ranking = None,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Show the text that a prompt should have of the memory."""
    from memograd.memory.results import context_result

    with given.open_memory(path, ranking=ranking) as memory:
        found = memory.context(
            query,
            **given.ids(user, agent, run),
            filters=given.filters(filters),
            top_k=top_k,
            turns=turns,
            token_budget=tokens,
        )
    if json:
        show.as_json(context_result(found))
    else:
        typer.echo("\n".join(map(show.plain, found.text.split("\n"))))


@app.command(
    "list",
    epilog=epilog(
        "Examples:\n"
        "  memograd memory list --user alice --limit 20\n"
        "  memograd memory list --user alice --limit 20 --cursor WyIyMDI2...",
        "A page that is not the last one ends with the cursor of the next.",
    ),
)
def list_(
    user: given.User = None,
    agent: given.Agent = None,
    run: given.Run = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="The first N only.")
    ] = None,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Go on where the page before ended.")
    ] = None,
    filters: given.FilterText = None,
    as_of: given.AsOf = None,
    show_expired: given.ShowExpired = False,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Show what is remembered, oldest first."""
    with given.open_memory(path) as memory:
        result = memory.get_all(
            **given.ids(user, agent, run),
            filters=given.filters(filters),
            limit=limit,
            cursor=cursor,
            as_of=as_of,
            show_expired=show_expired,
        )
    if json:
        show.as_json(result)
        return
    show.items(result["results"])
    if result.get("next_cursor"):
        typer.echo(f"There is more: --cursor {result['next_cursor']}")


@app.command("show", epilog=epilog("Examples:\n  memograd memory show 0b2c..."))
def show_(memory_id: given.MemoryId, path: given.Where = None, json: given.AsJson = False) -> None:
    """Show everything about one memory."""
    with given.open_memory(path) as memory:
        item = memory.get(memory_id)
    if item is None:
        raise _unknown(memory_id)
    (show.as_json if json else show.fields)(item)


@app.command(epilog=epilog("Examples:\n  memograd memory history 0b2c..."))
def history(
    memory_id: given.MemoryId, path: given.Where = None, json: given.AsJson = False
) -> None:
    """Show what happened to one memory: when, by whom, why."""
    with given.open_memory(path) as memory:
        lines = memory.history(memory_id)
    if not lines:
        raise _unknown(memory_id)
    (show.as_json if json else show.history)(lines)


@app.command(
    epilog=epilog(
        "Examples:\n"
        '  memograd memory update 0b2c... "I live in Denver."\n'
        '  memograd memory update 0b2c... --metadata \'{"seen": true, "draft": null}\'\n'
        "  memograd memory update 0b2c... --no-until",
        "Metadata is merged into what is there; null takes a field away.",
    )
)
def update(
    memory_id: given.MemoryId,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="What it says from now on.")
    ] = None,
    metadata: given.MetadataText = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="DATE", help="The last day on which it is shown."),
    ] = None,
    no_until: Annotated[bool, typer.Option("--no-until", help="It does not expire.")] = False,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Correct one memory; its history keeps what it said."""
    if until is not None and no_until:
        raise BadInput("Give either --until or --no-until.")
    if text is None and metadata is None and until is None and not no_until:
        raise BadInput("Say what to change: a new text, --metadata, --until or --no-until.")
    labels = given.metadata(metadata)
    ends: dict[str, Any] = {"expiration_date": until} if until or no_until else {}
    with given.open_memory(path) as memory:
        result = memory.update(memory_id, text, labels, **ends)
    if json:
        show.as_json(result)
    else:
        typer.echo("Changed: 1.")


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd memory forget 0b2c...\n"
        "  memograd memory forget --all --user alice\n"
        '  memograd memory forget --all --user alice --filters \'{"categories": "food"}\''
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
    filters: given.FilterText = None,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Forget a memory; its history stays."""
    scope = given.ids(user, agent, run)
    conditions = given.filters(filters)
    one = memory_id is not None and not any((everything, user, agent, run, filters))
    if not one and (memory_id is not None or not everything):
        raise BadInput("Give either the id of a memory, or --all with --user, --agent or --run.")
    with given.open_memory(path) as memory:
        result: Mapping[str, Any]
        if memory_id is None:
            result = memory.delete_all(**scope, filters=conditions)
        else:
            result = memory.delete(memory_id)
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
    with given.open_memory(path) as memory:
        result = memory.purge(memory_id, **scope)
    if json:
        show.as_json(result)
    else:
        typer.echo(f"Erased: {result['items']} memories, {result['turns']} raw turns.")


def _unknown(memory_id: str) -> BadInput:
    return BadInput(f"There is no memory with the id {memory_id!r}: see memograd memory list.")


app.add_typer(memory_upkeep.app)
