"""SQL that a model wrote, run where it can do no harm: read one database, briefly, and a little.

Five fences, each enough against what the others may miss:

1. sqlglot must read the text as exactly one query (SELECT, with CTEs and set operations if wanted).
2. The connection is read-only and immutable (`mode=ro&immutable=1`): no lock, no journal file.
3. An authorizer allows SELECT, reading tables of the database, and the functions in `FUNCTIONS`;
   PRAGMA, ATTACH, recursion, writing, the schema table and every other function are refused.
4. SQLite's own limits bound the size of any value, of a pattern, of the statement.
5. A progress handler stops a statement after a number of SQLite's steps (the same on every
   machine, so a run can be repeated to the bit) and, as a last resort, after some seconds. No
   function may take long within one step: `trim` with a list of characters is one of our own.

What goes wrong is a text in `Result.error`, for the model to read; no exception leaves `run`.

Invariant: whatever is run, the file's bytes stay the same, and no more than `SqlLimits.steps` of
SQLite's steps are made. Imports sqlglot when a statement is run.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from urllib.parse import quote

from memograd.errors import BadInput

Value = str | int | float | bytes | None
"""What a cell of a result holds."""

FUNCTIONS = frozenset(
    (
        *("abs", "avg", "ceil", "ceiling", "coalesce", "count", "date", "datetime", "floor"),
        *("glob", "group_concat", "ifnull", "iif", "instr", "julianday", "length", "like"),
        *("lower", "ltrim", "max", "min", "nullif", "replace", "round", "sign", "strftime"),
        *("row_number", "rank", "dense_rank", "rtrim", "substr", "substring", "sum", "time"),
        *("total", "trim", "typeof", "unixepoch", "upper"),
    )
)
"""Functions that a statement may call: nothing random, nothing that grows a value at will."""

_STEPS_BETWEEN_LOOKS = 100
"""One step may take milliseconds (a search in a long text), so looks are frequent."""
_TRIMMED = 200
"""Characters that `trim` takes away, at most: SQLite compares each with each of the text's, and
nothing can stop it within that step."""
_DEEPEST = 40
"""Brackets within brackets; deeper ones exhaust parsers, and nobody writes them."""


@dataclass(frozen=True)
class SqlLimits:
    """How far one statement may go; `steps` are instructions of SQLite's virtual machine."""

    steps: int = 5_000_000
    seconds: float = 2.0
    rows: int = 500
    value_bytes: int = 100_000
    result_bytes: int = 1_000_000
    statement_characters: int = 4_000


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
        self._names = {table.name.lower() for table in self.tables}

    def run(self, sql: str) -> Result:
        """The result of one SELECT; what is wrong with it, or stopped it, is in `error`."""
        problem = self._not_one_query(sql)
        if problem is not None:
            return Result(error=problem)
        with closing(self._connect()) as connection:
            return _Statement(connection, self.limits, self._names).run(sql)

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
            "AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY rowid"
        )
        columns = "SELECT name, type FROM pragma_table_info(?)"
        try:
            with closing(self._connect()) as connection:
                tables = tuple(
                    Table(
                        name,
                        tuple(
                            (str(column), str(kind).lower())
                            for column, kind in connection.execute(columns, (name,))
                        ),
                    )
                    for (name,) in connection.execute(listing).fetchall()
                )
        except sqlite3.Error as error:
            raise BadInput(f"{self.database} cannot be read as a SQLite file ({error}).") from error
        if not tables:
            raise BadInput(f"{self.database} has no tables; nothing can be asked of it.")
        return tables

    def _not_one_query(self, sql: str) -> str | None:
        """Why the text is not one query that may be run; None if it is."""
        if len(sql) > self.limits.statement_characters:
            return (
                f"the statement has {len(sql)} characters; at most "
                f"{self.limits.statement_characters} are allowed"
            )
        return _why_not_one_query(sql)


def _no_fallback_note(record: logging.LogRecord) -> bool:
    """Without sqlglot's note that it reads a statement as a mere command: the model hears of it."""
    return "Falling back to parsing as a 'Command'" not in record.getMessage()


@lru_cache(maxsize=1024)
def _why_not_one_query(sql: str) -> str | None:
    from sqlglot import exp, parse
    from sqlglot.errors import SqlglotError

    logging.getLogger("sqlglot").addFilter(_no_fallback_note)
    if "\0" in sql:
        return "the statement holds a character that is not allowed"
    depth = deepest = 0
    for character in sql:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    if deepest > _DEEPEST:
        return "the brackets are nested too deeply"
    # What is no query at all is refused by its first word, in words that help.
    first = sql.lstrip().split(None, 1)[:1]
    if first and first[0].isalpha() and first[0].upper() not in ("SELECT", "WITH", "VALUES"):
        return f"only SELECT is allowed, not {first[0].upper()[:20]}"
    try:
        found = [one for one in parse(sql, dialect="sqlite") if one is not None]
    except RecursionError:
        return "the statement is nested too deeply"
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{"description": "it cannot be read"}]
        return f"this is not valid SQL: {details[0].get('description') or 'it cannot be read'}"
    found = [one for one in found if not isinstance(one, exp.Semicolon)]
    if len(found) != 1:
        return f"exactly one SELECT is allowed, and these are {len(found)} statements"
    (statement,) = found
    if not isinstance(statement, exp.Query | exp.Values):
        return f"only SELECT is allowed, not {statement.key.upper()}"
    if statement.find(exp.Insert, exp.Update, exp.Delete, exp.Create, exp.Drop, exp.Command):
        return "only SELECT is allowed, within WITH too"
    if any(part.args.get("recursive") for part in statement.find_all(exp.With)):
        return "recursive queries are not allowed"
    return None


@lru_cache(maxsize=1024)
def _names_of_with(sql: str) -> frozenset[str]:
    from sqlglot import exp, parse_one

    found = parse_one(sql, dialect="sqlite").find_all(exp.CTE)
    names = frozenset(one.alias.lower() for one in found)
    return frozenset(name for name in names if not name.startswith(("sqlite_", "pragma_")))


def _as_text(value: str | int | float | bytes) -> str:
    """The value as SQLite casts it to text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float):  # each version writes the last of 15 digits in its own way
        with closing(sqlite3.connect(":memory:")) as scratch:
            [(text,)] = scratch.execute("SELECT CAST(? AS TEXT)", (value,))
        return str(text)
    return str(value)


class _Statement:
    """One statement on its own connection, with what the authorizer and the clock have to say."""

    def __init__(self, connection: sqlite3.Connection, limits: SqlLimits, tables: set[str]) -> None:
        self._connection = connection
        self._limits = limits
        self._tables = tables
        self._refused: str | None = None
        self._stopped: str | None = None
        self._steps = 0
        self._sql = ""
        self._ends = time.monotonic() + limits.seconds
        for setting in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON"):
            connection.execute(f"PRAGMA {setting}")
        for category, limit in (
            (sqlite3.SQLITE_LIMIT_LENGTH, limits.value_bytes),
            (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 4 * limits.statement_characters),
            (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200),
            (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100),
            (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 20),
            (sqlite3.SQLITE_LIMIT_COLUMN, 200),
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
            (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
        ):
            connection.setlimit(category, limit)
        for name, strip in (("trim", str.strip), ("ltrim", str.lstrip), ("rtrim", str.rstrip)):
            trimmed = partial(self._trimmed, strip)
            connection.create_function(name, 2, trimmed, deterministic=True)
        connection.set_authorizer(self._allow)
        connection.set_progress_handler(self._look, _STEPS_BETWEEN_LOOKS)

    def run(self, sql: str) -> Result:
        self._sql = sql
        try:
            cursor = self._connection.execute(sql)
            rows, cut = self._rows(cursor)
        except (sqlite3.Error, ValueError, OverflowError, MemoryError) as error:
            said = self._refused or self._stopped or str(error) or type(error).__name__
            return Result(error=said, steps=self._steps)
        columns = tuple(str(described[0]) for described in cursor.description or ())
        return Result(columns, rows, cut, steps=self._steps)

    def _rows(self, cursor: sqlite3.Cursor) -> tuple[tuple[tuple[Value, ...], ...], bool]:
        rows: list[tuple[Value, ...]] = []
        size = 0
        for row in cursor:
            size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
            if len(rows) == self._limits.rows or size > self._limits.result_bytes:
                return tuple(rows), True
            rows.append(row)
        return tuple(rows), False

    def _allow(
        self, action: int, first: str | None, second: str | None, *_where: str | None
    ) -> int:
        if action == sqlite3.SQLITE_SELECT:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            # A read of "" is a mere count of rows; names in FROM (...) are not tables of anybody.
            if (first or "").lower() in self._tables or not first:
                return sqlite3.SQLITE_OK
            # So is a read of no column, which names a WITH where none of its columns is wanted.
            if not second and first.lower() in _names_of_with(self._sql):
                return sqlite3.SQLITE_OK
            return self._refuse(f"the table {first} may not be read")
        if action == sqlite3.SQLITE_FUNCTION:
            if (second or "").lower() in FUNCTIONS:
                return sqlite3.SQLITE_OK
            return self._refuse(f"the function {second} is not allowed")
        if action == sqlite3.SQLITE_RECURSIVE:
            return self._refuse("recursive queries are not allowed")
        return self._refuse("only reading is allowed")

    def _trimmed(self, strip: Callable[[str, str], str], value: Value, some: Value) -> str | None:
        """SQLite's own `trim(value, some)`, which is Python's, for a short list of characters."""
        if value is None or some is None:
            return None
        characters = _as_text(some)
        if len(characters) > _TRIMMED:
            self._refused = f"trim takes away at most {_TRIMMED} different characters"
            raise ValueError(self._refused)
        return strip(_as_text(value), characters)

    def _refuse(self, why: str) -> int:
        self._refused = self._refused or why
        return sqlite3.SQLITE_DENY

    def _look(self) -> bool:
        self._steps += _STEPS_BETWEEN_LOOKS
        if self._steps >= self._limits.steps:
            self._stopped = "the query takes too long; make it simpler or more selective"
        elif time.monotonic() > self._ends:
            self._stopped = f"the query took longer than {self._limits.seconds:g} seconds"
        return self._stopped is not None


@lru_cache(maxsize=8)
def open_sandbox(database: str) -> Sandbox:
    """The sandbox of a database, with the default limits, opened once."""
    return Sandbox(Path(database))


@lru_cache(maxsize=512)
def run_cached(database: str, sql: str) -> Result:
    """What `sql` gives in `database`; asked once, since the database is taken as immutable."""
    return open_sandbox(database).run(sql)
