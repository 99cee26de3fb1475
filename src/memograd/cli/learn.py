"""`memograd learn`, `memograd policy` and `memograd ranker`: what goes on learning, its versions.

Over `memograd.tasks.memory_ops.online` and `memograd.tasks.retrieval.feedback`, and the memory's
`PolicyVersions` and `RankerVersions`. The recipes, and torch with that of a policy, arrive when the
command runs.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memograd.cli import given, show
from memograd.cli.help import epilog, setting_paragraphs
from memograd.config.load import load_settings
from memograd.errors import BadInput
from memograd.tasks.memory_ops.settings import OnlineConfig

if TYPE_CHECKING:
    from memograd.memory.records.versions import VersionsFolder

app = typer.Typer()


def _of_versions(kind: str, folder: str) -> typer.Typer:
    return typer.Typer(
        no_args_is_help=True,
        help=f"Versions of a {kind}: list, adopt, roll back.",
        epilog=epilog(
            "Examples:\n"
            f"  memograd {kind} adopt runs/my-run/final --dir {folder}\n"
            f"  memograd {kind} list --dir {folder}\n"
            f"  memograd {kind} rollback --dir {folder}"
        ),
    )


policy_app = _of_versions("policy", "policies")
ranker_app = _of_versions("ranker", "rankers")

BACKGROUND_LOG = "background.log"
Folder = Annotated[Path, typer.Option("--dir", metavar="DIR", help="Folder of the versions.")]


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd learn --user alice\n"
        "  memograd learn --user alice --policy-dir policies --background\n"
        "  memograd learn --user alice --ranker-dir rankers\n"
        "  memograd learn --user alice steps=20 logs=12",
        "The policy is the folder --policy-dir, else MEMOGRAD_POLICY. A new version becomes current"
        "\nonly if it is not worse on feedback and generated logs that were held out; see docs/"
        "memory-policy-in-use.md. The ranker is the folder --ranker-dir, else MEMOGRAD_RANKING\n"
        "where that is a folder of rankers; a new one becomes current only if it finds more of\n"
        "what answers to held-out questions needed; see docs/retrieval.md.",
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
    ranker_dir: Annotated[
        Path | None, typer.Option("--ranker-dir", metavar="DIR", help="Folder of the rankers.")
    ] = None,
    background: Annotated[
        bool, typer.Option("--background", help="Return at once; learn in a process of its own.")
    ] = False,
    path: given.Where = None,
    json: given.AsJson = False,
) -> None:
    """Train the memory's policy, its ranker, or both on the feedback of one user."""
    from memograd.memory import Memory, Scope
    from memograd.memory.manager.trained.files import PolicyVersions
    from memograd.memory.search.ranker.files import RankerVersions

    config = load_settings(OnlineConfig, None, settings or [])
    place = given.settings(path)
    folder = policy_dir or place.policy
    rankers = ranker_dir
    if rankers is None and RankerVersions.is_in(Path(place.ranking).expanduser()):
        rankers = Path(place.ranking)
    if folder is None and rankers is None:
        raise BadInput("Learning needs a folder: give --policy-dir, --ranker-dir or both.")
    if folder is None and settings:
        raise BadInput("These are settings of a policy's training: give --policy-dir with them.")
    scope = Scope(**given.ids(user, agent, run))
    if len(scope.ids()) > 1:
        raise BadInput(
            f"Learning goes by all feedback of {scope.owner}: give one of --user, --agent and"
            " --run."
        )
    if folder is not None:
        PolicyVersions(folder).current  # noqa: B018 (raises where there is none)
    if background:
        options = {"--user": user, "--agent": agent, "--run": run, "--path": path}
        options |= {"--policy-dir": folder, "--ranker-dir": rankers}
        told = [str(part) for pair in options.items() if pair[1] is not None for part in pair]
        _go_on_in_background([*told, *(settings or [])], folder or rankers or Path())
        return
    reports: dict[str, Any] = {}
    with Memory.open(settings=place) as memory:
        if folder is not None:
            from memograd.tasks.memory_ops.online import learn_from_feedback

            reports["policy"] = learn_from_feedback(memory, scope.owner, folder, config)
        if rankers is not None:
            from memograd.tasks.retrieval.feedback import learn_ranking

            reports["ranker"] = learn_ranking(memory, scope.owner, rankers)
    if json:
        values = {name: report.to_json() for name, report in reports.items()}
        show.as_json(values["policy"] if rankers is None else values)
        return
    for name, report in reports.items():
        show.fields(report.to_json())
        if report.adopted:
            typer.echo(f"The {name} {report.after_version} is current now.")
        elif name == "policy":
            typer.echo(f"The policy {report.after_version} is worse and was not adopted.")
        else:
            typer.echo(f"The ranker {report.before_version} stays: a new one finds no more.")


@policy_app.command("list", epilog=epilog("Examples:\n  memograd policy list --dir policies"))
def list_policies(folder: Folder, json: given.AsJson = False) -> None:
    """Show the versions of a folder, oldest first."""
    from memograd.memory.manager.trained.files import PolicyVersions

    versions = PolicyVersions(folder)
    _list(versions, lambda version: versions.load(version).about, json)


@ranker_app.command("list", epilog=epilog("Examples:\n  memograd ranker list --dir rankers"))
def list_rankers(folder: Folder, json: given.AsJson = False) -> None:
    """Show the versions of a folder, oldest first."""
    from memograd.memory.search.ranker.files import RankerVersions

    versions = RankerVersions(folder)
    _list(versions, lambda version: versions.load(version).made_from, json)


@policy_app.command(
    "adopt",
    epilog=epilog(
        "Examples:\n"
        "  memograd policy adopt runs/my-run/final --dir policies\n"
        "  memograd policy adopt 0a1b2c3d4e5f --dir policies"
    ),
)
def adopt_policy(
    policy: Annotated[
        str, typer.Argument(metavar="POLICY", help="A trained head's folder, or a version.")
    ],
    folder: Folder,
) -> None:
    """Make a trained head, or one of the versions, the current one."""
    from memograd.memory.manager.trained.files import PolicyVersions, load_head

    versions = PolicyVersions(folder)
    _adopt(versions, policy, lambda: versions.save(load_head(Path(policy).expanduser())))


@ranker_app.command(
    "adopt",
    epilog=epilog(
        "Examples:\n"
        "  memograd ranker adopt runs/my-run/final --dir rankers\n"
        "  memograd ranker adopt 0a1b2c3d4e5f --dir rankers"
    ),
)
def adopt_ranker(
    ranker: Annotated[
        str, typer.Argument(metavar="RANKER", help="A trained ranker's folder, or a version.")
    ],
    folder: Folder,
) -> None:
    """Make a trained ranker, or one of the versions, the current one."""
    from memograd.memory.search.ranker.files import RankerVersions, load_ranker

    versions = RankerVersions(folder)
    _adopt(versions, ranker, lambda: versions.save(load_ranker(Path(ranker).expanduser())))


@policy_app.command(
    "rollback", epilog=epilog("Examples:\n  memograd policy rollback --dir policies")
)
def rollback_policy(folder: Folder) -> None:
    """Make the version current that was so before."""
    from memograd.memory.manager.trained.files import PolicyVersions

    _roll_back(PolicyVersions(folder))


@ranker_app.command(
    "rollback", epilog=epilog("Examples:\n  memograd ranker rollback --dir rankers")
)
def rollback_ranker(folder: Folder) -> None:
    """Make the version current that was so before."""
    from memograd.memory.search.ranker.files import RankerVersions

    _roll_back(RankerVersions(folder))


def _list(versions: VersionsFolder, about: Callable[[str], Mapping[str, Any]], json: bool) -> None:
    current, before = versions.current, versions.before
    rows: list[dict[str, Any]] = [
        {
            "version": version,
            "state": "current" if version == current else "before" if version in before else "",
            "about": dict(about(version)),
        }
        for version in versions.versions()
    ]
    if json:
        show.as_json(rows)
    else:
        cells = [[row["version"], row["state"], str(row["about"])] for row in rows]
        show.table(["version", "is", "about"], cells, whole=2)


def _adopt(versions: VersionsFolder, given_: str, save: Callable[[], str]) -> None:
    known = given_ in versions.versions()
    with versions.held():
        version = given_ if known else save()
        versions.adopt(version)
    typer.echo(f"The version {version} is current now.")


def _roll_back(versions: VersionsFolder) -> None:
    versions.current  # noqa: B018 (raises where there is none)
    with versions.held():
        version = versions.rollback()
    typer.echo(f"The version {version} is current again.")


def _go_on_in_background(arguments: list[str], folder: Path) -> None:
    """The same command in a process that outlives this one."""
    command = [sys.executable, "-m", "memograd", "learn", *arguments]
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / BACKGROUND_LOG
    with log.open("ab") as file:
        started = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    typer.echo(f"Learning in process {started.pid}; what it says goes to {log}.")
