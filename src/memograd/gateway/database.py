"""The database under a trace store: opening it, one writer at a time, failures as sentences.

SQLite: write-ahead log with `synchronous=NORMAL`. What a transaction has committed survives the end
of the process, however it ends; a power failure may cost the last transactions, but never a part of
one. PostgreSQL: a transaction is durable as the server is configured. Invariant: a place that
cannot be used is one `BadInput` sentence; what was committed is there after `kill -9`.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import create_engine, event, inspect, select
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError

from memograd.errors import BadInput, MemogradError
from memograd.gateway.schema import META, METADATA, MIGRATIONS, SCHEMA_VERSION

WAIT_SECONDS: Final = 30.0
CREATING_LOCK: Final = int.from_bytes(b"mgtraces", "big")  # any constant will do
FORMS: Final = "sqlite:///traces.db or postgresql+psycopg://user@host/database"


class TraceDatabase:
    """An open database with the trace store's tables, shared by all threads of the process."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        """Open it, creating the tables; raises BadInput when the place named cannot be used.

        read_only: create and change nothing, in this place or in its traces; BadInput where there
        are no traces, or they are of an older format.
        """
        self._url = _checked(url)
        self._read_only = read_only
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self.place = str(self._url.database) if self.is_sqlite else self._url.render_as_string()
        self._writer = threading.Lock()
        self._engine = self._create_engine()
        try:
            self._check_tables() if read_only else self._create_tables()
        except MemogradError as error:
            self._engine.dispose()
            raise BadInput(str(error)) from error

    def close(self) -> None:
        """Close all connections. Closing twice is harmless."""
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection whose SELECTs see one state of the database."""
        with self._explained("read"), self._engine.connect() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN")
            yield connection
            connection.rollback()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction with no other writer in this process, and on SQLite in none beside it.

        Committed unless an exception leaves it.
        """
        with self._explained("written"), self._writer, self._engine.connect() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.commit()

    def _create_engine(self) -> Engine:
        if not self.is_sqlite:
            options = {"options": "-c default_transaction_read_only=on"} if self._read_only else {}
            return create_engine(
                self._url,
                isolation_level="READ COMMITTED",
                pool_pre_ping=True,
                connect_args=options,
            )
        if self._read_only and not Path(str(self._url.database)).is_file():
            raise BadInput(f"There are no traces in {self.place}: name the store of a gateway.")
        url = self._url.update_query_dict({"timeout": str(WAIT_SECONDS)})
        engine = create_engine(url, pool_size=8, max_overflow=-1)
        prepare = _prepare_sqlite_to_read if self._read_only else _prepare_sqlite
        event.listen(engine, "connect", prepare)
        return engine

    def _check_tables(self) -> None:
        with self.reading() as connection:
            if not inspect(connection).has_table(META.name):
                raise BadInput(f"There are no traces in {self.place}: name the store of a gateway.")
            version = connection.execute(select(META.c.value)).scalar()
        if version != SCHEMA_VERSION:
            raise BadInput(
                f"The traces in {self.place} have the format {version} and this memograd reads"
                f" {SCHEMA_VERSION}: open them once with the gateway of the newer of the two."
            )

    def _create_tables(self) -> None:
        with self.writing() as connection:
            if not self.is_sqlite:  # another process may be making the same tables
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({CREATING_LOCK})")
            present = set(inspect(connection).get_table_names())
            ours = set(METADATA.tables)
            # An SQLite file is the store's own; PostgreSQL may hold other tables beside it.
            foreign = present - ours if self.is_sqlite else set[str]()
            if META.name not in present:
                foreign |= present & ours
            if foreign:
                raise BadInput(
                    f"The database {self.place} holds tables of something else"
                    f" ({', '.join(sorted(foreign)[:3])}): give the traces one of their own."
                )
            if META.name not in present:
                METADATA.create_all(connection)
                connection.execute(META.insert(), {"key": "version", "value": SCHEMA_VERSION})
            version = connection.execute(select(META.c.value)).scalar()
            while version in MIGRATIONS:
                for statement in MIGRATIONS[version]:
                    kind = "BLOB" if self.is_sqlite else "BYTEA"
                    connection.exec_driver_sql(statement.format(bytes=kind))
                version = str(int(version) + 1)
                connection.execute(META.update().values(value=version))
        if version != SCHEMA_VERSION:
            raise BadInput(
                f"The traces in {self.place} have the format {version} and this memograd reads"
                f" {SCHEMA_VERSION}: use the version of memograd that wrote them."
            )

    @contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise  # our own mistake: it keeps its traceback
        except DBAPIError as error:
            cause = str(error.orig).strip().splitlines()[0]
            raise MemogradError(
                f"The trace store {self.place} could not be {done} ({cause}): see that the place"
                " exists, is writable and has room."
            ) from error


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver's own transaction control would begin transactions late and read-only.
    connection.isolation_level = None
    _use_write_ahead_log(connection)
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _prepare_sqlite_to_read(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA query_only=ON")


def _use_write_ahead_log(connection: Any) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            # SQLite does not wait here by itself when several stores open a new file at once.
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _checked(text: str) -> URL:
    """The URL of a database that can hold traces; raises BadInput for any other."""
    try:
        url = make_url(text)
        backend = url.get_backend_name()
        url.get_dialect().import_dbapi()
    except (ArgumentError, NoSuchModuleError):
        raise BadInput(f"The store's URL {text!r} is not understood: write {FORMS}.") from None
    except ModuleNotFoundError as error:
        raise BadInput(
            f"The store's URL needs the Python package {error.name}, which is missing: install"
            " memograd[postgres]."
        ) from None
    if backend not in ("sqlite", "postgresql"):
        raise BadInput(f"Traces cannot be kept in {backend}: write {FORMS}.")
    if backend == "sqlite":
        if url.database in (None, "", ":memory:") or url.query:
            raise BadInput(f"Traces in SQLite need a file, not {text!r}: write {FORMS}.")
        file = Path(str(url.database))
        if file.is_dir():
            raise BadInput(f"The store's path {file} is a folder: name a file in it.")
        if not file.parent.is_dir():
            raise BadInput(f"The store's folder {file.parent} does not exist: create it first.")
    return url
