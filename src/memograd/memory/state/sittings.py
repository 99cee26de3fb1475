"""How the turns of a memory hang together: which were said in one sitting, and how much they talk.

A sitting ends where the session number changes or nobody spoke for three hours. What turns say of
their neighbours fades in a monologue, where the next message speaks of something else, and in a
sitting of one remark. Invariant: depends on the columns alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from memograd.memory.state.columns import Columns

PAUSE_DAYS: Final = 0.125
NEAR: Final = 3  # turns on either side that tell whether people talk
FULL_SITTING: Final = 8  # turns from which on a sitting tells all it can of its turns
FULL_REACH_DAYS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Sittings:
    """of: int64 `[n]`, number of the sitting. starts: int64 `[sittings]`, its first turn. joined:
    bool `[n - 1]`, whether the next turn is of the same. talk, context: float64 `[n]` in [0, 1],
    how much neighbours and sitting say of a turn. place: float64 `[n]`, from 0 for the first turn
    to `reach`, which is 1 from two months on. years: that turns were said in."""

    of: np.ndarray
    starts: np.ndarray
    joined: np.ndarray
    talk: np.ndarray
    context: np.ndarray
    place: np.ndarray
    reach: float
    years: tuple[int, ...]


def sittings_of(columns: Columns) -> Sittings:
    """The sittings of turns in the order they were heard."""
    n = len(columns.day)
    if not n:
        none, empty = np.zeros(0, np.int64), np.zeros(0)
        return Sittings(none, none, np.zeros(0, bool), empty, empty, empty, 0.0, ())
    with np.errstate(invalid="ignore"):
        pause = np.abs(np.diff(columns.day)) > PAUSE_DAYS
    joined = (columns.session[1:] == columns.session[:-1]) & ~pause
    of = np.concatenate([[0], np.cumsum(~joined)])
    starts = np.concatenate([[0], 1 + np.flatnonzero(~joined)])
    sizes = np.bincount(of)[of]
    turned = np.concatenate([[0.0, 0.0], columns.speaker[1:] != columns.speaker[:-1]])
    total = np.cumsum(turned)
    first, end = np.maximum(np.arange(n) - NEAR, 0), np.minimum(np.arange(n) + NEAR + 1, n)
    talk = (total[end] - total[first]) / (end - first)
    known = columns.day[np.isfinite(columns.day)]
    reach = min(1.0, float(np.ptp(known)) / FULL_REACH_DAYS) if len(known) else min(1.0, n / 200)
    years: tuple[int, ...] = ()
    if len(known):
        first_year, last_year = (_year(float(day)) for day in (known.min(), known.max()))
        years = tuple(range(first_year, last_year + 1))
    return Sittings(
        of=of,
        starts=starts,
        joined=joined,
        talk=talk,
        context=np.clip((sizes - 1) / (FULL_SITTING - 1), 0, 1) * talk,
        place=np.arange(n) / max(n - 1, 1) * reach,
        reach=reach,
        years=years,
    )


def _year(day: float) -> int:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).year
