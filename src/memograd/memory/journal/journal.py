"""The append-only journal of everything that happened to the memories of all owners.

Invariants, for SQLite and PostgreSQL alike: `append` writes all or nothing and what it returned is
on disk; `seq` rises by one in the order of commits, so whoever tails by it misses nothing;
`recorded_at` never goes backwards; an `expect` that another writer overtook is a Conflict, and so
is an event that does not fit (`fit.py`). Faults are in `test_journal_faults.py`.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.engine import URL, Connection

from memograd.errors import BadInput, MemogradError, Unfinished
from memograd.memory.journal import past, purge, transfer, who
from memograd.memory.journal.engine import Database
from memograd.memory.journal.fit import BATCH, Conflict, check_embedder, check_expected, check_fit
from memograd.memory.journal.purge import Behind
from memograd.memory.journal.rows import (
    DERIVED_COLUMNS,
    EVENT_COLUMNS,
    LAST_PURGE,
    AddedCounts,
    DerivedText,
    batches,
    derived_row,
    insert_rows,
    to_derived,
    to_events,
    to_micros,
    to_row,
)
from memograd.memory.journal.schema import DERIVED, EVENTS, META, VERSION_KEY
from memograd.memory.records.events import Event, NewEvent
from memograd.memory.records.scope import Scope

logger = logging.getLogger(__name__)

SCRUB_PENDING: Final = "scrub_pending"  # the key that is there while old bytes are to be removed
DECIDING_LOCKS: Final = 64
OWN_KEYS: Final = frozenset({VERSION_KEY, SCRUB_PENDING})

# Statements that run at every search, built once.
_TAIL = (
    select(*EVENT_COLUMNS)
    .where(EVENTS.c.owner == bindparam("owner"), EVENTS.c.seq > bindparam("after"))
    .order_by(EVENTS.c.seq)
)
_TAIL_PAGE = _TAIL.limit(bindparam("limit"))
_IS_BEHIND = "SELECT 1 FROM events WHERE owner = ? AND seq > ? LIMIT 1"
_TAIL_UNTIL = _TAIL.where(EVENTS.c.recorded_at <= bindparam("until"))
_TAIL_ALL = (
    select(*EVENT_COLUMNS)
    .where(EVENTS.c.seq > bindparam("after"))
    .order_by(EVENTS.c.seq)
    .limit(bindparam("limit"))
)
_LAST_SEQ = select(func.max(EVENTS.c.seq))
_LAST_SEQ_OF_OWNER = _LAST_SEQ.where(EVENTS.c.owner == bindparam("owner"))
_OF_SUBJECT = select(*EVENT_COLUMNS).where(EVENTS.c.subject == bindparam("subject"))
_HISTORY = _OF_SUBJECT.order_by(EVENTS.c.seq)
_LATEST = _OF_SUBJECT.order_by(EVENTS.c.seq.desc()).limit(1)
_HISTORY_OF_OWNER = _HISTORY.where(EVENTS.c.owner == bindparam("owner"))
_LATEST_OF_OWNER = _LATEST.where(EVENTS.c.owner == bindparam("owner"))
_DERIVED = select(*DERIVED_COLUMNS).where(DERIVED.c.owner == bindparam("owner"))
_DERIVED_OF = _DERIVED.where(DERIVED.c.content_hash.in_(bindparam("hashes", expanding=True)))


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Journal:
    """An open journal. All threads may use it at once, and other processes may open it too."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        """For `Journal.open`."""
        self._database, self._clock = database, clock
        self._counts = AddedCounts()
        self._scrub_pending = False
        self._finish_scrubbing()

    @classmethod
    def open(cls, url: str | URL, *, clock: Callable[[], datetime] = _utc_now) -> Journal:
        """Open the journal at a URL of SQLAlchemy's, or create it.

        url: `sqlite:///folder/journal.db` (`sqlite_url` makes one of any path) or
        `postgresql+psycopg://user@host/database`. clock: the time now, with a time zone. Raises
        BadInput when the place cannot be used, holds something else, or was written by another
        format.
        """
        return cls(Database(url), clock)

    def close(self) -> None:
        """Close all connections. Closing twice is harmless."""
        if self._scrub_pending and not self._database.closed:
            self._finish_scrubbing()
        self._database.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def get_meta(self, key: str) -> str | None:
        """What `set_meta` noted under a key, None if nothing."""
        with self._database.reading() as connection:
            return _meta(connection, [key]).get(key)

    def set_meta(self, key: str, value: str) -> None:
        """Note something about the journal as a whole, such as its embedder."""
        self.set_meta_all({key: value})

    def set_meta_all(self, pairs: Mapping[str, str], *, if_absent: bool = False) -> dict[str, str]:
        """Note several things at once, all or none; returns what holds for these keys afterwards.

        if_absent: what is noted already stays.
        """
        _check_keys(pairs)
        if if_absent:
            with self._database.reading() as connection:
                noted = _meta(connection, list(pairs))
            if noted.keys() == pairs.keys():
                return noted
        with self._database.writing() as connection:
            noted = _meta(connection, list(pairs)) if if_absent else {}
            self._note(connection, {key: pairs[key] for key in pairs.keys() - noted.keys()})
        return {**pairs, **noted}

    def append(
        self,
        events: Sequence[NewEvent],
        *,
        expect: Mapping[str, int] | None = None,
        expect_last: Mapping[str, int] | None = None,
        derived: Sequence[DerivedText] = (),
        embedder: str | None = None,
    ) -> list[Event]:
        """Write events, and what was derived from their texts, all or nothing.

        expect: for each subject of the events' owners the `seq` of its latest event as the caller
        knows it, 0 for none. expect_last: the same for owners and their newest events. embedder:
        who made the vectors of `derived`. Everything is on disk on return.

        Raises Conflict when an expectation no longer holds or an event does not fit: an ADD or TURN
        of a subject that its owner has already, an UPDATE or DELETE of an item that does not live.
        Raises BadInput when a value cannot be kept or the memory has another embedder by now,
        MemogradError when the disk is full, say. Nothing of it is written then.
        """
        rows = [to_row(event) for event in events]
        derived_rows = [derived_row(text) for text in derived]
        if not rows and not derived_rows:
            return []
        with self._database.writing() as connection:
            check_embedder(connection, embedder)
            if expect:
                check_expected(connection, expect, {row["owner"] for row in rows})
            for owner, seq in (expect_last or {}).items():
                last = connection.execute(_LAST_SEQ_OF_OWNER, {"owner": owner}).scalar() or 0
                if last != seq:
                    raise Conflict(f"Somebody else wrote to the memory of {owner}: decide anew.")
            check_fit(connection, rows)
            written = insert_rows(connection, rows, self._clock())
            self._database.upsert(connection, DERIVED, derived_rows)
        return written

    @contextmanager
    def deciding(self, owner: str) -> Iterator[None]:
        """One decision about an owner at a time, among all processes; see `Database.deciding`."""
        with self._database.deciding(zlib.crc32(owner.encode()) % DECIDING_LOCKS):
            yield

    def tail(self, owner: str, *, after: int = 0, until: datetime | None = None) -> list[Event]:
        """The owner's events behind the place `after`, in order; none recorded later than `until`.

        Raises BadInput when `until` has no time zone.
        """
        if until is None and not self._database.may_find(_IS_BEHIND, (owner, after)):
            return []  # as at most searches
        with self._database.reading() as connection:
            if until is None:
                rows = connection.execute(_TAIL, {"owner": owner, "after": after})
            else:
                values = {"owner": owner, "after": after, "until": to_micros(until)}
                rows = connection.execute(_TAIL_UNTIL, values)
            return to_events(rows.all())

    def tail_page(self, owner: str, *, after: int, limit: int) -> list[Event]:
        """The first `limit` of the owner's events behind the place `after`, in order."""
        values = {"owner": owner, "after": after, "limit": limit}
        with self._database.reading() as connection:
            return to_events(connection.execute(_TAIL_PAGE, values).all())

    def tail_all(self, *, after: int, limit: int) -> list[Event]:
        """The first `limit` events of all owners behind the place `after`, in order."""
        with self._database.reading() as connection:
            return to_events(connection.execute(_TAIL_ALL, {"after": after, "limit": limit}).all())

    def of_reason(self, beginning: str) -> list[Event]:
        """The events of all owners whose reason begins with these words, in order."""
        query = select(*EVENT_COLUMNS).where(EVENTS.c.reason.startswith(beginning, autoescape=True))
        with self._database.reading() as connection:
            return to_events(connection.execute(query.order_by(EVENTS.c.seq)).all())

    def last_seq(self, owner: str | None = None) -> int:
        """The place of the newest event (of an owner), 0 if there is none."""
        with self._database.reading() as connection:
            query = _LAST_SEQ if owner is None else _LAST_SEQ_OF_OWNER
            return connection.execute(query, {"owner": owner}).scalar() or 0

    def seq_at(self, owner: str, moment: datetime) -> int:
        """The place of the owner's last event recorded at `moment` or before, 0 if there is none.

        Raises BadInput when `moment` has no time zone.
        """
        with self._database.reading() as connection:
            return past.seq_at(connection, owner, moment)

    def count_changes(self, owner: str) -> int:
        """How many times an item of the owner was added, updated or deleted."""
        with self._database.reading() as connection:
            return past.count_changes(connection, owner)

    def moment_of_change(self, owner: str, number: int) -> datetime | None:
        """When the owner's change of this number, from 1, was recorded; None beyond the last."""
        with self._database.reading() as connection:
            return past.moment_of_change(connection, owner, number)

    def count_between(self, owner: str, after: int, until: int) -> int:
        """How many events of the owner stand behind the place `after`, up to `until`."""
        with self._database.reading() as connection:
            return past.count_between(connection, owner, after, until)

    def changed_between(self, owner: str, after: int, until: int) -> past.ChangedRecords:
        """What may have lost a record of the owner behind the place `after`, up to `until`."""
        with self._database.reading() as connection:
            return past.changed_between(connection, owner, after, until)

    def histories(self, owner: str, subjects: Collection[str], *, until: int) -> list[Event]:
        """The owner's events of these subjects up to the place `until`, in order."""
        with self._database.reading() as connection:
            return past.histories(connection, owner, subjects, until)

    def declined(self, owner: str) -> list[Event]:
        """The owner's events about facts that were declined, in order."""
        with self._database.reading() as connection:
            return past.declined(connection, owner)

    def heard_with(self, owner: str, words: Collection[str]) -> list[Event]:
        """The owner's raw turns that may hold all of these words, or beginnings, in order."""
        with self._database.reading() as connection:
            return past.heard_with(connection, owner, words)

    def last_purge(self, owner: str) -> int:
        """The place of the last PURGE of something of the owner, 0 if there is none."""
        with self._database.reading() as connection:
            return connection.execute(LAST_PURGE, {"owner": owner}).scalar() or 0

    def latest(self, subject: str, *, owner: str | None = None) -> Event | None:
        """The newest event of an item or a turn, None if there is none.

        owner: whose; raw turns of different owners may have one id. None: anybody's.
        """
        with self._database.reading() as connection:
            query, whose = (_LATEST, {}) if owner is None else (_LATEST_OF_OWNER, {"owner": owner})
            events = to_events(connection.execute(query, {"subject": subject} | whose).all())
            return events[0] if events else None

    def history(self, subject: str, *, owner: str | None = None) -> list[Event]:
        """All events of an item or a turn, in order. owner: whose; None: anybody's."""
        with self._database.reading() as connection:
            query = _HISTORY if owner is None else _HISTORY_OF_OWNER
            values = {"subject": subject} | ({} if owner is None else {"owner": owner})
            return to_events(connection.execute(query, values).all())

    def owners(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> list[str]:
        """The owners with an event under exactly these ids (None: any), sorted."""
        with self._database.reading() as connection:
            return who.owners(connection, user_id, agent_id, run_id)

    def owners_left(self) -> list[str]:
        """All owners but those of whom everything was purged, sorted."""
        with self._database.reading() as connection:
            return who.owners_left(connection)

    def living(self, owner: str | None) -> list[tuple[Scope, int, datetime, datetime]]:
        """For each scope in which items were kept (an owner's; None: all): how many there are now,
        when the first was learnt, when the last one changed."""
        with self._database.reading() as connection:
            return who.living(connection, owner)

    def count_added(self, owners: Sequence[str] | None) -> int:
        """How many items these owners (None: all) were ever given: no fewer than they have now.

        Of all, or of one, only what is new since this journal last counted is looked at.
        """
        with self._database.reading() as connection:
            counts = self._counts
            return counts.of_all(connection) if owners is None else counts.of(connection, owners)

    def purge(
        self,
        *,
        subjects: Sequence[str] | Mapping[str, Sequence[str]] = (),
        owner: str | None = None,
        owners: Sequence[str] = (),
        actor: str,
        reason: str,
    ) -> list[Event]:
        """Erase for good: every event of these subjects, and all of these owners.

        subjects: those of `owner`, or a mapping from each owner to its own; without either, each
        subject must be one owner's alone. owners: erased as a whole.

        `before`, `after` and `reason` of the events go, those of NONE events that declined a fact
        for the sake of a subject or drew it from one too, those of answers given from one with the
        feedback on them, and the derived texts that no other event needs. One PURGE event remains,
        without content, per subject and owner of which there was something left to erase. On return
        no file of an SQLite journal holds an erased byte; with PostgreSQL the tables hold none, but
        its own log and backups are the server's to rotate.

        Raises BadInput, before anything is erased, for a subject without events, and Unfinished,
        after the erasing is committed, when somebody who still reads keeps old bytes in the log:
        the next purge, opening or closing of the journal tries again to remove those.
        """
        with self._database.writing() as connection:
            erased = purge.Erased()
            if not isinstance(subjects, Mapping):
                wanted = list(dict.fromkeys(subjects))
                subjects = {owner: wanted} if owner else purge.owners_of(connection, wanted)
            purge.erase_subjects(connection, subjects, erased, actor=actor, reason=reason)
            purge.erase_owners(connection, owners, erased, actor=actor, reason=reason)
            rows = [to_row(event) for event in erased.tombstones]
            written = insert_rows(connection, rows, self._clock())
            pending = self._note_scrub(connection, erased.touched)
        if pending:
            self._scrub(wait=True)
        return written

    def derived(self, owner: str, hashes: Collection[str] | None = None) -> dict[str, DerivedText]:
        """The derived texts of an owner (those among `hashes` only), by content hash."""
        with self._database.reading() as connection:
            if hashes is None:
                return to_derived(connection.execute(_DERIVED, {"owner": owner}).all())
            rows: list[Any] = []
            for batch in batches(list(hashes), BATCH):
                rows += connection.execute(_DERIVED_OF, {"owner": owner, "hashes": batch}).all()
            return to_derived(rows)

    def store_derived(
        self,
        texts: Sequence[DerivedText],
        *,
        purged_until: int | None = None,
        embedder: str | None = None,
    ) -> None:
        """Keep derived texts; newer ones take the place of older ones.

        purged_until: `last_purge` of their owner, from before the events that the texts come from
        were read; nothing is kept of an owner of whom something was purged since then, because it
        may be what was purged. embedder: who made the vectors; raises BadInput if the memory has
        another one by now.
        """
        rows = [derived_row(text) for text in texts]
        if not rows:
            return
        with self._database.writing() as connection:
            check_embedder(connection, embedder)
            if purged_until is not None:
                purged = {
                    owner
                    for owner in {row["owner"] for row in rows}
                    if (connection.execute(LAST_PURGE, {"owner": owner}).scalar() or 0)
                    > purged_until
                }
                rows = [row for row in rows if row["owner"] not in purged]
            self._database.upsert(connection, DERIVED, rows)

    def reset_derived(self, meta: Mapping[str, str]) -> None:
        """Forget all derived texts and note who makes the new ones, both or neither."""
        _check_keys(meta)
        with self._database.writing() as connection:
            connection.execute(delete(DERIVED))
            self._note(connection, meta)

    def export_events(self, owners: Sequence[str] | None = None) -> Iterator[Event]:
        """All events (of these owners) that are there now, in order, read bit by bit."""
        return transfer.export_events(self._database, owners)

    def import_events(
        self, events: Iterable[Event], behind: Behind = lambda _, __: set()
    ) -> transfer.Imported:
        """Take in events of another journal, all or nothing; returns how many were new.

        An event whose uid is here already is left as it is, so importing twice is safe. The events
        get new places behind all others, in the order given. `recorded_at` stays, unless it lies in
        the future or before the owner's newest event; it is moved just that far then. What was
        purged there is erased here as by `purge`. behind: what goes with it, by the events of its
        owner here. Raises BadInput for the first event that does not fit what is here and the
        events before it (as in `append`), or gives an item of another owner to somebody, and where
        an owner was purged whole there and something of it was told here alone; Unfinished as
        `purge` does.
        """
        told = list(events)
        with self._database.writing() as connection:
            done = transfer.import_events(connection, told, self._clock(), behind)
            pending = self._note_scrub(connection, done.erased)
        if pending:
            self._scrub(wait=True)
        return done

    def _note_scrub(self, connection: Connection, erased: bool) -> bool:
        """Whether old bytes are to be removed, noted with what is erased, so that no crash can come
        between."""
        pending = erased or bool(_meta(connection, [SCRUB_PENDING]))
        if pending:
            self._note(connection, {SCRUB_PENDING: uuid4().hex})
        return pending

    def _note(self, connection: Connection, pairs: Mapping[str, str]) -> None:
        rows = [{"key": key, "value": value} for key, value in pairs.items()]
        self._database.upsert(connection, META, rows)

    def _scrub(self, *, wait: bool) -> None:
        """Remove the old bytes of what was erased; Unfinished if that has to be done later."""
        self._scrub_pending = True
        purge_id = self.get_meta(SCRUB_PENDING)
        try:
            self._database.scrub(wait=wait)
        except MemogradError as error:
            raise Unfinished(
                "What was purged is erased from the journal, but old bytes of it stay in its files"
                " until nobody else reads or writes there; memograd tries again at the next purge,"
                f" closing or opening. {error}"
            ) from error
        with self._database.writing() as connection:
            # Another process may have purged more since: that is left to be scrubbed.
            mine = (META.c.key == SCRUB_PENDING) & (META.c.value == purge_id)
            connection.execute(delete(META).where(mine))
        self._scrub_pending = False

    def _finish_scrubbing(self) -> None:
        """Do what an earlier purge had to leave, if that is possible without waiting."""
        try:
            self._scrub_pending = self.get_meta(SCRUB_PENDING) is not None
            if self._scrub_pending:
                self._scrub(wait=False)
        except MemogradError as error:
            logger.warning("%s", error)

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


def _meta(connection: Connection, keys: Sequence[str]) -> dict[str, str]:
    noted = connection.execute(select(META.c.key, META.c.value).where(META.c.key.in_(keys)))
    return {key: value for key, value in noted}


def _check_keys(pairs: Mapping[str, str]) -> None:
    for key in sorted(OWN_KEYS & pairs.keys()):
        raise BadInput(f"The key {key!r} belongs to the journal: choose another.")
