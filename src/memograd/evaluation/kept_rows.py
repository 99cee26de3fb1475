"""Rows that cost a model's work, kept by a key in a file: verdicts, answers, items.

A JSON object a line, appended under a lock, so that several processes may write one file. A last
line that a crash cut off is dropped when the next one is written; other damage is said.

Invariant: what was put is in the file, whole, before `put` returns, and is never made again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from memograd.errors import BadInput, MemogradError

Row = Mapping[str, Any]


class KeptRows:
    """The rows in a file, or in memory alone where `path` is None.

    what: the rows are, in messages. again: what comes of taking a line out. whole: whether a row
    holds what it must; what it raises of TypeError and KeyError means that it does not. key: the
    field that holds the key. Raises BadInput when the file cannot be read or a line is damaged.
    """

    def __init__(
        self,
        path: Path | None,
        what: str,
        again: str,
        whole: Callable[[Row], bool],
        key: str = "key",
    ) -> None:
        self.path, self._what, self._again, self._key = path, what, again, key
        self._rows: dict[str, Row] = {} if path is None else dict(self._read(path, whole))

    def get(self, key: str) -> Row | None:
        """What was put under the key, or None."""
        return self._rows.get(key)

    def put(self, key: str, row: Row) -> None:
        """Keep the row, on disk before this returns; MemogradError where it cannot be written."""
        self._rows[key] = row
        if self.path is None:
            return
        line = json.dumps({self._key: key, **row}, ensure_ascii=False) + "\n"
        try:
            _append(self.path, line.encode("utf-8"))
        except OSError as error:
            raise MemogradError(
                f"The {self._what} cannot be kept in {self.path}: {error}."
            ) from error

    def _read(self, path: Path, whole: Callable[[Row], bool]) -> Iterator[tuple[str, Row]]:
        try:
            lines = path.read_bytes().split(b"\n") if path.exists() else []
        except OSError as error:
            raise BadInput(f"The {self._what} {path} cannot be read: {error}.") from error
        for number, line in enumerate(lines[:-1], start=1):  # behind the last line break: cut off
            try:
                row = json.loads(line)
                key = row.pop(self._key)
                fits = whole(row)
            except (ValueError, KeyError, TypeError, AttributeError):
                fits = False
            if not fits:
                raise BadInput(
                    f"Line {number} of the {self._what} {path} is damaged: remove it to have"
                    f" {self._again}."
                )
            yield key, row


def _append(path: Path, line: bytes) -> None:
    """Write a whole line to the end, under a lock; what a crash cut off there before is dropped."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"), open(path, "a+b") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        if end and file.read(1) != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
        file.write(line)
