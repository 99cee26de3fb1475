"""`memograd doctor`: is everything there that the settings ask for, and does it work?

Over `memograd.memory.doctor`, which looks and changes nothing.
"""

from __future__ import annotations

from dataclasses import asdict

import typer

from memograd.cli import given, show
from memograd.cli.help import epilog

app = typer.Typer()

SIGNS = {True: "fine", False: "WRONG", None: "absent"}


@app.command(
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
