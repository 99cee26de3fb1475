"""`memograd learn` and `memograd policy`: a policy that goes on learning, and its versions.

Over `memograd.tasks.memory_ops.online` and the memory's `PolicyVersions`. The recipe, and torch
with it, arrives when the command runs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from memograd.cli import given, show
from memograd.cli.help import epilog, setting_paragraphs
from memograd.config.load import load_settings
from memograd.errors import BadInput
from memograd.tasks.memory_ops.settings import OnlineConfig

app = typer.Typer()
policy_app = typer.Typer(
    no_args_is_help=True,
    help="Versions of a policy: list, adopt, roll back.",
    epilog=epilog(
        "Examples:\n"
        "  memograd policy adopt runs/my-run/final --dir policies\n"
        "  memograd policy list --dir policies\n"
        "  memograd policy rollback --dir policies"
    ),
)

BACKGROUND_LOG = "background.log"
Folder = Annotated[Path, typer.Option("--dir", metavar="DIR", help="Folder of the versions.")]


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd learn --user alice\n"
        "  memograd learn --user alice --policy-dir policies --background\n"
        "  memograd learn --user alice steps=20 logs=12",
        "The policy is the folder --policy-dir, else MEMOGRAD_POLICY. A new version becomes current"
        "\nonly if it is not worse on feedback and generated logs that were held out; see docs/"
        "memory-policy-in-use.md.",
        *setting_paragraphs(OnlineConfig),
    )
)
def learn(
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings of the training.")
    ] = None,
    user: given.User = None,
    agent: given.Agent = None,
    run: given.Run = None,
    policy_dir: Annotated[
        Path | None, typer.Option("--policy-dir", metavar="DIR", help="Folder of the versions.")
    ] = None,
    background: Annotated[
        bool, typer.Option("--background", help="Return at once; learn in a process of its own.")
    ] = False,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Train the memory's policy on the feedback of one user."""
    from memograd.memory import Memory, Scope
    from memograd.memory.manager.trained.versions import PolicyVersions

    config = load_settings(OnlineConfig, None, settings or [])
    place = given.settings(path)
    folder = policy_dir or place.policy
    if folder is None:
        raise BadInput("Learning needs a folder of policies: give --policy-dir.")
    scope = Scope(**given.ids(user, agent, run))
    if len(scope.ids()) > 1:
        raise BadInput(
            f"A policy learns from all feedback of {scope.owner}: give one of --user, --agent and"
            " --run."
        )
    PolicyVersions(folder).current  # noqa: B018 (raises where there is none)
    if background:
        options = {"--user": user, "--agent": agent, "--run": run, "--path": path}
        options |= {"--policy-dir": folder}
        told = [str(part) for pair in options.items() if pair[1] is not None for part in pair]
        _go_on_in_background([*told, *(settings or [])], folder)
        return
    from memograd.tasks.memory_ops.online import learn_from_feedback

    with Memory.open(settings=place) as memory:
        report = learn_from_feedback(memory, scope.owner, folder, config)
    if json:
        show.as_json(report.to_json())
        return
    show.fields(report.to_json())
    done = "is current now" if report.adopted else "is worse and was not adopted"
    typer.echo(f"The version {report.after_version} {done}.")


@policy_app.command("list", epilog=epilog("Examples:\n  memograd policy list --dir policies"))
def list_(folder: Folder, json: given.AsJson = False) -> None:
    """Show the versions of a folder, oldest first."""
    from memograd.memory.manager.trained.versions import PolicyVersions

    versions = PolicyVersions(folder)
    current, before = versions.current, versions.before
    rows: list[dict[str, Any]] = [
        {
            "version": version,
            "state": "current" if version == current else "before" if version in before else "",
            "about": dict(versions.load(version).about),
        }
        for version in versions.versions()
    ]
    if json:
        show.as_json(rows)
    else:
        cells = [[row["version"], row["state"], str(row["about"])] for row in rows]
        show.table(["version", "is", "about"], cells, whole=2)


@policy_app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd policy adopt runs/my-run/final --dir policies\n"
        "  memograd policy adopt 0a1b2c3d4e5f --dir policies"
    )
)
def adopt(
    policy: Annotated[
        str, typer.Argument(metavar="POLICY", help="A trained head's folder, or a version.")
    ],
    folder: Folder,
) -> None:
    """Make a trained head, or one of the versions, the current one."""
    from memograd.memory.manager.trained.files import load_head
    from memograd.memory.manager.trained.versions import PolicyVersions

    versions = PolicyVersions(folder)
    known = policy in versions.versions()
    head = None if known else load_head(Path(policy).expanduser())
    with versions.held():
        version = policy if head is None else versions.save(head)
        versions.adopt(version)
    typer.echo(f"The version {version} is current now.")


@policy_app.command(epilog=epilog("Examples:\n  memograd policy rollback --dir policies"))
def rollback(folder: Folder) -> None:
    """Make the version current that was so before."""
    from memograd.memory.manager.trained.versions import PolicyVersions

    versions = PolicyVersions(folder)
    versions.current  # noqa: B018 (raises where there is none)
    with versions.held():
        version = versions.rollback()
    typer.echo(f"The version {version} is current again.")


def _go_on_in_background(arguments: list[str], folder: Path) -> None:
    """The same command in a process that outlives this one."""
    command = [sys.executable, "-m", "memograd", "learn", *arguments]
    log = folder / BACKGROUND_LOG
    with log.open("ab") as file:
        started = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    typer.echo(f"Learning in process {started.pid}; what it says goes to {log}.")
