"""A database that can be asked and never changed: `Sandbox.run` is the door to the room.

Statements run in another process, which is ended if it must be. Here nothing of them is parsed or
run; a statement costs its caller the time of the answer and the memory of the result.

Invariant: no exception leaves `Sandbox.run` for anything that a statement does.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from urllib.parse import quote

from memograd.errors import BadInput
from memograd.tasks.sql.sandbox.processes import Ended, Processes
from memograd.tasks.sql.sandbox.result import IS_VIRTUAL, Result, SqlLimits, Value, decode

_PROCESSES = Processes()


@dataclass(frozen=True)
class Table:
    """A table or view, with its columns and their declared types."""

    name: str
    columns: tuple[tuple[str, str], ...]


class Sandbox:
    """One SQLite file, to be asked and never changed. Safe to share between threads."""

    def __init__(self, database: Path, limits: SqlLimits | None = None) -> None:
        """Look at the file and its tables.

        Raises:
            BadInput: it is not there, no SQLite database, has no table, or has writes that are not
                in the file itself yet (a write-ahead log), which an immutable reader would miss.
        """
        self.database = database.resolve()
        self.limits = limits or SqlLimits()
        self.tables = self._tables()

    def run(self, sql: str) -> Result:
        """The result of one SELECT; what is wrong with it, or stopped it, is in `error`.

        Raises:
            MemogradError: no process can be started to run it in.
        """
        if len(sql) > self.limits.statement_characters:
            return Result(
                error=f"the statement has {len(sql)} characters; at most "
                f"{self.limits.statement_characters} are allowed"
            )
        asked = {"database": str(self.database), "sql": sql, "limits": asdict(self.limits)}
        for again in (True, False):
            try:
                return decode(_PROCESSES.ask(asked, self.limits.wall_seconds))
            except Ended as ended:
                if ended.by_clock:
                    return Result(error=self.limits.stopped_by_clock())
                if not again:  # somebody else may have ended it the first time
                    return Result(error=f"the process that ran the query {ended}")
        raise AssertionError

    def _connect(self) -> sqlite3.Connection:
        address = f"file:{quote(str(self.database))}?mode=ro&immutable=1"
        return sqlite3.connect(address, uri=True, isolation_level=None)

    def _tables(self) -> tuple[Table, ...]:
        if not self.database.is_file():
            raise BadInput(f"There is no database {self.database}; give a SQLite file with --db.")
        log = self.database.with_name(self.database.name + "-wal")
        if log.exists() and log.stat().st_size:
            raise BadInput(
                f"{self.database} has writes in {log.name} that are not in the file yet; close the "
                "program that writes to it, or run PRAGMA wal_checkpoint(TRUNCATE) in it."
            )
        listing = (
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            f"AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND NOT ({IS_VIRTUAL}) ORDER BY rowid"
        )
        try:
            with closing(self._connect()) as connection:
                names = [name for (name,) in connection.execute(listing).fetchall()]
                tables = tuple(Table(name, self._columns(connection, name)) for name in names)
        except sqlite3.Error as error:
            raise BadInput(f"{self.database} cannot be read as a SQLite file ({error}).") from error
        if not tables:
            raise BadInput(f"{self.database} has no tables; nothing can be asked of it.")
        return tables

    def _columns(self, connection: sqlite3.Connection, table: str) -> tuple[tuple[str, str], ...]:
        asked = "SELECT name, type FROM pragma_table_info(?)"
        try:
            found = connection.execute(asked, (table,)).fetchall()
        except sqlite3.OperationalError as error:  # a view of what is no longer there
            raise BadInput(
                f"In {self.database}, {table} cannot be read ({error}); mend or drop that view."
            ) from error
        return tuple((str(column), str(kind).lower()) for column, kind in found)


@lru_cache(maxsize=8)
def open_sandbox(database: str) -> Sandbox:
    """The sandbox of a database, with the default limits, opened once."""
    return Sandbox(Path(database))


class _Kept:
    """Results of statements, the latest used, `MOST_KEPT` characters in all. Safe with threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._results: OrderedDict[tuple[str, str], tuple[Result, int]] = OrderedDict()
        self._characters = 0

    def get(self, asked: tuple[str, str]) -> Result | None:
        with self._lock:
            if asked not in self._results:
                return None
            self._results.move_to_end(asked)
            return self._results[asked][0]

    def put(self, asked: tuple[str, str], result: Result) -> None:
        size = sum(map(len, asked)) + sum(_room(value) for row in result.rows for value in row)
        with self._lock:
            if asked in self._results:
                return
            self._results[asked] = (result, size)
            self._characters += size
            while self._characters > MOST_KEPT:
                self._characters -= self._results.popitem(last=False)[1][1]


MOST_KEPT = 16_000_000
"""Characters of results that are kept, 64 MB at the most: a policy may write a thousand statements
that each give a million characters."""
_CELL = 16
"""What a cell takes besides its characters, in characters."""
_KEPT = _Kept()


def _room(value: Value) -> int:
    return _CELL + (len(value) if isinstance(value, str | bytes) else 0)


def run_cached(database: str, sql: str) -> Result:
    """What `sql` gives in `database`; kept for a while, as the database is taken as immutable."""
    result = _KEPT.get((database, sql))
    if result is None:
        result = open_sandbox(database).run(sql)
        _KEPT.put((database, sql), result)
    return result
