"""How far a statement may go, and what it gave: the two values that cross between the processes.

Invariant: what `encode` writes, `decode` reads back equal, type by type (an integer stays one,
bytes stay bytes).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

IS_VIRTUAL = "type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%'"
"""Which tables of `sqlite_master` are of an extension: they cannot be read in the sandbox."""

Value = str | int | float | bytes | None
"""What a cell of a result holds."""


@dataclass(frozen=True)
class SqlLimits:
    """How far one statement may go.

    `steps` are instructions of SQLite's virtual machine, `parts` what the statement consists of
    once CTEs and views stand for what they mean. `seconds` of computing and `wall_seconds` of
    waiting are the last resort: all others are the same on every machine.
    """

    steps: int = 5_000_000
    parts: int = 10_000
    seconds: float = 1.2
    wall_seconds: float = 2.2
    rows: int = 500
    value_bytes: int = 100_000
    result_bytes: int = 1_000_000
    statement_characters: int = 4_000

    def stopped_by_clock(self) -> str:
        """What is said of a statement that no count stopped in time."""
        return (
            f"the query was stopped by the clock, after {self.seconds:g} seconds of computing or "
            f"{self.wall_seconds:g} of waiting (the last resort, which depends on the machine); "
            "make it simpler or more selective"
        )


@dataclass(frozen=True)
class Result:
    """What a statement gave: names of columns and rows, or an `error` in words.

    `cut`: there were more rows than the limits let through. `steps`: how far the statement went, in
    SQLite's steps, to the hundred.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Value, ...], ...] = ()
    cut: bool = False
    error: str | None = None
    steps: int = field(default=0, compare=False)


def encode(result: Result) -> bytes:
    """A result as JSON; bytes become `{"hex": "00ff"}`."""
    shown = json.dumps(asdict(result), ensure_ascii=False, default=_bytes_as_hex)
    return shown.encode("utf-8", "surrogatepass")


def decode(text: bytes) -> Result:
    """The result that `encode` wrote."""
    found = json.loads(text.decode("utf-8", "surrogatepass"), object_hook=_hex_as_bytes)
    assert isinstance(found, dict)
    rows = tuple(tuple(row) for row in found["rows"])
    return Result(tuple(found["columns"]), rows, found["cut"], found["error"], found["steps"])


def _bytes_as_hex(value: bytes) -> dict[str, str]:
    return {"hex": value.hex()}


def _hex_as_bytes(found: dict[str, Any]) -> dict[str, Any] | bytes:
    return bytes.fromhex(found["hex"]) if found.keys() == {"hex"} else found
