"""Notices that a resumed run would be trained on other data than it began with.

`data.json` in the run folder holds a SHA-256 of every scenario (id, prompt, columns) in order,
written when training begins. Invariant: scenarios that differ anywhere, or come in another order,
are refused on resume with the first rows that differ; equal ones are never refused. Proved in
`tests/grpo/test_data_fingerprint.py`. May import errors, rollout, run_folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from memograd.errors import BadInput
from memograd.grpo.plain_json import plain_json
from memograd.grpo.run_folder import RunFolder
from memograd.rollout.types import Scenario

SHOWN = 3
"""How many rows that differ are named."""


def fingerprint(scenario: Scenario) -> str:
    """SHA-256 (hexadecimal) of one scenario's id, prompt and columns."""
    content = plain_json([scenario.id, scenario.prompt, dict(scenario.columns)])
    return hashlib.sha256(content.encode()).hexdigest()


def check_data(run: RunFolder, scenarios: Sequence[Scenario]) -> None:
    """Write the fingerprint of `scenarios` into a new run, or compare it with a resumed one's.

    Raises:
        BadInput: they are not the scenarios that the run began with.
    """
    now = [(scenario.id, fingerprint(scenario)) for scenario in scenarios]
    stored = run.read_data()
    if stored is None:
        digest = hashlib.sha256("".join(row for _, row in now).encode()).hexdigest()
        run.write_data({"sha256": digest, "scenarios": now})
        return
    began = [(str(name), str(row)) for name, row in stored["scenarios"]]
    if began != now:
        raise BadInput(
            f"The data changed since {run.path} began ({'; '.join(_differences(began, now))}): "
            "resume with the data as it was, or begin a new run with out=FOLDER."
        )


def _differences(began: list[tuple[str, str]], now: list[tuple[str, str]]) -> Iterator[str]:
    """What differs, in words, rows counted from 1."""
    if len(began) != len(now):
        yield f"{len(now)} rows now, {len(began)} then"
    differing = [
        (row, old[0], new[0])
        for row, (old, new) in enumerate(zip(began, now, strict=False), start=1)
        if old != new
    ]
    for row, old, new in differing[:SHOWN]:
        if old == new:
            yield f"row {row}, {new}, has another prompt or other columns"
        else:
            yield f"row {row} is {new} and was {old}"
    if len(differing) > SHOWN:
        yield f"{len(differing) - SHOWN} more"
