"""The database of a trace store: which places can hold one, its tables, and older formats of them.

Invariant: a store of an older format is brought up to date when a gateway opens it, in one
transaction; a reader changes nothing. `memograd.web.tables` says what is durable.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlalchemy import inspect, select
from sqlalchemy.engine import Connection

from memograd.errors import BadInput
from memograd.gateway.schema import META, METADATA, MIGRATIONS, SCHEMA_VERSION
from memograd.memory.journal.engine import checked_url
from memograd.web.tables import Tables

FORMS: Final = "sqlite:///traces.db or postgresql+psycopg://user@host/database"


class TraceDatabase(Tables):
    """An open database with the trace store's tables, shared by all threads of the process."""

    what = "The trace store"
    creating_lock = int.from_bytes(b"mgtraces", "big")  # any constant will do

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        """Open it, creating the tables; raises BadInput when the place named cannot be used.

        read_only: create and change nothing, in this place or in its traces; BadInput where there
        are no traces, or they are of an older format.
        """
        place = checked_url(url, name="store", contents="Traces", forms=FORMS)
        file = place.database if place.get_backend_name() == "sqlite" else None
        if read_only and file is not None and not Path(file).is_file():
            raise BadInput(f"There are no traces in {file}: name the store of a gateway.")
        super().__init__(place, read_only=read_only)

    def _check(self, connection: Connection) -> None:
        if not inspect(connection).has_table(META.name):
            raise BadInput(f"There are no traces in {self.place}: name the store of a gateway.")
        version = connection.execute(select(META.c.value)).scalar()
        if version != SCHEMA_VERSION:
            raise BadInput(
                f"The traces in {self.place} have the format {version} and this memograd reads"
                f" {SCHEMA_VERSION}: open them once with the gateway of the newer of the two."
            )

    def _create(self, connection: Connection) -> None:
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
