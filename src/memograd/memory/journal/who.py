"""Questions about all owners: who there are, of whom anything is left, how much.

Invariant: what was purged counts nowhere.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import case, exists, func, select
from sqlalchemy.engine import Connection

from memograd.memory.journal.rows import to_moment
from memograd.memory.journal.schema import EVENTS
from memograd.memory.records.events import EventKind
from memograd.memory.records.scope import Scope

_LAST = select(func.max(EVENTS.c.seq)).group_by(EVENTS.c.owner)
_OTHER = EVENTS.alias()
_NOT_ERASED = select(EVENTS.c.owner).where(
    EVENTS.c.seq.in_(_LAST),
    (EVENTS.c.kind != EventKind.PURGE.value)
    | exists().where(
        _OTHER.c.owner == EVENTS.c.owner,
        _OTHER.c.kind != EventKind.PURGE.value,
        _OTHER.c.erased.is_(False),
    ),
)


def owners(
    connection: Connection, user_id: str | None, agent_id: str | None, run_id: str | None
) -> list[str]:
    query = select(EVENTS.c.owner).distinct()
    if user_id is not None:  # a user owns all that bears the id, so one event is enough
        query = select(EVENTS.c.owner).where(EVENTS.c.owner == f"user:{user_id}").limit(1)
    if agent_id is not None:
        query = query.where(EVENTS.c.agent_id == agent_id)
    if run_id is not None:
        query = query.where(EVENTS.c.run_id == run_id)
    return sorted(connection.execute(query).scalars())


def owners_left(connection: Connection) -> list[str]:
    """All owners, sorted, but for those of whom everything was purged."""
    return sorted(connection.execute(_NOT_ERASED).scalars())


def living(
    connection: Connection, owner: str | None
) -> list[tuple[Scope, int, datetime, datetime]]:
    # Within its owner an item is added once, and once more for every time it was deleted.
    counted = case((EVENTS.c.kind == EventKind.ADD.value, 1), else_=-1)
    step = case((EVENTS.c.kind == EventKind.UPDATE.value, 0), else_=counted)
    told = EVENTS.c.recorded_at
    user, agent, run = EVENTS.c.user_id, EVENTS.c.agent_id, EVENTS.c.run_id
    kinds = [EventKind.ADD.value, EventKind.UPDATE.value, EventKind.DELETE.value]
    query = (
        select(user, agent, run, func.sum(step), func.min(told), func.max(told))
        .where(EVENTS.c.kind.in_(kinds), EVENTS.c.erased.is_(False))
        .group_by(user, agent, run)
    )
    if owner is not None:
        query = query.where(EVENTS.c.owner == owner)
    return [
        (Scope(*ids), int(count), to_moment(first), to_moment(last))
        for *ids, count, first, last in connection.execute(query)
    ]
