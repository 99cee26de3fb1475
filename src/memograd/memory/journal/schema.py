"""The tables of a journal, and the version of their shape.

Invariant: a journal written by a newer version of memograd is refused, never half understood.

Times are whole microseconds since 1970 in UTC, so that both databases compare them exactly. `seq`
is given by the writer, who is alone (`engine.py`), so it rises by one in the order of commits.
A user has no index of its own: whoever has a user_id is owned by it, and `owner` is indexed.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    false,
)

SCHEMA_VERSION: Final = 1
VERSION_KEY: Final = "schema_version"

METADATA: Final = MetaData()

META: Final = Table(
    "meta",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

EVENTS: Final = Table(
    "events",
    METADATA,
    # Only a column declared INTEGER is SQLite's own row number, which saves an index.
    Column(
        "seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False
    ),
    Column("uid", Text, nullable=False, unique=True),
    Column("recorded_at", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("user_id", Text),
    Column("agent_id", Text),
    Column("run_id", Text),
    Column("subject", Text, nullable=False),
    Column("before", Text),
    Column("after", Text),
    Column("actor", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("erased", Boolean, nullable=False, server_default=false()),
    Index("events_by_owner", "owner", "seq"),
    Index("events_by_kind", "owner", "kind", "seq"),
    # `kind` and `erased` are no part of the order: with them the index answers by itself.
    Index("events_by_subject", "subject", "owner", "seq", "kind", "erased"),
    Index("events_by_time", "owner", "recorded_at", "seq"),
    Index("events_by_agent", "agent_id", "owner"),
    Index("events_by_run", "run_id", "owner"),
)

DERIVED: Final = Table(
    "derived",
    METADATA,
    Column("owner", Text, primary_key=True),
    Column("content_hash", Text, primary_key=True),
    Column("vector", LargeBinary, nullable=False),
    Column("terms", Text, nullable=False),
)
