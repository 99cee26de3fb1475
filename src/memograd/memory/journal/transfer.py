"""Events from one journal to another.

Invariants: importing an export, once or often, in whole or in parts, gives each event once, with
its uid, contents and time; what was purged there is erased here too, and nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import func, insert, select
from sqlalchemy.engine import Connection

from memograd.errors import BadInput
from memograd.memory.journal.engine import Database
from memograd.memory.journal.fit import BATCH, misfit
from memograd.memory.journal.purge import Behind, erase_as_there
from memograd.memory.journal.rows import (
    EVENT_COLUMNS,
    batches,
    insert_rows,
    to_events,
    to_micros,
    to_row,
)
from memograd.memory.journal.schema import EVENTS
from memograd.memory.records.events import Event, EventKind, NewEvent

PAGE: Final = 1000  # events held in memory at a time by an export


def export_events(database: Database, owners: Sequence[str] | None) -> Iterator[Event]:
    """The events that are there when it begins, in order; no lock is held between pages."""
    query = select(*EVENT_COLUMNS).order_by(EVENTS.c.seq).limit(PAGE)
    if owners is not None:
        query = query.where(EVENTS.c.owner.in_(owners))
    with database.reading() as connection:
        last = connection.execute(select(func.max(EVENTS.c.seq))).scalar() or 0
    after = 0
    while True:
        with database.reading() as connection:
            page = query.where(EVENTS.c.seq > after, EVENTS.c.seq <= last)
            events = to_events(connection.execute(page).all())
        yield from events
        if len(events) < PAGE:
            return
        after = events[-1].seq


class Imported(NamedTuple):
    """How many events were new, and whether anything was erased that was here."""

    new: int
    erased: bool


def import_events(
    connection: Connection, events: Sequence[Event], now: datetime, behind: Behind
) -> Imported:
    """Write those events that are not here yet, and erase what was erased there, within the
    caller's write transaction.

    behind: what goes with subjects that are purged. Raises BadInput; the caller's transaction is to
    be given up then.
    """
    new = {event.uid: _row(event) for event in events}
    known = {uid: new.pop(uid) for uid in [*_known_uids(connection, list(new))]}
    rows = list(new.values())
    erased = erase_as_there(connection, known, rows, behind)
    _take_purged_away(rows)
    _check_items(connection, rows)
    if (found := misfit(connection, rows)) is not None:
        raise BadInput(
            f"The memory {found.why} what is here: both have changed since they were copied,"
            " import it into a journal of its own."
        )
    insert_rows(connection, [to_row(event) for event in erased.tombstones], now)
    _place(connection, rows, to_micros(now))
    if rows:
        connection.execute(insert(EVENTS), rows)
    return Imported(len(rows), erased.touched)


def _take_purged_away(rows: Sequence[dict[str, Any]]) -> None:
    """Erase in new rows what a later one of them purges: files of several copies, joined."""
    purged: set[tuple[str, str]] = set()
    for row in reversed(rows):
        owner = row["owner"]
        if row["kind"] == EventKind.PURGE.value:
            purged.add((owner, row["subject"]))
        elif purged & {(owner, owner), (owner, row["subject"])}:
            row |= {"before": None, "after": None, "reason": "", "erased": True}


def _row(event: Event) -> dict[str, Any]:
    contents = NewEvent(
        event.kind,
        event.scope,
        event.subject,
        event.before,
        event.after,
        event.actor,
        event.reason,
    )
    known = {"uid": event.uid, "erased": event.erased, "recorded_at": to_micros(event.recorded_at)}
    return to_row(contents) | known


def _known_uids(connection: Connection, uids: Sequence[str]) -> Iterator[str]:
    for batch in batches(uids, BATCH):
        yield from connection.execute(select(EVENTS.c.uid).where(EVENTS.c.uid.in_(batch))).scalars()


def _check_items(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Raise BadInput if an item would have two owners: items are found by their id alone."""
    added = [row for row in rows if row["kind"] == EventKind.ADD.value]
    owners: dict[str, str] = {}
    for batch in batches(sorted({row["subject"] for row in added}), BATCH):
        query = select(EVENTS.c.subject, EVENTS.c.owner).where(
            EVENTS.c.subject.in_(batch), EVENTS.c.kind == EventKind.ADD.value
        )
        owners |= {subject: owner for subject, owner in connection.execute(query.distinct())}
    for row in added:
        owner = owners.setdefault(row["subject"], row["owner"])
        if owner != row["owner"]:
            raise BadInput(
                f"The memory {row['subject']!r} of {row['owner']} belongs to {owner} here: import"
                " it into a journal of its own."
            )


def _place(connection: Connection, rows: Sequence[dict[str, Any]], now: int) -> None:
    """Give each row its `seq`, and a time not before its owner's newest event."""
    seq = connection.execute(select(func.max(EVENTS.c.seq))).scalar() or 0
    newest: dict[str, int] = {}
    for batch in batches(sorted({row["owner"] for row in rows}), BATCH):
        query = (
            select(EVENTS.c.owner, func.max(EVENTS.c.recorded_at))
            .where(EVENTS.c.owner.in_(batch))
            .group_by(EVENTS.c.owner)
        )
        newest |= {owner: recorded_at for owner, recorded_at in connection.execute(query)}
    for place, row in enumerate(rows, seq + 1):
        # A time to come would hold up the clock of everything that is appended afterwards.
        moment = max(min(row["recorded_at"], now), newest.get(row["owner"], 0))
        row |= {"seq": place, "recorded_at": moment}
        newest[row["owner"]] = moment
