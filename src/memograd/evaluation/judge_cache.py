"""Verdicts on disk, so that nothing is judged (and paid for) twice: one JSON object a line.

A row holds at least `correct` (true or false) and `reason` (a text). It is found by a hash of all
that went into it. Several processes may write one file: a line is appended under a lock, whole. A
last line that a crash cut off is dropped when the next one is written; other damage is said.

Invariant: what was put is found again, by this process and the next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memograd.errors import BadInput, MemogradError


class JudgeCache:
    """The verdicts in a file, or in memory alone where `path` is None.

    Raises BadInput when the file cannot be read or a line of it is damaged.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._rows: dict[str, Mapping[str, Any]] = _read(path) if path is not None else {}

    def get(self, key: str) -> Mapping[str, Any] | None:
        """What was put under the key, or None."""
        return self._rows.get(key)

    def put(self, key: str, row: Mapping[str, Any]) -> None:
        """Keep the row, on disk before this returns; MemogradError where it cannot be written."""
        self._rows[key] = row
        if self.path is not None:
            line = json.dumps({"key": key, **row}, ensure_ascii=False) + "\n"
            try:
                append_line(self.path, line.encode("utf-8"))
            except OSError as error:
                raise MemogradError(
                    f"The judge's verdicts cannot be kept in {self.path}: {error}."
                ) from error


def _read(path: Path) -> dict[str, Mapping[str, Any]]:
    try:
        lines = path.read_bytes().split(b"\n") if path.exists() else []
    except OSError as error:
        raise BadInput(f"The judge's verdicts {path} cannot be read: {error}.") from error
    rows: dict[str, Mapping[str, Any]] = {}
    for number, line in enumerate(lines[:-1], start=1):  # behind the last line break: cut off
        try:
            row = json.loads(line)
            whole = isinstance(row["correct"], bool) and isinstance(row["reason"], str)
            rows[row.pop("key")] = row
        except (ValueError, KeyError, TypeError, AttributeError):
            whole = False
        if not whole:
            raise BadInput(
                f"Line {number} of the judge's verdicts {path} is damaged; remove it to have that "
                "answer judged again."
            )
    return rows


def append_line(path: Path, line: bytes) -> None:
    """Write a whole line to the end, under a lock; what a crash cut off there before is dropped."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"), open(path, "a+b") as file:
        file.seek(0)
        whole = file.read()
        file.truncate(whole.rfind(b"\n") + 1)
        file.write(line)
