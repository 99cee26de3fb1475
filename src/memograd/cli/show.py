"""How results look: JSON exactly as Python returns it, or tables for people.

Everything remembered was written by others, so it is printed without markup, and control characters
become visible signs: no memory can move the cursor or colour the terminal. Tables measure Chinese
characters as two columns wide. rich arrives with the first table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.progress import TaskID

LEAST_WIDTH = 100  # columns where no terminal says how many it has

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def as_json(result: Any) -> None:
    """Print `result` as JSON, readable in any script; what could move the cursor is escaped."""
    text = json.dumps(result, ensure_ascii=False, indent=2)
    typer.echo(_CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def plain(text: object) -> str:
    """The text with control characters (and those that turn the writing direction) made visible."""
    return _CONTROL.sub("\ufffd", str(text))


def day(moment: str | None) -> str:
    """`2024-05-07` of an ISO 8601 moment."""
    return (moment or "")[:10]


def minute(moment: str | None) -> str:
    """`2024-05-07 18:30` of an ISO 8601 moment."""
    return (moment or "")[:16].replace("T", " ")


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], *, whole: int = 0) -> None:
    """A table of texts; the columns before `whole` are never broken into lines."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    for place, heading in enumerate(headings):
        shown.add_column(heading, no_wrap=place < whole, overflow="fold")
    for row in rows:
        shown.add_row(*(Text(plain(cell)) for cell in row))
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, LEAST_WIDTH))
    console.print(shown)


def items(found: Sequence[Mapping[str, Any]], nothing: str = "Nothing is remembered here.") -> None:
    """Items as `list` and `search` show them, each above its id; scores where there are some.

    nothing: what is said where there is none.
    """
    if not found:
        typer.echo(nothing)
        return
    scored = "score" in found[0]
    headings = [*(["score"] if scored else []), "since", "kind", "memory and id"]
    rows = [
        [
            *([f"{item['score']:.3f}"] if scored else []),
            day(item["valid_from"] or item["created_at"]),
            ", ".join([item["kind"], *item["categories"]]),
            f"{item['memory']}\n{item['id']}",
        ]
        for item in found
    ]
    table(headings, rows, whole=2 if scored else 1)


def reasons(found: Sequence[Mapping[str, Any]]) -> None:
    """Why each of the hits was found, a line each."""
    for item in found:
        said = item.get("memory") or item.get("text")
        typer.echo(f"  {plain(said)}\n    {plain(item['explain']['sentence'])}")


def turns(found: Sequence[Mapping[str, Any]]) -> None:
    """Raw turns: who said what, when."""
    rows = [[minute(turn["time"]), turn["speaker"], turn["text"]] for turn in found]
    table(["said", "by", "words"], rows, whole=1)


def operations(done: Sequence[Mapping[str, Any]]) -> None:
    """What changed, and why."""
    if not done:
        typer.echo("There was nothing to remember in it.")
        return
    rows = [[one["event"], one["memory"], one["reason"]] for one in done]
    table(["did", "memory", "because"], rows, whole=1)


def history(lines: Sequence[Mapping[str, Any]]) -> None:
    """The life of one item."""
    rows = [
        [
            minute(line["updated_at"]),
            line["event"],
            line["actor"],
            "(erased)" if line["erased"] else line["new_memory"] or line["old_memory"] or "",
            line["reason"] or "",
        ]
        for line in lines
    ]
    table(["when", "did", "by", "memory", "because"], rows, whole=2)


def fields(values: Mapping[str, Any]) -> None:
    """One thing: a line for each of its fields that says something."""
    rows = []
    for key, value in values.items():
        if value is None or value == []:
            continue
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
        rows.append([key, text])
    table(["field", "value"], rows, whole=1)


class Transfer:
    """How far a download is, as one moving line on a terminal and as nothing elsewhere.

    Use it as a context manager, and call it with a file's name, the bytes done and all of them.
    """

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Transfer:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def __call__(self, name: str, done: int, total: int | None) -> None:
        """Show that `done` bytes of `total` (None if unknown) are there."""
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name)
        self._bars.update(self._tasks[name], completed=done, total=total)
