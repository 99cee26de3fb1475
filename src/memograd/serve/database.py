"""The tables of a server, beside the journal: its keys and who read what.

With SQLite they are a file `serve.db` in the journal's folder, so that looking up a key never waits
for a writer of memories; with PostgreSQL they stand in the journal's database, so that several
processes know the same keys. Invariant: what was committed is there after `kill -9`.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    inspect,
    select,
)
from sqlalchemy.engine import Connection, make_url

from memograd.config import MemorySettings
from memograd.errors import BadInput
from memograd.memory.journal import sqlite_url
from memograd.memory.state.store import journal_url
from memograd.web.tables import Tables

FILE: Final = "serve.db"
FORMAT: Final = "1"

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


class ServeDatabase(Tables):
    """The open tables, shared by all threads of the process."""

    what = "The server's tables in"
    creating_lock = int.from_bytes(b"mgserves", "big")  # any constant will do

    @classmethod
    def beside(cls, settings: MemorySettings) -> ServeDatabase:
        """The tables that belong to the memory of these settings; raises BadInput when the place
        cannot be used."""
        url = make_url(journal_url(settings))
        if url.get_backend_name() == "sqlite":
            url = sqlite_url(Path(str(url.database)).parent / FILE)
        return cls(url)

    def _create(self, connection: Connection) -> None:
        if META.name not in inspect(connection).get_table_names():
            METADATA.create_all(connection)
            connection.execute(META.insert(), {"key": "format", "value": FORMAT})
        form = connection.execute(select(META.c.value).where(META.c.key == "format")).scalar()
        if form != FORMAT:
            raise BadInput(
                f"The server's tables in {self.place} have the format {form} and this memograd"
                f" reads {FORMAT}: use the version of memograd that wrote them."
            )


def now_micros() -> int:
    """The moment as the tables keep it."""
    return time.time_ns() // 1000


def moment(micros: int | None) -> str | None:
    """A kept moment as ISO 8601 in UTC."""
    return None if micros is None else datetime.fromtimestamp(micros / 1e6, UTC).isoformat()
