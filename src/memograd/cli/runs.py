"""Looking at training runs: `runs list|show|compare|plot` and `rollouts`.

Over `memograd.evaluation.run_summaries`, `run_log` and `plots`; nothing here changes a run.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memograd.cli import given, show
from memograd.cli.help import epilog
from memograd.errors import BadInput

if TYPE_CHECKING:
    from rich.text import Text

    from memograd.config import Settings
    from memograd.evaluation.run_log import TokenText

app = typer.Typer()
runs_app = typer.Typer(no_args_is_help=True)
app.add_typer(
    runs_app,
    name="runs",
    help="Look at training runs.",
    epilog=epilog("Examples:\n  memograd runs list\n  memograd runs compare one two"),
)

Folder = Annotated[Path, typer.Option("--dir", metavar="DIR", help="Folder that holds the runs.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's folder, or its name in DIR.")]
Runs = Annotated[
    list[str], typer.Argument(metavar="RUN...", help="Folders of runs, or their names in DIR.")
]
RUNS = Path("runs")

STYLES = {"observation": "dim", "likely": "green", "open": "yellow", "unlikely": "red"}


@runs_app.command("list", epilog=epilog("Examples:\n  memograd runs list --dir runs"))
def list_(folder: Folder = RUNS, json: given.AsJson = False) -> None:
    """List runs, the one that was last at work first."""
    from memograd.evaluation.run_summaries import find_runs, summarise_run

    found = [summarise_run(path) for path in find_runs(folder)]
    if json:
        show.as_json([_plain(one) for one in found])
        return
    if not found:
        typer.echo(f"There are no runs in {folder}.")
        return
    rows = [
        [
            one.path.name,
            one.task or "-",
            _short_model(one.model),
            f"{one.steps_done}/{one.steps_asked or '?'}",
            one.state,
            _number(one.reward_mean),
            _age(one.idle_seconds),
        ]
        for one in found
    ]
    table = ["run", "task", "model", "steps", "state", "reward", "last step"]
    show.table(table, rows, whole=1)


@runs_app.command("show", epilog=epilog("Examples:\n  memograd runs show runs/my-run"))
def show_(run: Run, folder: Folder = RUNS, json: given.AsJson = False) -> None:
    """Show what a run was told, where it ran, and how far it came."""
    from memograd.evaluation.run_summaries import show_run

    details = show_run(_path(run, folder), _settings_of)
    if json:
        show.as_json(_plain(details))
        return
    one = details.summary
    show.fields(
        {
            "run": str(one.path),
            "task": one.task,
            "state": one.state + (f": {one.reason}" if one.reason else ""),
            "steps": f"{one.steps_done} of {one.steps_asked or '?'}",
            "last step": f"{_age(one.idle_seconds)} ago",
            "size": _size(details.bytes),
        }
    )
    _section("Settings that differ from the defaults", details.changed)
    _section("Where it began", details.environment)
    _section("Last metrics", details.metrics)
    if details.checkpoints:
        typer.echo("Checkpoints")
        rows = [
            [one.name, "damaged" if one.step is None else one.step, _size(one.bytes)]
            for one in details.checkpoints
        ]
        show.table(["folder", "step", "size"], rows, whole=1)


@runs_app.command("compare", epilog=epilog("Examples:\n  memograd runs compare one two --last 10"))
def compare(
    runs: Runs,
    folder: Folder = RUNS,
    last: Annotated[
        int, typer.Option(metavar="K", min=1, help="Metrics are means over the last K steps.")
    ] = 10,
    json: given.AsJson = False,
) -> None:
    """Show the settings in which runs differ, and their last metrics, side by side."""
    from memograd.evaluation.run_summaries import compare_runs

    labelled = _labelled(runs, folder)
    compared = compare_runs(list(labelled.values()), last)
    if json:
        show.as_json({"runs": list(labelled), "last": last, **compared})
        return
    for title, name in (
        ("Settings that differ", "settings"),
        (f"Metrics, mean of the last {last} steps", "metrics"),
    ):
        typer.echo(title if compared[name] else f"{title}: none")
        if compared[name]:
            rows = [[key, *map(_number, values)] for key, values in compared[name].items()]
            show.table(["", *labelled], rows, whole=1)


@runs_app.command(
    "plot", epilog=epilog("Examples:\n  memograd runs plot seed-0 seed-1 --out seeds.png")
)
def plot(
    runs: Runs,
    folder: Folder = RUNS,
    out: Annotated[Path, typer.Option(metavar="PNG", help="The picture to write.")] = Path(
        "runs.png"
    ),
) -> None:
    """Draw the reward curves of runs into one picture."""
    from memograd.evaluation.plots import plot_comparison
    from memograd.grpo.run_folder import RunFolder

    labelled = _labelled(runs, folder)
    metrics = {label: RunFolder.open(path).metrics_path for label, path in labelled.items()}
    plot_comparison(metrics, out)
    typer.echo(f"The curves are in {out}")


@app.command(
    epilog=epilog(
        "Examples:\n  memograd rollouts runs/my-run\n"
        "  memograd rollouts runs/my-run --step 10 --group 0",
        "Scored tokens are coloured by their probability when they were sampled: green from 0.5,\n"
        "red under 0.1. What the model did not choose is dimmed. Without colour it stands in\n"
        "⟦ ⟧, and a token of probability under 0.1 is followed by it: token{0.03}.",
    )
)
def rollouts(
    run: Run,
    step: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="A logged step; else the last one.")
    ] = None,
    group: Annotated[
        int | None, typer.Option(metavar="I", min=0, help="One group, from 0; else all.")
    ] = None,
    folder: Folder = RUNS,
    json: given.AsJson = False,
) -> None:
    """Show prompts, answers, rewards, advantages and which tokens were trained on."""
    from memograd.evaluation.run_log import logged_steps, read_rollouts
    from memograd.grpo.run_folder import RunFolder

    path = _path(run, folder)
    RunFolder.open(path)
    steps = logged_steps(path)
    records = read_rollouts(path, step or (steps[-1] if steps else 1))
    if group is not None:
        records = [record for record in records if record["group"] == group]
        if not records:
            raise BadInput(f"{path} has no group {group} in this step; count them from 0.")
    if json:
        show.as_json(records)
        return
    for record in records:
        _print_group(record)


def _settings_of(name: str) -> type[Settings] | None:
    """What a run of a task, or of a warm start, could be told; the first runs were of memory-qa."""
    from memograd.tasks.registry import TASKS
    from memograd.warm_start.settings import DpoSettings, RewardModelSettings, SftSettings

    for kind in (SftSettings, DpoSettings, RewardModelSettings):
        if kind.recipe == name:
            return kind
    task = TASKS.get(name or "memory-qa")
    return None if task is None else task.settings


def _print_group(record: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(markup=False, highlight=False, soft_wrap=True)
    coloured = console.color_system is not None and not console.no_color
    console.print(
        Text(show.plain(f"step {record['step']}, group {record['group']}: {record['id']}"))
    )
    if isinstance(record["prompt"], str):
        console.print(Text(show.plain(record["prompt"]), style="dim"))
    else:
        for message in record["prompt"]:
            said = f"[{message['role']}] {message['content']}"
            console.print(Text(show.plain(said), style="dim"))
    for name, value in record["columns"].items():
        console.print(Text(show.plain(f"{name}: {value}")))
    for place, rollout in enumerate(record["rollouts"]):
        rewards = "  ".join(f"{name} {_number(v)}" for name, v in rollout["rewards"].items())
        head = (
            f"{place}: reward {_number(rollout['reward'])}  advantage "
            f"{_number(rollout['advantage'])}  {rewards}  ({rollout['stop_reason']})"
        )
        console.print(Text(show.plain(head), style="bold"))
        for row in rollout["rows"]:
            console.print(_tokens(row, coloured))
    console.print()


def _tokens(row: dict[str, Any], coloured: bool) -> Text:
    """The tokens of a row, by colour or by signs; line breaks become ⏎ so that a row is a line."""
    from rich.text import Text

    from memograd.evaluation.run_log import spans

    text, inside = Text("   "), False
    for span in spans(row):
        shown = show.plain(span.text.replace("\n", "⏎"))
        if coloured:
            text.append(shown, style=STYLES[span.kind])
            continue
        observed = span.kind == "observation"
        if observed != inside:
            text.append("⟦" if observed else "⟧")
            inside = observed
        text.append(shown + _doubt(span))
    text.append("⟧" if inside else "")
    return text


def _doubt(span: TokenText) -> str:
    return f"{{{span.probability:.2g}}}" if span.kind == "unlikely" else ""


def _path(run: str, folder: Path) -> Path:
    """The folder that is meant: the path as it stands, or a name in `folder`."""
    given_path = Path(run)
    return given_path if given_path.is_dir() or len(given_path.parts) > 1 else folder / run


def _labelled(runs: list[str], folder: Path) -> dict[str, Path]:
    """Runs by their names, or by their paths where two have the same name."""
    paths = list(dict.fromkeys(_path(run, folder) for run in runs))
    names = [path.name for path in paths]
    return {str(path) if names.count(path.name) > 1 else path.name: path for path in paths}


def _section(title: str, values: dict[str, Any]) -> None:
    if values:
        typer.echo(title)
        show.fields(values)


def _plain(summary: Any) -> Any:
    """A dataclass as JSON takes it."""
    from memograd.grpo.run_folder import plain

    return plain(asdict(summary))


def _short_model(model: str | None) -> str:
    return Path(model).name if model else "-"


def _number(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _age(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
