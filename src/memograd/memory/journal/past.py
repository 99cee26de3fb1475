"""Questions about an owner's past: which event was the last by then, and what happened since.

Invariant: `recorded_at` of an owner's events never goes backwards, so those recorded by a moment
are those up to one place.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import bindparam, func, select
from sqlalchemy.engine import Connection

from memograd.memory.journal.fit import BATCH
from memograd.memory.journal.rows import EVENT_COLUMNS, batches, to_events, to_micros, to_moment
from memograd.memory.journal.schema import EVENTS
from memograd.memory.records.events import CLOSING, Event, EventKind

MOST_WORDS: Final = 20  # of a statement

_SEQ_AT = (
    select(EVENTS.c.seq)
    .where(EVENTS.c.owner == bindparam("owner"), EVENTS.c.recorded_at <= bindparam("until"))
    .order_by(EVENTS.c.recorded_at.desc(), EVENTS.c.seq.desc())
    .limit(1)
)
_CHANGES: Final = (
    EVENTS.c.owner == bindparam("owner"),
    EVENTS.c.kind.in_(("ADD", "UPDATE", "DELETE")),
)
_COUNT_CHANGES = select(func.count()).select_from(EVENTS).where(*_CHANGES)
_NTH_CHANGE = (
    select(EVENTS.c.recorded_at)
    .where(*_CHANGES)
    .order_by(EVENTS.c.seq)
    .limit(1)
    .offset(bindparam("before"))
)
_BETWEEN: Final = (
    EVENTS.c.owner == bindparam("owner"),
    EVENTS.c.seq > bindparam("after"),
    EVENTS.c.seq <= bindparam("until"),
)
_COUNT_BETWEEN = select(func.count()).select_from(EVENTS).where(*_BETWEEN)
_CHANGED_BETWEEN = (
    select(EVENTS.c.subject)
    .distinct()
    .where(*_BETWEEN, EVENTS.c.kind.in_([kind.value for kind in CLOSING]))
)
_PURGED_BETWEEN = select(func.count()).where(
    *_BETWEEN,
    EVENTS.c.kind == EventKind.PURGE.value,
    EVENTS.c.subject == bindparam("owner"),
)
# In no order: asked for one, SQLite goes through all events of the owner.
_HISTORIES = select(*EVENT_COLUMNS).where(
    EVENTS.c.subject.in_(bindparam("subjects", expanding=True)),
    EVENTS.c.owner == bindparam("owner"),
    EVENTS.c.seq <= bindparam("until"),
)
_DECLINED = (
    select(*EVENT_COLUMNS)
    .where(
        EVENTS.c.owner == bindparam("owner"),
        EVENTS.c.kind == EventKind.NONE.value,
        EVENTS.c.erased.is_(False),
    )
    .order_by(EVENTS.c.seq)
)


@dataclass(frozen=True, slots=True)
class ChangedRecords:
    """What happened to an owner's records between two places.

    subjects: those of events that may take a record away. everything: the owner was purged.
    """

    subjects: frozenset[str]
    everything: bool


def seq_at(connection: Connection, owner: str, moment: datetime) -> int:
    values = {"owner": owner, "until": to_micros(moment)}
    return connection.execute(_SEQ_AT, values).scalar() or 0


def count_changes(connection: Connection, owner: str) -> int:
    return connection.execute(_COUNT_CHANGES, {"owner": owner}).scalar_one()


def moment_of_change(connection: Connection, owner: str, number: int) -> datetime | None:
    values = {"owner": owner, "before": max(number, 1) - 1}
    micros = connection.execute(_NTH_CHANGE, values).scalar()
    return None if micros is None else to_moment(micros)


def count_between(connection: Connection, owner: str, after: int, until: int) -> int:
    values = {"owner": owner, "after": after, "until": until}
    return connection.execute(_COUNT_BETWEEN, values).scalar_one()


def changed_between(connection: Connection, owner: str, after: int, until: int) -> ChangedRecords:
    values = {"owner": owner, "after": after, "until": until}
    subjects = connection.execute(_CHANGED_BETWEEN, values).scalars()
    purged = connection.execute(_PURGED_BETWEEN, values).scalar_one()
    return ChangedRecords(frozenset(subjects), purged > 0)


def declined(connection: Connection, owner: str) -> list[Event]:
    return to_events(connection.execute(_DECLINED, {"owner": owner}).all())


def heard_with(connection: Connection, owner: str, words: Collection[str]) -> list[Event]:
    """An upper bound: the words may stand anywhere in the turn's contents. Of no words none."""
    if not words:
        return []
    query = select(*EVENT_COLUMNS).where(
        EVENTS.c.owner == owner,
        EVENTS.c.kind == EventKind.TURN.value,
        EVENTS.c.erased.is_(False),
        # SQLite folds the case of ASCII alone.
        *(
            EVENTS.c.after.icontains(word, autoescape=True)
            for word in sorted(words)[:MOST_WORDS]
            if word.isascii() or word.lower() == word.upper()
        ),
    )
    return to_events(connection.execute(query.order_by(EVENTS.c.seq)).all())


def histories(
    connection: Connection, owner: str, subjects: Collection[str], until: int
) -> list[Event]:
    rows: list[Any] = []
    for batch in batches(sorted(subjects), BATCH):
        values = {"owner": owner, "subjects": batch, "until": until}
        rows += connection.execute(_HISTORIES, values).all()
    return sorted(to_events(rows), key=lambda event: event.seq)
