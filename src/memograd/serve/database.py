"""The tables of a server, beside the journal: its keys and who read what.

With SQLite they are a file `serve.db` in the journal's folder, so that looking up a key never waits
for a writer of memories; with PostgreSQL they stand in the journal's database, so that several
processes know the same keys. Invariant: what was committed is there after `kill -9`.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    create_engine,
    event,
    inspect,
    select,
)
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import DBAPIError, IntegrityError

from memograd.config import MemorySettings
from memograd.errors import BadInput, MemogradError
from memograd.memory.journal import sqlite_url
from memograd.memory.state.store import journal_url

FILE: Final = "serve.db"
FORMAT: Final = "1"
WAIT_SECONDS: Final = 30.0
CREATING_LOCK: Final = int.from_bytes(b"mgserves", "big")  # any constant will do

METADATA: Final = MetaData()
META: Final = Table(
    "serve_meta",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
KEYS: Final = Table(
    "serve_keys",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),  # key, session, login
    Column("name", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True),
    Column("owner", Text),  # as in the journal: user:alice; none: everybody's
    Column("rights", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
)
ACCESS: Final = Table(
    "serve_access",
    METADATA,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("key_name", Text, nullable=False),
    Column("via", Text, nullable=False),  # rest, mcp, page
    Column("action", Text, nullable=False),
    Column("owner", Text),
    Column("items", Text, nullable=False),
    Column("count", BigInteger, nullable=False),
    Index("serve_access_by_owner", "owner", "seq"),
)


class ServeDatabase:
    """The open tables, shared by all threads of the process."""

    def __init__(self, url: str | URL) -> None:
        """Open them, creating what is missing; raises BadInput when the place cannot be used."""
        self._url = make_url(url)
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self.place = str(self._url.database) if self.is_sqlite else self._url.render_as_string()
        self._writer = threading.Lock()
        self._engine = self._create_engine()
        try:
            self._create_tables()
        except MemogradError as error:
            self._engine.dispose()
            raise BadInput(str(error)) from error

    @classmethod
    def beside(cls, settings: MemorySettings) -> ServeDatabase:
        """The tables that belong to the memory of these settings."""
        url = make_url(journal_url(settings))
        if url.get_backend_name() == "sqlite":
            url = sqlite_url(Path(str(url.database)).parent / FILE)
        return cls(url)

    def close(self) -> None:
        """Close all connections. Closing twice is harmless."""
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for SELECT statements."""
        with self._explained("read"), self._engine.connect() as connection:
            yield connection
            connection.rollback()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction, committed unless an exception leaves it."""
        with self._explained("written"), self._writer, self._engine.connect() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.commit()

    def _create_engine(self) -> Engine:
        if not self.is_sqlite:
            return create_engine(self._url, isolation_level="READ COMMITTED", pool_pre_ping=True)
        url = self._url.update_query_dict({"timeout": str(WAIT_SECONDS)})
        engine = create_engine(url, pool_size=8, max_overflow=-1)
        event.listen(engine, "connect", _prepare_sqlite)
        return engine

    def _create_tables(self) -> None:
        with self.writing() as connection:
            if not self.is_sqlite:  # another process may be making the same tables
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({CREATING_LOCK})")
            if META.name not in inspect(connection).get_table_names():
                METADATA.create_all(connection)
                connection.execute(META.insert(), {"key": "format", "value": FORMAT})
            form = connection.execute(select(META.c.value).where(META.c.key == "format")).scalar()
        if form != FORMAT:
            raise BadInput(
                f"The server's tables in {self.place} have the format {form} and this memograd"
                f" reads {FORMAT}: use the version of memograd that wrote them."
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
                f"The server's tables in {self.place} could not be {done} ({cause}): see that the"
                " place exists, is writable and has room."
            ) from error


def now_micros() -> int:
    """The moment as the tables keep it."""
    return time.time_ns() // 1000


def moment(micros: int | None) -> str | None:
    """A kept moment as ISO 8601 in UTC."""
    return None if micros is None else datetime.fromtimestamp(micros / 1e6, UTC).isoformat()


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver's own transaction control would begin transactions late and read-only.
    connection.isolation_level = None
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:
            # SQLite does not wait here by itself when two processes create one file.
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    connection.execute("PRAGMA synchronous=NORMAL")
