"""How many items owners were ever given, counted on rather than counted again.

Events are never taken away, so a count that was right at some place of the journal only has to be
raised by what came behind it. Invariant: the counts are those of counting anew
(`tests/memory/test_journal_places.py`). May import sqlalchemy, the room's `events`, and the files
of this folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import bindparam, func, select
from sqlalchemy.engine import Connection

from memograd.memory.events import EventKind
from memograd.memory.journal.rows import batches
from memograd.memory.journal.schema import EVENTS

BATCH: Final = 500  # owners in one IN (...)
HELD_OWNERS: Final = 10_000

# How many, and the last place that was looked at. Answered from the index `events_by_kind`.
_COUNT = select(func.count(), func.max(EVENTS.c.seq)).where(EVENTS.c.kind == EventKind.ADD.value)
_COUNT_BEHIND = _COUNT.where(EVENTS.c.seq > bindparam("after"))
_COUNT_OF_ONE = _COUNT_BEHIND.where(EVENTS.c.owner == bindparam("owner"))
_COUNT_OF_SOME = _COUNT.where(EVENTS.c.owner.in_(bindparam("owners", expanding=True)))


class AddedCounts:
    """The counts that this process knows, each with the place up to which it holds."""

    def __init__(self) -> None:
        self._all = (0, 0)  # threads may overwrite each other's: each pair is right by itself
        self._of_owner: dict[str, tuple[int, int]] = {}

    def of_all(self, connection: Connection) -> int:
        """Of all owners together."""
        known, place = self._all
        more: int
        query = _COUNT_BEHIND if place else _COUNT  # the first time, an index is read to the end
        more, last = connection.execute(query, {"after": place} if place else {}).one()
        self._all = (known + more, last or place)
        return known + more

    def of(self, connection: Connection, owners: Sequence[str]) -> int:
        """Of these owners."""
        if len(owners) == 1:
            return self._of_one(connection, owners[0])
        return sum(
            connection.execute(_COUNT_OF_SOME, {"owners": batch}).one()[0]
            for batch in batches(list(owners), BATCH)
        )

    def _of_one(self, connection: Connection, owner: str) -> int:
        known, place = self._of_owner.get(owner, (0, 0))
        more: int
        more, last = connection.execute(_COUNT_OF_ONE, {"owner": owner, "after": place}).one()
        if len(self._of_owner) >= HELD_OWNERS:
            self._of_owner.clear()
        self._of_owner[owner] = (known + more, last or place)
        return known + more
