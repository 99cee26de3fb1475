"""What looks after a whole memory: `memograd doctor`, and commands of `memograd memory`.

Those are its answers, its room and moving it. The memory arrives when a command runs.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from memograd.cli import given, show
from memograd.cli.help import epilog
from memograd.errors import BadInput

app = typer.Typer()


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
    with given.open_memory(path) as memory:
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
    if (undo is None) == (budget is None) or (undo is not None and any((user, agent, run, policy))):
        raise BadInput("Give either --budget with --user, --agent or --run, or --undo alone.")
    with given.open_memory(path, policy=policy) as memory:
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
    with given.open_memory(path) as memory:
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
    with given.open_memory(path) as memory:
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
    from memograd.memory.write.transfer import read_events

    events = read_events(file)  # what is no export makes no memory
    next(events, None)
    if not given.there_is(given.settings(path)):
        for _ in events:
            pass
    with given.open_memory(path, make=True) as memory:
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
    from memograd.memory.upkeep import reindex as build

    chosen = given.settings(path, embedder=embedder)
    given.check_memory(chosen)
    result = build(chosen)
    (show.as_json if json else show.fields)(result)


@app.command(epilog=epilog("Examples:\n  memograd memory stats --json"))
def stats(path: given.Where = None, json: given.AsJson = False) -> None:
    """Show how much is kept, where, and by which embedder."""
    with given.open_memory(path) as memory:
        result = memory.stats()
    (show.as_json if json else show.fields)(result)


@app.command(epilog=epilog("Examples:\n  memograd memory users"))
def users(path: given.Where = None, json: given.AsJson = False) -> None:
    """Show users, agents and runs: how many memories they have, and since when."""
    with given.open_memory(path) as memory:
        result = memory.users()
    if json:
        show.as_json(result)
        return
    if not result["results"]:
        typer.echo("Nothing is remembered here.")
        return
    rows = [
        [one["type"], one["total_memories"], show.day(one["created_at"]), one["name"]]
        for one in result["results"]
    ]
    show.table(["type", "memories", "since", "name"], rows, whole=3)


doctor_app = typer.Typer()

SIGNS = {True: "fine", False: "WRONG", None: "absent"}


@doctor_app.command(
    epilog=epilog(
        "Examples:\n  memograd doctor\n  memograd doctor --path memories --json",
        "It exits with 1 if something is wrong; what is absent is optional.",
    )
)
def doctor(path: given.Where = None, json: given.AsJson = False) -> None:
    """Check that the memory can work here, and say what to do if not."""
    from memograd.memory.doctor import examine

    findings = examine(given.settings(path))
    if json:
        show.as_json([asdict(finding) for finding in findings])
    else:
        rows = [[SIGNS[one.ok], one.name, one.message, one.remedy] for one in findings]
        show.table(["is", "what", "found", "do"], rows, whole=1)
    if any(one.ok is False for one in findings):
        raise typer.Exit(1)
