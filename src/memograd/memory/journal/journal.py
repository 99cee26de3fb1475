"""The append-only journal of everything that happened to the memories of all owners.

Invariants, for SQLite and PostgreSQL alike (`tests/memory/test_journal.py`): `append` writes all or
nothing and what it returned is on disk; `seq` rises by one in the order of commits, so whoever
tails by it misses nothing; `recorded_at` never goes backwards; an `expect` that another writer
overtook is a Conflict. Faults are in `test_journal_faults.py`. May import sqlalchemy, `events` and
errors, and the files of this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.engine import Connection

from memograd.errors import BadInput, MemogradError
from memograd.memory.events import Event, EventKind, NewEvent
from memograd.memory.journal import purge, transfer
from memograd.memory.journal.engine import Database
from memograd.memory.journal.rows import (
    DERIVED_COLUMNS,
    EVENT_COLUMNS,
    DerivedText,
    derived_row,
    insert_rows,
    to_derived,
    to_events,
    to_micros,
    to_row,
)
from memograd.memory.journal.schema import DERIVED, EVENTS, META, VERSION_KEY

BATCH: Final = 500  # values in one IN (...), well below every database's limit

# Statements that run at every search, built once.
_TAIL = (
    select(*EVENT_COLUMNS)
    .where(EVENTS.c.owner == bindparam("owner"), EVENTS.c.seq > bindparam("after"))
    .order_by(EVENTS.c.seq)
)
_TAIL_UNTIL = _TAIL.where(EVENTS.c.recorded_at <= bindparam("until"))
_TAIL_ALL = (
    select(*EVENT_COLUMNS)
    .where(EVENTS.c.seq > bindparam("after"))
    .order_by(EVENTS.c.seq)
    .limit(bindparam("limit"))
)
_LAST_SEQ = select(func.max(EVENTS.c.seq))
_LAST_SEQ_OF_OWNER = _LAST_SEQ.where(EVENTS.c.owner == bindparam("owner"))
_HISTORY = (
    select(*EVENT_COLUMNS).where(EVENTS.c.subject == bindparam("subject")).order_by(EVENTS.c.seq)
)
_LATEST = (
    select(*EVENT_COLUMNS)
    .where(EVENTS.c.subject == bindparam("subject"))
    .order_by(EVENTS.c.seq.desc())
    .limit(1)
)
_COUNT_ADDED = (
    select(func.count())
    .where(EVENTS.c.owner.in_(bindparam("owners", expanding=True)))
    .where(EVENTS.c.kind == EventKind.ADD.value)
)
_DERIVED = select(*DERIVED_COLUMNS).where(DERIVED.c.owner == bindparam("owner"))
_DERIVED_OF = _DERIVED.where(DERIVED.c.content_hash.in_(bindparam("hashes", expanding=True)))


class Conflict(MemogradError):
    """Another writer was faster: read the memory again and decide anew."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Journal:
    """An open journal. All threads may use it at once, and other processes may open it too."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        """For `Journal.open`."""
        self._database, self._clock = database, clock

    @classmethod
    def open(cls, url: str, *, clock: Callable[[], datetime] = _utc_now) -> Journal:
        """Open the journal at a URL of SQLAlchemy's, or create it.

        url: `sqlite:///folder/journal.db` or `postgresql+psycopg://user@host/database`. clock: the
        time now, with a time zone. Raises BadInput when the place cannot be used, holds something
        else, or was written by another format.
        """
        return cls(Database(url), clock)

    def close(self) -> None:
        """Close all connections. Closing twice is harmless."""
        self._database.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def get_meta(self, key: str) -> str | None:
        """What `set_meta` noted under a key, None if nothing."""
        with self._database.reading() as connection:
            value: str | None = connection.execute(
                select(META.c.value).where(META.c.key == key)
            ).scalar()
            return value

    def set_meta(self, key: str, value: str) -> None:
        """Note something about the journal as a whole, such as its embedder."""
        if key == VERSION_KEY:
            raise BadInput(f"The key {VERSION_KEY!r} belongs to the journal: choose another.")
        with self._database.writing() as connection:
            self._database.upsert(connection, META, [{"key": key, "value": value}])

    def append(
        self,
        events: Sequence[NewEvent],
        *,
        expect: Mapping[str, int] | None = None,
        derived: Sequence[DerivedText] = (),
    ) -> list[Event]:
        """Write events, and what was derived from their texts, all or nothing.

        expect: for each subject the `seq` of its latest event as the caller knows it, 0 for none.
        Everything is on disk on return. Raises Conflict when an expectation no longer holds,
        BadInput when a value cannot be kept, MemogradError when the disk is full, say; nothing of
        it is written then.
        """
        rows = [to_row(event) for event in events]
        derived_rows = [derived_row(text) for text in derived]
        if not rows and not derived_rows:
            return []
        with self._database.writing() as connection:
            if expect:
                _check_expected(connection, expect)
            written = insert_rows(connection, rows, self._clock())
            self._database.upsert(connection, DERIVED, derived_rows)
        return written

    def tail(self, owner: str, *, after: int = 0, until: datetime | None = None) -> list[Event]:
        """The owner's events behind the place `after`, in order; none recorded later than `until`.

        Raises BadInput when `until` has no time zone.
        """
        with self._database.reading() as connection:
            if until is None:
                rows = connection.execute(_TAIL, {"owner": owner, "after": after})
            else:
                values = {"owner": owner, "after": after, "until": to_micros(until)}
                rows = connection.execute(_TAIL_UNTIL, values)
            return to_events(rows.all())

    def tail_all(self, *, after: int, limit: int) -> list[Event]:
        """The first `limit` events of all owners behind the place `after`, in order."""
        with self._database.reading() as connection:
            return to_events(connection.execute(_TAIL_ALL, {"after": after, "limit": limit}).all())

    def last_seq(self, owner: str | None = None) -> int:
        """The place of the newest event (of an owner), 0 if there is none."""
        with self._database.reading() as connection:
            if owner is None:
                return connection.execute(_LAST_SEQ).scalar() or 0
            return connection.execute(_LAST_SEQ_OF_OWNER, {"owner": owner}).scalar() or 0

    def latest(self, subject: str) -> Event | None:
        """The newest event of an item or a turn, None if there is none."""
        with self._database.reading() as connection:
            events = to_events(connection.execute(_LATEST, {"subject": subject}).all())
            return events[0] if events else None

    def history(self, subject: str) -> list[Event]:
        """All events of an item or a turn, in order."""
        with self._database.reading() as connection:
            return to_events(connection.execute(_HISTORY, {"subject": subject}).all())

    def owners(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> list[str]:
        """The owners with an event under exactly these ids (None: any), sorted."""
        query = select(EVENTS.c.owner).distinct()
        if user_id is not None:  # a user owns all that bears the id, so one event is enough
            query = select(EVENTS.c.owner).where(EVENTS.c.owner == f"user:{user_id}").limit(1)
        if agent_id is not None:
            query = query.where(EVENTS.c.agent_id == agent_id)
        if run_id is not None:
            query = query.where(EVENTS.c.run_id == run_id)
        with self._database.reading() as connection:
            return sorted(connection.execute(query).scalars())

    def count_added(self, owners: Sequence[str]) -> int:
        """How many items these owners were ever given: no fewer than they have now."""
        with self._database.reading() as connection:
            return sum(
                connection.execute(_COUNT_ADDED, {"owners": batch}).scalar() or 0
                for batch in transfer.batches(list(owners), BATCH)
            )

    def purge(
        self,
        *,
        subjects: Sequence[str] = (),
        owners: Sequence[str] = (),
        actor: str,
        reason: str,
    ) -> list[Event]:
        """Erase for good: every event of these subjects, and all of these owners.

        `before`, `after` and `reason` of the events go, those of NONE events that declined a fact
        for the sake of a subject or drew it from one too, and the derived texts that no other event
        needs. One PURGE event per subject and owner remains, without content; an owner without
        events gets none. On return no file of an SQLite journal holds an erased byte; with
        PostgreSQL the tables hold none, but its own log and backups are the server's to rotate.

        Raises BadInput for a subject without events, and MemogradError, after the erasing is
        committed, when somebody who still reads keeps old bytes in the log: purge again then.
        """
        with self._database.writing() as connection:
            tombstones = purge.erase(connection, subjects, owners, actor=actor, reason=reason)
            rows = [to_row(event) for event in tombstones]
            written = insert_rows(connection, rows, self._clock())
        self._database.scrub()
        return written

    def derived(self, owner: str, hashes: Collection[str] | None = None) -> dict[str, DerivedText]:
        """The derived texts of an owner (those among `hashes` only), by content hash."""
        with self._database.reading() as connection:
            if hashes is None:
                return to_derived(connection.execute(_DERIVED, {"owner": owner}).all())
            rows: list[Any] = []
            for batch in transfer.batches(list(hashes), BATCH):
                rows += connection.execute(_DERIVED_OF, {"owner": owner, "hashes": batch}).all()
            return to_derived(rows)

    def store_derived(self, texts: Sequence[DerivedText]) -> None:
        """Keep derived texts; newer ones take the place of older ones."""
        self.append((), derived=texts)

    def drop_derived(self) -> None:
        """Forget all derived texts, such as when another embedder takes over."""
        with self._database.writing() as connection:
            connection.execute(delete(DERIVED))

    def export_events(self, owners: Sequence[str] | None = None) -> Iterator[Event]:
        """All events (of these owners) that are there now, in order, read bit by bit."""
        return transfer.export_events(self._database, owners)

    def import_events(self, events: Iterable[Event]) -> int:
        """Take in events of another journal, all or nothing; returns how many were new.

        An event whose uid is here already is left as it is, so importing twice is safe. The events
        get new places behind all others, in the order given. `recorded_at` stays, unless it lies in
        the future or before the owner's newest event; it is moved just that far then. A PURGE
        among them is a record of what was erased there; it erases nothing here. Raises BadInput
        when a subject belongs to another owner here.
        """
        return transfer.import_events(self._database, list(events), self._clock())

    def stats(self) -> dict[str, Any]:
        """events, erased, owners, derived, last_seq: counts. bytes: on disk. place: where it is."""
        with self._database.reading() as connection:
            counts = connection.execute(
                select(
                    func.count().label("events"),
                    func.count().filter(EVENTS.c.erased).label("erased"),
                    func.count(EVENTS.c.owner.distinct()).label("owners"),
                    func.coalesce(func.max(EVENTS.c.seq), 0).label("last_seq"),
                ).select_from(EVENTS)
            ).one()
            texts = connection.execute(select(func.count()).select_from(DERIVED)).scalar_one()
        return {
            **counts._asdict(),
            "derived": texts,
            "bytes": self._database.size(),
            "place": self._database.place,
        }


def _check_expected(connection: Connection, expect: Mapping[str, int]) -> None:
    """Raise Conflict unless each subject's newest event is at the place expected."""
    found: dict[str, int] = {}
    for batch in transfer.batches(list(expect), BATCH):
        query = (
            select(EVENTS.c.subject, func.max(EVENTS.c.seq))
            .where(EVENTS.c.subject.in_(batch))
            .group_by(EVENTS.c.subject)
        )
        found |= {subject: seq for subject, seq in connection.execute(query)}
    for subject, seq in expect.items():
        if found.get(subject, 0) != seq:
            raise Conflict(
                f"The memory {subject!r} has been changed by somebody else meanwhile: try again."
            )
