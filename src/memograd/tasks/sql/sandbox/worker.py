"""The process in which statements are run: it reads one at a time, answers, and is easily ended.

    owner ── {"database", "sql", "limits"} ──> worker ── check, size, execute ──> result, or its end

A message is its length in four bytes and JSON. The worker sets its own limits before it reads the
first: no file may grow, so nothing can be written; memory and SQLite's heap are bounded; and each
statement has a timer of computing time that ends the process, in the middle of a step too. The
kernel keeps all of them (RLIMIT_AS binds on Linux). The worker ends when its owner has closed the
pipe or is gone.

A statement runs on a connection of its own (`execute`), with what the authorizer and the counts
have to say. That bounds what can be counted; how long a single step may take is bounded by the
timer and by the owner.

Invariants: after the limits are set, no file and no network is opened but the databases that are
named. Whatever text comes, `execute` gives a `Result`, changes no byte of the file and makes no
more than `SqlLimits.steps` of SQLite's steps. Imports nothing of memograd but this room, whatever
the packages around it would load.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import resource
import select
import signal
import sqlite3
import struct
import sys
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from memograd.tasks.sql.sandbox.check import TOO_DEEP, Refusal, folded, query_parts, read_query
from memograd.tasks.sql.sandbox.functions import (
    FUNCTIONS,
    JSON_TABLES,
    PATTERN_BYTES,
    Guards,
    searches_briefly,
)
from memograd.tasks.sql.sandbox.result import IS_VIRTUAL, Result, SqlLimits, Value, encode

HEADER = struct.Struct(">I")
READY = b"ready"
LAST = b"!"
"""Begins an answer after which the worker ends; others begin with `MORE`."""
MORE = b" "
GRACE_SECONDS = 0.4
"""Of computing, beyond what the statement may take before it is asked to stop."""

_ADDRESS_SPACE = 400_000_000
_HEAP_BYTES = 64_000_000
"""Of SQLite, which counts every byte: as good as a count of steps for what it builds and sorts."""
_RECURSION = 700
"""Calls within calls while a statement is read: fewer than Python's 1,000, so that whoever reads
again what was read here does not run out of them."""
_LOOK_SECONDS = 2.0
_READ, _WRITE = 0, 1


def main(owner: int) -> None:
    """Serve the process `owner` on standard input and output until it is gone."""
    read_query("SELECT 1")  # what is imported on first use
    gc.freeze()
    logging.disable()
    _limit_process()
    _send(READY)
    while (message := _receive(owner)) is not None:
        _send(_answer(json.loads(message)))


def _limit_process() -> None:
    for kind, limit in (
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        resource.setrlimit(kind, (limit, limit))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner's Ctrl-C; it decides about us
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    sys.setrecursionlimit(_RECURSION)
    with closing(sqlite3.connect(":memory:")) as connection:  # it holds for the process
        connection.execute(f"PRAGMA hard_heap_limit = {_HEAP_BYTES}")


def _answer(asked: dict[str, Any]) -> bytes:
    limits = SqlLimits(**asked["limits"])
    signal.setitimer(signal.ITIMER_PROF, limits.seconds + GRACE_SECONDS)
    try:
        return MORE + encode(execute(Path(asked["database"]), asked["sql"], limits))
    except MemoryError:
        pass
    except sqlite3.Error as error:  # the file itself: gone, or spoilt
        return MORE + encode(Result(error=str(error)))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return LAST + encode(Result(error=TOO_MUCH))


def _receive(owner: int) -> bytes | None:
    """The next message; None if the owner is gone."""
    while not select.select([_READ], [], [], _LOOK_SECONDS)[0]:
        # A fork of the owner may hold the other end of the pipe open when the owner is gone.
        if os.getppid() != owner:
            return None
    header = _read(HEADER.size)
    return None if header is None else _read(HEADER.unpack(header)[0])


def _read(size: int) -> bytes | None:
    found = b""
    while len(found) < size:
        piece = os.read(_READ, size - len(found))
        if not piece:
            return None
        found += piece
    return found


def _send(message: bytes) -> None:
    left = memoryview(HEADER.pack(len(message)) + message)
    while left:
        left = left[os.write(_WRITE, left) :]


_STEPS_BETWEEN_LOOKS = 100
"""One step may take milliseconds (a search in a long text), so looks are frequent."""
_PROGRAM = 50_000
"""Instructions of a statement's program, at most."""
TOO_MUCH = "the query needs too much memory; make it simpler or more selective"
_FUNCTION_FAILED = "user-defined function raised exception"
TOO_LONG = "the query takes too long; make it simpler or more selective"


def connect(database: Path) -> sqlite3.Connection:
    """A connection that reads the file and never locks or writes it."""
    address = f"file:{quote(str(database))}?mode=ro&immutable=1"
    return sqlite3.connect(address, uri=True, isolation_level=None)


def execute(database: Path, sql: str, limits: SqlLimits) -> Result:
    """The result of one SELECT; what is wrong with it, or stopped it, is in `error`.

    Raises:
        MemoryError: it takes more memory than there is, of SQLite or of the process.
    """
    try:
        query = read_query(sql)
        with closing(connect(database)) as connection:
            return _Statement(connection, limits, sql, query).run()
    except Refusal as refusal:
        return Result(error=str(refusal))
    except RecursionError:
        return Result(error=TOO_DEEP)


class _Statement:
    def __init__(
        self, connection: sqlite3.Connection, limits: SqlLimits, sql: str, query: exp.Expression
    ) -> None:
        self._connection = connection
        self._limits = limits
        self._sql = sql
        self._query = query
        self._refused: str | None = None
        self._stopped: str | None = None
        self._steps = 0
        self._ends = time.thread_time() + limits.seconds
        self._tables = tables_and_views(connection)
        self._virtual = virtual_tables(connection)
        self._ctes = frozenset(
            name
            for one in query.find_all(exp.CTE)
            if not (name := folded(one.alias)).startswith(("sqlite_", "pragma_"))
        )

    def run(self) -> Result:
        """What the statement gives.

        Raises:
            MemoryError: it takes more memory than there is.
            Refusal: it grows too large.
        """
        self._refuse_virtual_tables()
        parts = query_parts(self._query, self._view)
        if parts > self._limits.parts:
            raise Refusal(
                "the query grows too large: written out, with every WITH and view in its place, it "
                f"has more than {self._limits.parts} parts"
            )
        self._restrict()
        with closing(self._guards()) as guards:
            guards.dates_trims_and_writers(self._connection)
            if not searches_briefly(self._sql, self._query):
                guards.searches(self._connection)
            try:
                cursor = self._connection.execute(self._sql)
                rows, cut = self._rows(cursor)
            except (sqlite3.Error, ValueError, OverflowError) as error:
                said = self._refused or self._stopped or str(error) or type(error).__name__
                if said == _FUNCTION_FAILED:  # functions of ours say why, if they are called at all
                    said = "a function was given a text that is not UTF-8"
                return Result(error=said, steps=self._steps)
        columns = tuple(str(described[0]) for described in cursor.description or ())
        return Result(columns, rows, cut, steps=self._steps)

    def _refuse_virtual_tables(self) -> None:
        """To open one, SQLite writes a schema into its memory, which the authorizer refuses in
        words that do not help."""
        for table in self._query.find_all(exp.Table):
            name = folded(table.name)
            if name in self._virtual and (table.db or name not in self._ctes):
                raise Refusal(
                    f"the table {table.name} is a virtual one (full-text search and its like), "
                    "which cannot be read here; ask another table"
                )

    def _guards(self) -> Guards:
        return Guards(self._refuse_call, self._count, self._limits.value_bytes)

    def _restrict(self) -> None:
        """Set the connection's limits, then nothing but this statement can be done with it."""
        connection, limits = self._connection, self._limits
        # What a table function declares is a CREATE to the authorizer, so it is declared before.
        texts = (self._sql, *(made for made in self._tables.values() if made))
        if any("json" in text.lower() for text in texts):
            for name in JSON_TABLES:
                with suppress(sqlite3.OperationalError):  # a SQLite that is built without JSON
                    connection.execute(f"SELECT 1 FROM {name}('0')").fetchall()
        for setting in (
            # Views call the functions of ours; what they may call says the authorizer, as anywhere.
            *("query_only = ON", "trusted_schema = ON", "cell_size_check = ON"),
            "temp_store = MEMORY",  # where the heap's limit counts it, and nothing is on a disk
        ):
            connection.execute(f"PRAGMA {setting}")
        for category, limit in (
            (sqlite3.SQLITE_LIMIT_LENGTH, limits.value_bytes),
            (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 4 * limits.statement_characters),
            (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_BYTES),
            (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100),
            (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 20),
            (sqlite3.SQLITE_LIMIT_COLUMN, 200),
            (sqlite3.SQLITE_LIMIT_VDBE_OP, _PROGRAM),
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
            (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
        ):
            connection.setlimit(category, limit)
        connection.set_authorizer(self._allow)
        connection.set_progress_handler(self._look, _STEPS_BETWEEN_LOOKS)

    def _view(self, name: str) -> exp.Expression | None:
        """The query of a view; None where the name is no view's."""
        made = self._tables.get(name)
        if made is None:
            return None
        try:
            query = parse_one(made, dialect="sqlite").expression
        except SqlglotError:
            query = None
        if not isinstance(query, exp.Expression):
            raise Refusal(f"the view {name} is written in a way that cannot be read here")
        return query

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
            if not first or folded(first) in self._tables or folded(first) in JSON_TABLES:
                return sqlite3.SQLITE_OK
            # So is a read of no column, which names a WITH where none of its columns is wanted.
            if not second and folded(first) in self._ctes:
                return sqlite3.SQLITE_OK
            return self._refuse(f"the table {first} may not be read")
        if action == sqlite3.SQLITE_FUNCTION:
            if (second or "").lower() in FUNCTIONS:
                return sqlite3.SQLITE_OK
            return self._refuse(f"the function {second} is not allowed")
        if action == sqlite3.SQLITE_RECURSIVE:
            return self._refuse("recursive queries are not allowed")
        return self._refuse("only reading is allowed")

    def _refuse(self, why: str) -> int:
        self._refused = self._refused or why
        return sqlite3.SQLITE_DENY

    def _refuse_call(self, why: str) -> NoReturn:
        self._refuse(why)
        raise ValueError(why)

    def _count(self, steps: int) -> None:
        """Count steps that SQLite does not."""
        self._steps += steps
        if self._steps >= self._limits.steps:
            self._steps = self._limits.steps
            self._stopped = TOO_LONG
            raise ValueError(TOO_LONG)

    def _look(self) -> bool:
        self._steps += _STEPS_BETWEEN_LOOKS
        if self._steps >= self._limits.steps:
            self._steps = self._limits.steps
            self._stopped = self._stopped or TOO_LONG
        elif time.thread_time() > self._ends:
            self._stopped = self._limits.stopped_by_clock()
        return self._stopped is not None


def tables_and_views(connection: sqlite3.Connection) -> Mapping[str, str | None]:
    """Names of tables and views, `folded`; the statement that made it, for a view."""
    asked = (
        "SELECT lower(name), CASE type WHEN 'view' THEN sql END FROM sqlite_master "
        "WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    )
    return dict(connection.execute(asked).fetchall())


def virtual_tables(connection: sqlite3.Connection) -> frozenset[str]:
    """Names of the virtual tables, `folded`."""
    asked = f"SELECT lower(name) FROM sqlite_master WHERE {IS_VIRTUAL}"
    return frozenset(name for (name,) in connection.execute(asked))
