"""What a corpus is at one moment: a few parts, a tail of records that are no part yet, a layout.

The layout says how turns hang together, too. A sitting ends where the session number changes or
nobody spoke for three hours. What turns say of their neighbours fades in a monologue, where the
next message speaks of something else, and in a sitting of one remark.

Invariants: a view never changes, but for what is computed from it once and kept; nothing here
writes. Sittings depend on the columns alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Final, Generic

import numpy as np

from memograd.memory.state.columns import Columns, describe, join_columns, spoken
from memograd.memory.state.segment import SegmentPart, T, build_part, join_parts, weave_parts

EXACT_BLOCK: Final = 2048
PAUSE_DAYS: Final = 0.125
NEAR: Final = 3  # turns on either side that tell whether people talk
FULL_SITTING: Final = 8  # turns from which on a sitting tells all it can of its turns
FULL_REACH_DAYS: Final = 60.0


@dataclass(frozen=True, slots=True)
class PendingRow(Generic[T]):
    """One record of the tail, with its vector float32 `[d]`, its terms, and the place of the event
    that brought it."""

    record: T
    vector: np.ndarray
    terms: tuple[str, ...]
    counts: Counter[str]
    since: int


@dataclass(frozen=True, slots=True)
class CorpusView(Generic[T]):
    """What a corpus is at one moment; neither the tuple nor the dict is ever changed.

    A place is the number of a row counted over all parts, dead rows included, and then the tail;
    places rise in the order of insertion.
    """

    parts: tuple[SegmentPart[T], ...] = ()
    tail: dict[str, PendingRow[T]] | None = None
    layout: list[Layout] = field(default_factory=list, compare=False, repr=False)

    def pending(self) -> list[PendingRow[T]]:
        return list(self.tail.values()) if self.tail else []

    def __len__(self) -> int:
        return sum(part.alive for part in self.parts) + len(self.tail or ())

    def find(self, id: str) -> tuple[int, int] | None:
        """Number of the part and row in it, the latest part first."""
        for number in range(len(self.parts) - 1, -1, -1):
            row = self.parts[number].row(id)
            if row is not None:
                return number, row
        return None

    def starts(self) -> list[int]:
        """The first place of every part, and of the tail."""
        return [0, *accumulate(part.size for part in self.parts)]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the living records of a view are, and what is known of them.

    places: int64 `[n]`, or None where every place is alive. lengths: int64 `[n]` in terms.
    """

    places: np.ndarray | None
    lengths: np.ndarray
    columns: Columns
    sat: list[Sittings] = field(default_factory=list, compare=False, repr=False)
    sums: list[np.ndarray] = field(default_factory=list, compare=False, repr=False)

    def window_lengths(self) -> np.ndarray:
        """float64 `[n]`: the length of each record with its neighbours of the same sitting."""
        return self._sums()[0]

    def sitting_lengths(self) -> np.ndarray:
        """int64 `[sittings]`: the length of each sitting."""
        return self._sums()[1]

    def _sums(self) -> list[np.ndarray]:
        if not self.sums:
            sat = self.sittings()
            window = self.lengths.astype(np.float64)
            window[1:] += self.lengths[:-1] * sat.joined
            window[:-1] += self.lengths[1:] * sat.joined
            self.sums.extend([window, np.add.reduceat(self.lengths, sat.starts)])
        return self.sums

    def sittings(self) -> Sittings:
        """How the records hang together; made when it is first asked for."""
        if not self.sat:
            self.sat.append(sittings_of(self.columns))
        return self.sat[0]


def layout_of(view: CorpusView[T]) -> Layout:
    pending = view.pending()
    columns = [part.segment.described() for part in view.parts]
    lengths = [part.segment.lengths for part in view.parts]
    if pending:
        columns.append(describe([p.record for p in pending]))
        lengths.append(np.array([len(p.terms) for p in pending], np.int64))
    whole = join_columns(columns) if columns else describe([])
    sizes = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
    if all(part.dead is None for part in view.parts):
        return Layout(None, sizes, spoken(whole))
    starts = view.starts()
    alive = [start + part.alive_rows() for part, start in zip(view.parts, starts, strict=False)]
    places = np.concatenate([*alive, starts[-1] + np.arange(len(pending))])
    return Layout(places, sizes[places], spoken(whole.taken(places)))


@dataclass(frozen=True, slots=True)
class Sittings:
    """of: int64 `[n]`, number of the sitting. starts, sizes: int64 `[sittings]`, its first turn and
    how many it has. linked: bool `[n + 1]`, whether a turn is of the same as the one before it;
    false for the first and behind the last. talk, context: float64 `[n]` in [0, 1], how much
    neighbours and sitting say of a turn. place: float64 `[n]`, from 0 for the first turn to
    `reach`, which is 1 from two months on. years: that turns were said in."""

    of: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    linked: np.ndarray
    talk: np.ndarray
    context: np.ndarray
    place: np.ndarray
    reach: float
    years: tuple[int, ...]

    @property
    def joined(self) -> np.ndarray:
        """bool `[n - 1]`: whether the next turn is of the same."""
        return self.linked[1:-1]


def sittings_of(columns: Columns) -> Sittings:
    """The sittings of turns in the order they were heard."""
    n = len(columns.day)
    if not n:
        none, empty = np.zeros(0, np.int64), np.zeros(0)
        return Sittings(none, none, none, np.zeros(1, bool), empty, empty, empty, 0.0, ())
    with np.errstate(invalid="ignore"):
        pause = np.abs(np.diff(columns.day)) > PAUSE_DAYS
    joined = (columns.session[1:] == columns.session[:-1]) & ~pause
    of = np.concatenate([[0], np.cumsum(~joined)])
    starts = np.concatenate([[0], 1 + np.flatnonzero(~joined)])
    sizes = np.bincount(of)
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
        sizes=sizes,
        linked=np.concatenate([[False], joined, [False]]),
        talk=talk,
        context=np.clip((sizes[of] - 1) / (FULL_SITTING - 1), 0, 1) * talk,
        place=np.arange(n) / max(n - 1, 1) * reach,
        reach=reach,
        years=years,
    )


def _year(day: float) -> int:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).year


def earlier_view(
    view: CorpusView[T], place: int, without: Collection[str], brought: CorpusView[T]
) -> CorpusView[T]:
    """The records that events up to `place` brought, without those of some ids, and with those of
    another view, in the order of the events.

    A part that no record of the other view falls into keeps its segment, and costs a mask.
    """
    own = [*view.parts, *([part_of(view.pending())] if view.tail else [])]
    parts = []
    for part in own:
        keep = part.segment.since <= place
        keep[[row for id in without if (row := part.segment.rows.get(id)) is not None]] = False
        if (kept := part.only(keep)).alive:
            parts.append(kept)
    others = [*brought.parts, *([part_of(brought.pending())] if brought.tail else [])]
    if not others:
        return CorpusView(tuple(parts))
    new = join_parts(others)
    since = new.segment.since
    merged, at = [], 0
    for part in parts:
        rows = part.segment.since[part.alive_rows()[[0, -1]]]
        before, behind = np.searchsorted(since, rows).tolist()
        if before > at:
            merged.append(_between(new, at, before))
        merged.append(weave_parts(part, _between(new, before, behind)) if behind > before else part)
        at = behind
    if at < len(since):
        merged.append(_between(new, at, len(since)))
    return CorpusView(tuple(merged))


def _between(part: SegmentPart[T], start: int, stop: int) -> SegmentPart[T]:
    """Some rows of a part, as one of their own."""
    if (start, stop) == (0, part.size):
        return part
    rows = np.arange(part.size)
    return join_parts([part.only((rows >= start) & (rows < stop))])


def part_of(pending: Sequence[PendingRow[T]]) -> SegmentPart[T]:
    """The tail, which is not empty, as a part."""
    return build_part(
        [p.record for p in pending],
        stacked(pending),
        [p.terms for p in pending],
        [p.since for p in pending],
    )


def stacked(pending: Sequence[PendingRow[T]]) -> np.ndarray:
    """Their vectors, float32 `[n, d]`."""
    return np.concatenate([p.vector for p in pending]).reshape(len(pending), -1)


def gathered(
    view: CorpusView[T], starts: Sequence[int], pending: Sequence[PendingRow[T]], places: np.ndarray
) -> np.ndarray:
    """The vectors at these places (rising), float32 `[len(places), d]`."""
    cuts = np.searchsorted(places, starts)
    rows = [
        part.segment.vectors.at(places[cut:end] - start)
        for part, start, cut, end in zip(view.parts, starts, cuts[:-1], cuts[1:], strict=False)
        if cut < end
    ]
    in_tail = places[cuts[-1] :] - starts[-1]
    if len(in_tail):
        rows.append(stacked([pending[at] for at in in_tail.tolist()]))
    return np.concatenate(rows) if len(rows) > 1 else rows[0]


def cosines(rows: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Dot products of float32 `[m, d]` with `[d]` in float64, rounded to 6 decimals.

    Each row is summed by itself, so its cosine does not depend on the rows around it, as it would
    in a matrix product.
    """
    wide = query.astype(np.float64)
    cosines = np.empty(len(rows), np.float64)
    for start in range(0, len(rows), EXACT_BLOCK):
        block = rows[start : start + EXACT_BLOCK].astype(np.float64)
        block *= wide
        cosines[start : start + EXACT_BLOCK] = block.sum(axis=1)
    return np.round(cosines, 6) + 0.0  # no -0.0
