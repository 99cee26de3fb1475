"""A server's own tables: opening them, one writer at a time, failures as sentences.

SQLite: write-ahead log with `synchronous=NORMAL`. What a transaction has committed survives the end
of the process, however it ends; a power failure may cost the last transactions, but never a part of
one. PostgreSQL: a transaction is durable as the server is configured.

`patience` says how long any database of ours is waited for, the journal's too. A PostgreSQL that is
gone refuses, and that is an error at once. One behind a connection that was cut on the way, or that
takes connections and says nothing, would be waited for until the operating system gives up, a
quarter of an hour or never, and each call meanwhile holds a thread.

Invariants: a place that cannot be used is one `BadInput` sentence, and what stands there is left
to the byte; what was committed is there after `kill -9`; what a URL says of patience itself stands.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError

from memograd.errors import BadInput, MemogradError

DRIVERS: Final = ("psycopg", "psycopg2")  # over libpq, whose words these are
CONNECT_SECONDS = 10
UNHEARD_SECONDS = 30
"""How long what was sent may stay without the other side's receipt, by a busy or a silent
connection; how long an answer takes is not limited."""


def patience(url: URL) -> dict[str, int]:
    """Arguments for the driver of a URL."""
    if url.get_driver_name() not in DRIVERS:
        return {}
    wanted = {
        "connect_timeout": CONNECT_SECONDS,
        "tcp_user_timeout": UNHEARD_SECONDS * 1000,
        "keepalives_idle": UNHEARD_SECONDS // 3,
        "keepalives_interval": UNHEARD_SECONDS // 3,
        "keepalives_count": 2,
    }
    return {name: value for name, value in wanted.items() if name not in url.query}


WAIT_SECONDS: Final = 30.0


def check_file(place: str, what: str) -> None:
    """Raise BadInput for a file that SQLite would write over although something is in it.

    It takes a file of one byte for an empty one. what: names it, before the place.
    """
    file = Path(place)
    if file.is_file() and file.stat().st_size == 1:
        raise BadInput(
            f"{what} {place} could not be opened: a file with one byte stands there, which is no"
            " database; name another file, or move that one away."
        )


class Tables(ABC):
    """Open tables, shared by all threads of the process."""

    what: ClassVar[str]
    """How sentences name them, before the place: `The trace store`."""
    creating_lock: ClassVar[int]
    """Of PostgreSQL: held while tables are made, since another process may be making the same."""

    def __init__(self, url: URL, *, read_only: bool = False) -> None:
        """Open them, creating what is missing; raises BadInput when the place cannot be used.

        read_only: nothing is created, and the database lets nothing be written.
        """
        self._url, self._read_only = url, read_only
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.place = str(url.database) if self.is_sqlite else url.render_as_string()
        if self.is_sqlite:
            check_file(self.place, self.what)
        self._writer = threading.Lock()
        self._engine = self._create_engine()
        try:
            if read_only:
                with self.reading() as connection:
                    self._check(connection)
            else:
                with self.writing() as connection:
                    if not self.is_sqlite:
                        lock = f"SELECT pg_advisory_xact_lock({self.creating_lock})"
                        connection.exec_driver_sql(lock)
                    self._create(connection)
                if self.is_sqlite:
                    self._use_write_ahead_log()  # only now: a file not ours stays as it is
        except MemogradError as error:
            self._engine.dispose()
            raise BadInput(str(error)) from error

    @abstractmethod
    def _create(self, connection: Connection) -> None:
        """Make what is missing; raise BadInput for tables that are not ours."""

    def _check(self, connection: Connection) -> None:
        """Raise BadInput unless all is there, of tables that are only read; only those that are
        ever opened so say how."""
        raise TypeError(f"{type(self).__name__} cannot be opened to be only read")

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
            options: dict[str, Any] = dict(patience(self._url))
            if self._read_only:
                options["options"] = "-c default_transaction_read_only=on"
            return create_engine(
                self._url,
                isolation_level="READ COMMITTED",
                pool_pre_ping=True,
                connect_args=options,
            )
        url = self._url.update_query_dict({"timeout": str(WAIT_SECONDS)})
        engine = create_engine(url, pool_size=8, max_overflow=-1)
        event.listen(engine, "connect", _prepare_to_read if self._read_only else _prepare)
        return engine

    def _use_write_ahead_log(self) -> None:
        """Switch the file to a write-ahead log, which it remembers."""
        deadline = time.monotonic() + WAIT_SECONDS
        with self._explained("opened"), self._engine.connect() as connection:
            while True:
                try:
                    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
                    break
                except DBAPIError as error:
                    # SQLite does not wait here by itself when several processes open a new file.
                    if "locked" not in str(error.orig) or time.monotonic() > deadline:
                        raise
                    time.sleep(0.02)

    @contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise  # our own mistake: it keeps its traceback
        except DBAPIError as error:
            cause = str(error.orig).strip().splitlines()[0]
            raise MemogradError(
                f"{self.what} {self.place} could not be {done} ({cause}): see that the place"
                " exists, is writable and has room."
            ) from error


def _prepare(connection: Any, _record: object) -> None:
    # The driver's own transaction control would begin transactions late and read-only.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _prepare_to_read(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA query_only=ON")
