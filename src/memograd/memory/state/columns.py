"""What a ranker wants to know of records before anybody asks, as columns of numpy.

Said once of every record when its segment is first searched, and carried along when segments are
joined. Invariant: a row depends on its record alone, so columns of a joined segment are the joined
columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np

from memograd.memory.records.items import MemoryItem
from memograd.memory.state.surface import surface

DAY_SECONDS = 86400.0


@dataclass(frozen=True, slots=True)
class Columns:
    """flags: int64 `[n]`, the bits of `surface`. day: float64 `[n]`, days since 1970, NaN where
    nothing says when. session: int64 `[n]`, -1 for items. names: lower-case speakers; speaker:
    int64 `[n]`, numbers into them."""

    flags: np.ndarray
    day: np.ndarray
    session: np.ndarray
    names: tuple[str, ...]
    speaker: np.ndarray

    def taken(self, rows: np.ndarray) -> Columns:
        """The same of some rows, in their order."""
        return Columns(
            self.flags[rows], self.day[rows], self.session[rows], self.names, self.speaker[rows]
        )


def describe(records: Sequence[Any]) -> Columns:
    """The columns of turns or items; of other records, which are not ranked, nothing is known."""
    n = len(records)
    flags, session, speaker = np.zeros(n, np.int64), np.full(n, -1, np.int64), np.zeros(n, np.int64)
    day = np.full(n, np.nan)
    numbers: dict[str, int] = {}
    for at, record in enumerate(records):
        name, moment = "", None
        if isinstance(record, MemoryItem):
            flags[at] = surface(record.text, "", False)
            moment = record.valid_from or record.updated_at
        elif hasattr(record, "speaker"):
            name = record.speaker.lower()
            caption = bool(record.caption or record.images)
            flags[at] = surface(record.text or record.caption or "", name, caption)
            moment, session[at] = record.time, record.session
        speaker[at] = numbers.setdefault(name, len(numbers))
        if moment is not None:
            day[at] = _day(moment)
    return Columns(flags, day, session, tuple(numbers), speaker)


def join_columns(columns: Sequence[Columns]) -> Columns:
    """The rows of all, one after the other."""
    if len(columns) == 1:
        return columns[0]
    numbers: dict[str, int] = {}
    speakers = []
    for one in columns:
        new = [numbers.setdefault(name, len(numbers)) for name in one.names]
        speakers.append(np.array(new, np.int64)[one.speaker] if len(one.speaker) else one.speaker)
    return Columns(
        np.concatenate([one.flags for one in columns]),
        np.concatenate([one.day for one in columns]),
        np.concatenate([one.session for one in columns]),
        tuple(numbers),
        np.concatenate(speakers),
    )


@lru_cache(maxsize=1 << 14)
def _day(moment: datetime) -> float:
    """Days since 1970 by the clock where it was said: a day there is a day."""
    return moment.replace(tzinfo=UTC).timestamp() / DAY_SECONDS
