"""Progress as a person sees it: a bar in a terminal, a line a step anywhere else.

Display only: nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

console: Final = Console(markup=False, highlight=False, soft_wrap=True)
"""Where runs say what they do; of several processes that train together, the first one alone does
(`joined_ranks`)."""


def describe_step(metrics: dict[str, Any]) -> str:
    """Reward, loss, KL and speed of one step, in one short line."""
    seconds = sum(metrics["seconds"].values())
    kl = "-" if metrics["kl"] is None else f"{metrics['kl']:.3f}"
    return (
        f"reward {metrics['reward_mean']:.3f}  loss {metrics['loss']:+.4f}  KL {kl}  "
        f"{metrics['tokens'] / seconds:.0f} tok/s"
    )


@contextmanager
def training_progress(
    console: Console,
    *,
    total: int,
    describe: Callable[[dict[str, Any]], str],
) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yields what the trainer calls after every step; `describe` makes a short line of it."""
    if not console.is_terminal:

        def print_step(metrics: dict[str, Any]) -> None:
            console.print(f"step {metrics['step']}/{total}  {describe(metrics)}")

        yield print_step
        return
    with _bar(console) as progress:
        task = progress.add_task("training", total=total, note="")

        def advance(metrics: dict[str, Any]) -> None:
            progress.update(task, completed=metrics["step"], note=describe(metrics))

        yield advance


@contextmanager
def counting_progress(
    label: str, *, total: int, console: Console = console
) -> Iterator[Callable[[int], None]]:
    """Yields what is called with the number of things done so far."""
    if not console.is_terminal:
        console.print(f"{label} ({total})")
        yield lambda done: None
        return
    with _bar(console) as progress:
        task = progress.add_task(label, total=total, note="")
        yield lambda done: progress.update(task, completed=done)


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
        console=console,
    )
