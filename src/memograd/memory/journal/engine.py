"""The database under a journal: opening it, one writer at a time, failures as sentences.

Invariants: writers are serialised, in this process and among all others, so the order of commits is
the order of `seq`; whatever stands at the place named, it opens or is refused in one sentence,
unharmed.

SQLite: write-ahead log, every commit synced to disk, deleted content overwritten. The driver's own
transaction control is switched off (`isolation_level = None`), because it would begin transactions
late and read-only; a writer says BEGIN IMMEDIATE, a reader's single SELECT needs no transaction.
PostgreSQL: a writer holds one advisory lock until it commits.

A process may fork while no thread is reading: idle connections are closed before the fork, since a
child that inherits an open SQLite connection would share its file locks with the parent.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

from filelock import FileLock, Timeout
from sqlalchemy import create_engine, event, inspect, select, text
from sqlalchemy.dialects.postgresql import insert as for_postgresql
from sqlalchemy.dialects.sqlite import insert as for_sqlite
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.sql.dml import Insert
from sqlalchemy.sql.schema import Table

from memograd.errors import BadInput, MemogradError
from memograd.memory.journal.schema import META, METADATA, SCHEMA_VERSION, VERSION_KEY
from memograd.web.tables import check_file, patience

WAIT_SECONDS: Final = 30.0  # for another writer; `?timeout=` in an SQLite URL changes it
DECIDING_SECONDS: Final = 30.0
IDLE_CONNECTIONS: Final = 8
LOCK_TIMEOUT: Final = int(WAIT_SECONDS * 1000)
ADVISORY_LOCK: Final = int.from_bytes(b"memograd", "big")  # any constant will do

# What SQLite says, and what to do about it.
REMEDIES: Final = (
    ("database or disk is full", "make room on that disk and try again"),
    ("disk i/o error", "see whether that disk is full or failing, and try again"),
    ("database is locked", "another process is writing for too long, try again"),
    ("readonly database", "make the file and its folder writable"),
    ("not a database", "name another file, or move that one away"),
    ("malformed", "the file is damaged, restore a copy or export what can still be read"),
    ("unable to open", "its folder must exist and be writable"),
)


class DatabaseFailed(MemogradError):
    """The database cannot be reached or used; the message has its own words for it."""


class Database:
    """An open database with the journal's tables, shared by all threads of the process."""

    def __init__(self, url: str | URL) -> None:
        """Open it, creating the tables; raises BadInput when the place named cannot be used."""
        self._url = checked_url(url)
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self.place = (
            str(self._url.database) if self.is_sqlite else self._url.render_as_string()
        )  # a password is not shown
        if self.is_sqlite:
            check_file(self.place, "The journal")
        self.closed = False
        self._writer = threading.Lock()
        self._wait = WAIT_SECONDS
        self._engine = self._create_engine()
        self._glancing: deque[PoolProxiedConnection] = deque()
        # Single statements that need no transaction; on SQLite this holds for the engine itself.
        self._readers = (
            self._engine
            if self.is_sqlite
            else self._engine.execution_options(isolation_level="AUTOCOMMIT")
        )
        try:
            self._create_tables()
        except BadInput:
            self._engine.dispose()
            raise
        except MemogradError as error:
            self._engine.dispose()
            raise BadInput(str(error)) from error
        _OPEN.add(self)

    def close(self) -> None:
        """Close all connections. Closing twice is harmless."""
        self.closed = True
        _OPEN.discard(self)
        self._close_glancing(0)
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for single SELECT statements."""
        with self._explained("read"), self._readers.connect() as connection:
            yield connection

    def may_find(self, query: str, values: tuple[str | int, ...]) -> bool:
        """Whether a SELECT may find rows, told for a tenth of what `reading` costs.

        Of SQLite the driver itself is asked. Always so of PostgreSQL, and where the driver fails:
        reading says why.
        """
        if not self.is_sqlite:
            return True
        with self._explained("read"):
            try:
                connection = self._glancing.pop()
            except IndexError:  # all are asked at this moment
                connection = self._engine.raw_connection()
                connection.detach()
            try:
                cursor = connection.cursor()
                cursor.execute(query, values)
                found = bool(cursor.fetchall())
            except sqlite3.Error:
                connection.close()
                return True
            self._glancing.append(connection)
            self._close_glancing(0 if self.closed else IDLE_CONNECTIONS)
            return found

    def _close_glancing(self, most: int) -> None:
        """Close idle connections of `may_find` beyond so many."""
        while len(self._glancing) > most:
            with suppress(IndexError):  # another thread has just taken it
                self._glancing.pop().close()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction with no other writer beside it; committed unless an exception leaves it."""
        with (
            self._explained("written"),
            self._writer,  # fair among threads, where SQLite's waiting is not
            self._engine.connect() as connection,
        ):
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            else:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")
            yield connection
            connection.commit()

    @contextmanager
    def deciding(self, key: int) -> Iterator[None]:
        """One at a time among all processes, for each key, for as long as somebody decides.

        It only spares work: whoever has waited `DECIDING_SECONDS` goes on without, and a decision
        that another writer overtook is refused when it is written.
        """
        if self.is_sqlite:
            # In the folder of the file: locks of the operating system, gone with their process.
            lock = FileLock(f"{self.place}.writer{key}.lock", thread_local=False)
            with suppress(Timeout, OSError, NotImplementedError):
                lock.acquire(timeout=DECIDING_SECONDS)
            try:
                yield
            finally:
                lock.release()
            return
        with self._explained("reached"), self._engine.connect() as connection:
            numbers = {"room": ADVISORY_LOCK % 2**31, "key": key}
            try:
                connection.execute(text("SELECT pg_advisory_xact_lock(:room, :key)"), numbers)
            except DBAPIError as error:
                if error.connection_invalidated:
                    raise
                connection.rollback()  # waited for too long
            yield

    def upsert(self, connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
        """Insert rows; a row whose primary key is there already takes that one's place."""
        if not rows:
            return
        connection.execute(_upsert(table, sqlite=self.is_sqlite), rows)

    def scrub(self, *, wait: bool) -> None:
        """Leave no deleted byte in the database's files.

        SQLite overwrites what we delete (`secure_delete`), but not what other tools deleted in the
        file, and the write-ahead log keeps old pages: so the file is written anew and the log is
        cut to nothing. Raises MemogradError when somebody who still reads the old pages, or writes,
        stands in the way, for longer than one waits for a writer; at once unless `wait`.
        PostgreSQL: the tables' files are written anew; the server's own log and its backups forget
        at their own pace.
        """
        with self._explained("scrubbed"), self._writer:
            if self.is_sqlite:
                with self._engine.connect() as connection:
                    self._scrub_sqlite(connection, wait)
                return
            autocommit = self._engine.execution_options(isolation_level="AUTOCOMMIT")
            with autocommit.connect() as connection:
                if not wait:
                    connection.exec_driver_sql("SET lock_timeout = 100")
                try:
                    for table in METADATA.sorted_tables:
                        connection.exec_driver_sql(f"VACUUM FULL {table.name}")
                finally:
                    connection.exec_driver_sql(f"SET lock_timeout = {LOCK_TIMEOUT}")

    def _scrub_sqlite(self, connection: Connection, wait: bool) -> None:
        patience = connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one()
        if not wait:
            connection.exec_driver_sql("PRAGMA busy_timeout = 0")
        try:
            connection.exec_driver_sql("VACUUM")
            busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
        finally:
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {patience}")
        if busy:
            raise MemogradError(
                f"The write-ahead log of the journal {self.place} could not be cut: somebody is"
                " still reading."
            )

    def size(self) -> int:
        """Bytes on disk: all files of an SQLite journal, all tables of a PostgreSQL one."""
        if self.is_sqlite:
            files = (Path(f"{self.place}{suffix}") for suffix in ("", "-wal", "-shm"))
            return sum(file.stat().st_size for file in files if file.exists())
        with self.reading() as connection:
            sizes = (
                connection.exec_driver_sql(f"SELECT pg_total_relation_size('{name}')").scalar_one()
                for name in METADATA.tables
            )
            return sum(sizes)

    def _create_engine(self) -> Engine:
        # As many connections as there are threads; idle ones beyond these are closed.
        pool = {"pool_size": IDLE_CONNECTIONS, "max_overflow": -1}
        if self.is_sqlite:
            url = self._url
            if "timeout" not in url.query:
                url = url.update_query_dict({"timeout": str(WAIT_SECONDS)})
            self._wait = float(str(url.query["timeout"]))
            engine = create_engine(url, **pool)
            event.listen(engine, "connect", _prepare_sqlite)
        else:
            engine = create_engine(
                self._url,
                isolation_level="READ COMMITTED",
                connect_args=patience(self._url),
                **pool,
            )
            event.listen(engine, "connect", _prepare_postgresql)
        return engine

    def _create_tables(self) -> None:
        with self.reading() as connection:
            version = self._version(connection)  # before anything in a file not ours is changed
        if self.is_sqlite:
            self._use_write_ahead_log()
        if version is None:
            with self.writing() as connection:
                version = self._version(connection)  # another process may have been faster
                if version is None:
                    METADATA.create_all(connection)
                    version = str(SCHEMA_VERSION)
                    connection.execute(META.insert(), {"key": VERSION_KEY, "value": version})
        if version != str(SCHEMA_VERSION):
            raise BadInput(
                f"The journal {self.place} has the format {version} and this memograd reads"
                f" {SCHEMA_VERSION}: install the version of memograd that wrote it."
            )

    def _version(self, connection: Connection) -> str | None:
        """The format of the tables, None where there are none; BadInput for tables not ours."""
        present = set(inspect(connection).get_table_names())
        version: str | None = None
        if set(METADATA.tables) <= present:
            columns = {column["name"] for column in inspect(connection).get_columns(META.name)}
            if columns == {column.name for column in META.columns}:
                version = connection.execute(
                    select(META.c.value).where(META.c.key == VERSION_KEY)
                ).scalar()
        # An SQLite file is a journal's own; a PostgreSQL database may hold other tables beside it.
        foreign = present if self.is_sqlite else present & set(METADATA.tables)
        if version is None and foreign:
            raise BadInput(
                f"The database {self.place} holds tables of something else"
                f" ({', '.join(sorted(foreign)[:3])}): give the journal one of its own."
            )
        return version

    def _use_write_ahead_log(self) -> None:
        """Switch the file to a write-ahead log, which it remembers."""
        deadline = time.monotonic() + self._wait
        with self._explained("opened"), self._engine.connect() as connection:
            while True:
                try:
                    mode = connection.exec_driver_sql("PRAGMA journal_mode=WAL").scalar_one()
                    break
                except DBAPIError as error:
                    # SQLite does not wait here by itself when two processes create one file.
                    if "locked" not in str(error.orig) or time.monotonic() > deadline:
                        raise
                    time.sleep(0.02)
        if mode != "wal":
            raise BadInput(
                f"The journal {self.place} cannot have a write-ahead log there (a network file"
                " system?): put it on a local disk, or use PostgreSQL."
            )

    @contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        if self.closed:
            raise DatabaseFailed(f"The journal {self.place} is closed: open it again.")
        try:
            yield
        except IntegrityError:
            raise  # our own mistake: it keeps its traceback
        except DBAPIError as error:
            cause = str(error.orig).strip().splitlines()[0]
            remedies = (remedy for words, remedy in REMEDIES if words in cause.lower())
            remedy = next(remedies, "see the database's own log")
            raise DatabaseFailed(
                f"The journal {self.place} could not be {done} ({cause}): {remedy}."
            ) from error

    def before_fork(self) -> None:
        """Wait for the writer and close the idle connections, so that a child inherits none."""
        self._writer.acquire()
        self._close_glancing(0)
        self._engine.dispose()

    def after_fork_in_parent(self) -> None:
        """Let writers go on."""
        self._writer.release()

    def after_fork_in_child(self) -> None:
        """Begin with connections of its own."""
        self._writer.release()
        # Locks of the old pool may be held by threads that do not exist here.
        self._engine.dispose(close=False)


def sqlite_url(file: Path) -> URL:
    """The URL of an SQLite journal in a file, whatever characters its path has."""
    return URL.create("sqlite", database=str(file))


def checked_url(
    given: str | URL,
    *,
    name: str = "journal",
    contents: str = "A journal",
    forms: str = "sqlite:///folder/journal.db or postgresql+psycopg://user@host/database",
) -> URL:
    """The URL of a database that can hold a journal, or what `contents` says; raises BadInput for
    any other. forms: what can be written."""
    try:
        url = make_url(given)
        backend = url.get_backend_name()
        url.get_dialect().import_dbapi()
    except (ArgumentError, NoSuchModuleError):
        raise BadInput(f"The {name}'s URL {given!r} is not understood: write {forms}.") from None
    except ModuleNotFoundError as error:
        raise BadInput(
            f"The {name}'s URL needs the Python package {error.name}, which is missing: install"
            " it, such as with pip install 'psycopg[binary]' for postgresql+psycopg."
        ) from None
    if backend not in ("sqlite", "postgresql"):
        raise BadInput(f"{contents} cannot be kept in {backend}: write {forms}.")
    if backend == "sqlite":
        if url.database in (None, "", ":memory:") or "mode" in url.query or "uri" in url.query:
            raise BadInput(
                f"{contents} in SQLite must have a file, not {str(given)!r}: write {forms}."
            )
        file = Path(str(url.database))
        if file.is_dir():
            raise BadInput(f"The {name}'s path {file} is a folder: name a file in it.")
        if not file.parent.is_dir():
            raise BadInput(f"The {name}'s folder {file.parent} does not exist: create it first.")
    return url


@cache
def _upsert(table: Table, *, sqlite: bool) -> Insert:
    """The statement of `Database.upsert`; to make one takes longer than to carry it out."""
    insert = (for_sqlite if sqlite else for_postgresql)(table)
    keys = [column.name for column in table.primary_key]
    values = {
        column.name: insert.excluded[column.name]
        for column in table.columns
        if column.name not in keys
    }
    return insert.on_conflict_do_update(index_elements=keys, set_=values)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA secure_delete=ON")


def _prepare_postgresql(connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {LOCK_TIMEOUT}")
        cursor.execute("SET client_encoding = 'UTF8'")
    connection.commit()


_OPEN: WeakSet[Database] = WeakSet()
_FORKING = threading.local()  # the fork's own thread runs all three hooks


def _before_fork() -> None:
    _FORKING.databases = list(_OPEN)
    for database in _FORKING.databases:
        database.before_fork()


def _after_fork_in_parent() -> None:
    for database in _FORKING.databases:
        database.after_fork_in_parent()


def _after_fork_in_child() -> None:
    for database in _FORKING.databases:
        database.after_fork_in_child()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
