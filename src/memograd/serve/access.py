"""The access log: who read, wrote or erased what, through which door.

A line names the key, what was done, the owner and the ids of the items; never a text or a query, so
that a purge has nothing to erase here. Lines are written together, some `FLUSH_SECONDS` apart, off
the path of the request: what the last moment before a `kill -9` read may be missing, what is closed
in order is complete.

Lines older than the days that they are kept go away in the same thread, at most `SWEPT_LINES`
between two writings, the oldest first, so that no request and no line waits for it. Invariants: no
answer leaves before its line is queued; no line goes before its time.
"""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Row, delete, select

from memograd.errors import MemogradError
from memograd.serve.database import ACCESS, ServeDatabase, moment, now_micros

logger = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 0.25
KEPT_DAYS: Final = 90
SWEEP_SECONDS: Final = 3600.0
"""From one look for old lines to the next, once there are none left."""
SWEPT_LINES: Final = 1000
MOST_ITEMS: Final = 1000
"""Ids in a line; `count` says how many there were."""
MOST_WAITING: Final = 100_000
"""Lines kept while the database is away; the oldest are dropped then, and that is logged."""


@dataclass(frozen=True)
class Access:
    """One line, as it is read back."""

    seq: int
    at: str
    key_id: str
    key_name: str
    via: str
    action: str
    owner: str | None
    items: list[str]
    count: int


class AccessLog:
    """Writes lines in a thread of its own, reads them, and lets old ones go."""

    def __init__(self, database: ServeDatabase, *, days: float = KEPT_DAYS) -> None:
        """days: how long a line is kept; 0: for ever."""
        self._database, self._days = database, days
        self._sweep_at = time.monotonic()
        self._waiting: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._closing = threading.Event()
        self._away = False
        self._thread = threading.Thread(target=self._run, name="memograd-access", daemon=True)
        self._thread.start()

    def note(
        self,
        *,
        key_id: str,
        key_name: str,
        via: str,
        action: str,
        owner: str | None,
        items: Iterable[str] = (),
    ) -> None:
        """Queue a line."""
        ids = list(items)
        line = {
            "at": now_micros(),
            "key_id": key_id,
            "key_name": key_name,
            "via": via,
            "action": action,
            "owner": owner,
            "items": json.dumps(ids[:MOST_ITEMS]),
            "count": len(ids),
        }
        with self._lock:
            self._waiting.append(line)

    def read(self, *, owner: str | None, before: int | None, limit: int) -> list[Access]:
        """The newest lines, about one owner (None: about all), those before the line `before`."""
        self.flush()
        query = select(ACCESS).order_by(ACCESS.c.seq.desc()).limit(limit)
        if owner is not None:
            query = query.where(ACCESS.c.owner == owner)
        if before is not None:
            query = query.where(ACCESS.c.seq < before)
        with self._database.reading() as connection:
            return [_access(row) for row in connection.execute(query)]

    def flush(self) -> None:
        """Write what is queued; raises MemogradError, keeping the queue, when that fails."""
        with self._flushing:
            with self._lock:
                lines, self._waiting = self._waiting, []
            if not lines:
                return
            try:
                with self._database.writing() as connection:
                    connection.execute(ACCESS.insert(), lines)
            except MemogradError:
                with self._lock:
                    self._waiting = [*lines, *self._waiting]
                    lost = len(self._waiting) - MOST_WAITING
                    if lost > 0:
                        del self._waiting[:lost]
                        logger.error("%d lines of the access log were dropped", lost)
                raise

    def sweep(self) -> int:
        """Let the oldest lines go that are older than they are kept; returns how many there were.

        At most `SWEPT_LINES`: as many mean that there may be more.
        """
        if not self._days:
            return 0
        kept_from = now_micros() - int(self._days * 86_400e6)
        with self._database.reading() as connection:
            oldest = connection.execute(_OLDEST).all()
        old = list(itertools.takewhile(lambda line: line.at < kept_from, oldest))
        if old:
            with self._database.writing() as connection:
                connection.execute(delete(ACCESS).where(ACCESS.c.seq <= old[-1].seq))
        return len(old)

    def close(self) -> None:
        """Write what is queued and stop. Closing twice is harmless."""
        self._closing.set()
        self._thread.join()
        self._try_to_flush()

    def _run(self) -> None:
        while not self._closing.wait(FLUSH_SECONDS):
            self._try_to_flush()
            if not self._away and time.monotonic() >= self._sweep_at:
                self._try_to_sweep()

    def _try_to_sweep(self) -> None:
        try:
            all_gone = self.sweep() < SWEPT_LINES
        except MemogradError as error:
            logger.warning("Old lines of the access log stay for now: %s", error)
            all_gone = True
        if all_gone:
            self._sweep_at = time.monotonic() + SWEEP_SECONDS

    def _try_to_flush(self) -> None:
        try:
            self.flush()
        except MemogradError as error:
            if not self._away:
                logger.error("The access log is kept in memory until it can be written: %s", error)
            self._away = True
        else:
            if self._away:
                logger.warning("The access log is written again.")
            self._away = False


_OLDEST = select(ACCESS.c.seq, ACCESS.c.at).order_by(ACCESS.c.seq).limit(SWEPT_LINES)


def _access(row: Row[Any]) -> Access:
    values = row._asdict()
    return Access(
        **{**values, "at": str(moment(values["at"])), "items": json.loads(values["items"])}
    )
