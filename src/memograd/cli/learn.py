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
    from memograd.memory.manager.trained.files import PolicyVersions, TrainedHead
    from memograd.memory.records.versions import VersionsFolder
    from memograd.memory.search.ranker.files import Ranker, RankerVersions

app = typer.Typer()


BACKGROUND_LOG = "background.log"
Folder = Annotated[Path, typer.Option("--dir", metavar="DIR", help="Folder of the versions.")]
Chosen = Annotated[
    str, typer.Argument(metavar="WHICH", help="Folder of a trained one (RUN/final), or a version.")
]


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
        _policies(folder).current  # noqa: B018 (raises where there is none)
    given.check_memory(place)
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


def _of_versions(
    kind: str,
    example: str,
    opened: Callable[[Path], Any],
    loaded: Callable[[Path], Any],
    about: Callable[[Any, str], Mapping[str, Any]],
) -> typer.Typer:
    """The commands of a folder of versions.

    opened: the versions of a folder. loaded: what a training wrote into a folder. about: what a
    version says of itself.
    """
    adopt_one = f"  memograd {kind} adopt runs/my-run/final --dir {example}\n"
    listed = f"  memograd {kind} list --dir {example}"
    rolled = f"  memograd {kind} rollback --dir {example}"
    commands = typer.Typer(
        no_args_is_help=True,
        help=f"Versions of a {kind}: list, adopt, roll back.",
        epilog=epilog(f"Examples:\n{adopt_one}{listed}\n{rolled}"),
    )

    @commands.command("list", epilog=epilog(f"Examples:\n{listed}"))
    def list_versions(folder: Folder, json: given.AsJson = False) -> None:
        """Show the versions of a folder, oldest first."""
        versions: VersionsFolder = opened(folder)
        current, before = versions.current, versions.before
        rows: list[dict[str, Any]] = [
            {
                "version": version,
                "state": "current" if version == current else "before" if version in before else "",
                "about": dict(about(versions, version)),
            }
            for version in versions.versions()
        ]
        if json:
            show.as_json(rows)
        else:
            cells = [[row["version"], row["state"], str(row["about"])] for row in rows]
            show.table(["version", "is", "about"], cells, whole=2)

    @commands.command(
        epilog=epilog(f"Examples:\n{adopt_one}  memograd {kind} adopt 0a1b2c3d4e5f --dir {example}")
    )
    def adopt(chosen: Chosen, folder: Folder) -> None:
        """Make a trained one, or one of the versions, the current one."""
        versions = opened(folder)
        known = chosen in versions.versions()
        # Before the folder of the versions is made.
        trained = None if known else loaded(Path(chosen).expanduser())
        with versions.held():
            version = chosen if known else versions.save(trained)
            versions.adopt(version)
        typer.echo(f"The version {version} is current now.")

    @commands.command(epilog=epilog(f"Examples:\n{rolled}"))
    def rollback(folder: Folder) -> None:
        """Make the version current that was so before."""
        versions: VersionsFolder = opened(folder)
        versions.current  # noqa: B018 (raises where there is none)
        with versions.held():
            version = versions.rollback()
        typer.echo(f"The version {version} is current again.")

    return commands


def _policies(folder: Path) -> PolicyVersions:
    from memograd.memory.manager.trained.files import PolicyVersions

    return PolicyVersions(folder)


def _head(written: Path) -> TrainedHead:
    from memograd.memory.manager.trained.files import load_head

    return load_head(written)


def _rankers(folder: Path) -> RankerVersions:
    from memograd.memory.search.ranker.files import RankerVersions

    return RankerVersions(folder)


def _ranker(written: Path) -> Ranker:
    from memograd.memory.search.ranker.files import load_ranker

    return load_ranker(written)


policy_app = _of_versions(
    "policy",
    "policies",
    _policies,
    _head,
    lambda versions, version: versions.load(version).about,
)
ranker_app = _of_versions(
    "ranker",
    "rankers",
    _rankers,
    _ranker,
    lambda versions, version: versions.load(version).made_from,
)


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
