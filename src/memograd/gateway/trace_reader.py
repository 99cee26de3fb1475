"""Looking at a trace store without touching it, page by page.

`TraceStore` is the gateway's own and ends rollouts whose time is over when it is asked; a reader
says what was last written. Invariant: nothing is written by a reader, neither tables nor states.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import and_, or_, select

from memograd.gateway.database import (
    CALLS,
    CHOICES,
    ROLLOUTS,
    TraceDatabase,
    call_of,
    rollout_of,
    sayable,
)
from memograd.gateway.records import CallRecord, RolloutRecord


@dataclass(frozen=True)
class TracePage:
    """Rollouts, the newest first. older: the rollout after which the next page begins, None at the
    end."""

    rollouts: list[RolloutRecord]
    older: str | None


class TraceReader:
    """An open store; safe to share by threads."""

    def __init__(self, url: str) -> None:
        """Open it; raises BadInput where there are no traces of this format."""
        self._database = TraceDatabase(url, read_only=True)
        self.place = self._database.place

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def rollout(self, rollout_id: str) -> RolloutRecord | None:
        """One rollout, None where there is none of that id."""
        wanted = select(ROLLOUTS).where(ROLLOUTS.c.id == sayable(rollout_id))
        with self._database.reading() as connection:
            row = connection.execute(wanted).first()
        return None if row is None else rollout_of(row)

    def page(self, *, state: str | None, after: str | None, limit: int) -> TracePage:
        """Up to `limit` rollouts that are older than the rollout `after`; from the newest on where
        that is None or unknown."""
        table = ROLLOUTS.c
        wanted = select(ROLLOUTS).order_by(table.created_at.desc(), table.id.desc())
        if state is not None:
            wanted = wanted.where(table.state == state)
        last = None if after is None else self.rollout(after)
        if last is not None:
            same = and_(table.created_at == last.created_at, table.id < last.id)
            wanted = wanted.where(or_(table.created_at < last.created_at, same))
        with self._database.reading() as connection:
            rows = connection.execute(wanted.limit(limit + 1)).all()
        found = [rollout_of(row) for row in rows[:limit]]
        return TracePage(found, found[-1].id if len(rows) > limit else None)

    def calls(self, rollout_id: str, *, first: int, limit: int) -> list[CallRecord]:
        """Up to `limit` calls of a rollout from the number `first` on, in their order."""
        of_calls = select(CALLS).where(
            CALLS.c.rollout_id == sayable(rollout_id), CALLS.c.number >= first
        )
        with self._database.reading() as connection:
            rows = connection.execute(of_calls.order_by(CALLS.c.number).limit(limit)).all()
            numbers = [row.number for row in rows]
            of_choices = select(CHOICES).where(
                CHOICES.c.rollout_id == sayable(rollout_id), CHOICES.c.number.in_(numbers)
            )
            choices = connection.execute(of_choices.order_by(CHOICES.c.place)).all()
        return [call_of(row, [one for one in choices if one.number == row.number]) for row in rows]
