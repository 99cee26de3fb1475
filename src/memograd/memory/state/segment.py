"""Some records of a corpus for good: the immutable building stone that forks share.

A `Segment` never changes once it is built. A `Part` is a segment as one corpus sees it: the segment
and a mask of the rows that this corpus has removed; it is replaced, never changed, so a fork that
holds the old part sees what it always saw. Joining parts makes a new segment of the rows that are
alive, in the same order.

Invariant: joining changes nothing that a search can see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np

from memograd.memory.state.columns import Columns, describe, join_columns
from memograd.memory.state.postings import Postings, build_postings, join_postings


class Record(Protocol):
    """Anything with an id; a corpus holds one record of an id at a time."""

    @property
    def id(self) -> str:
        """Unique within a corpus."""
        ...


T = TypeVar("T", bound=Record)


@dataclass(frozen=True, slots=True)
class Labels:
    """Texts that rows have in common. codes: int64 `[n]`, numbers into them."""

    texts: tuple[str, ...]
    codes: np.ndarray


@dataclass(frozen=True, slots=True)
class Segment(Generic[T]):
    """records `[n]`, their vectors float32 `[n, d]`, lengths in terms int64 `[n]`, postings, and
    the row of each id."""

    records: list[T]
    matrix: np.ndarray
    lengths: np.ndarray
    postings: Postings
    rows: dict[str, int]
    columns: list[Columns] = field(default_factory=list, compare=False, repr=False)
    labels: dict[str, Labels] = field(default_factory=dict, compare=False, repr=False)

    def labelled(self, attribute: str) -> Labels:
        """Its records by the text of one attribute; made when it is first asked for."""
        if attribute not in self.labels:
            numbers: dict[str, int] = {}
            values = (str(getattr(record, attribute)) for record in self.records)
            codes = [numbers.setdefault(value, len(numbers)) for value in values]
            self.labels[attribute] = Labels(tuple(numbers), np.array(codes, np.int64))
        return self.labels[attribute]

    def described(self) -> Columns:
        """What the ranker wants to know of its records; made when it is first asked for."""
        if not self.columns:
            self.columns.append(describe(self.records))
        return self.columns[0]


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """A segment without the rows in `dead` (bool `[n]`; None where every row is alive).

    alive: number of rows that are. alive_length: the sum of their lengths in terms.
    """

    segment: Segment[T]
    dead: np.ndarray | None
    alive: int
    alive_length: int

    @property
    def size(self) -> int:
        """Number of rows, dead ones included."""
        return len(self.segment.records)

    def row(self, id: str) -> int | None:
        """Where the record is, None when it is not here or no longer."""
        row = self.segment.rows.get(id)
        if row is None or (self.dead is not None and self.dead[row]):
            return None
        return row

    def without(self, row: int) -> Part[T]:
        """The same part after the removal of one row that is alive."""
        dead = np.zeros(self.size, bool) if self.dead is None else self.dead.copy()
        dead[row] = True
        length = int(self.segment.lengths[row])
        return Part(self.segment, dead, self.alive - 1, self.alive_length - length)

    def count_by(self, attribute: str) -> Counter[str]:
        """How many rows that are alive have each text of an attribute."""
        labels = self.segment.labelled(attribute)
        codes = labels.codes if self.dead is None else labels.codes[~self.dead]
        counts = np.bincount(codes, minlength=len(labels.texts)).tolist()
        return Counter({text: n for text, n in zip(labels.texts, counts, strict=True) if n})

    def alive_rows(self) -> np.ndarray:
        """Row numbers in rising order."""
        return np.arange(self.size) if self.dead is None else np.flatnonzero(~self.dead)

    def __iter__(self) -> Iterator[T]:
        if self.dead is None:
            return iter(self.segment.records)
        records = self.segment.records
        return (records[row] for row in self.alive_rows().tolist())


def build_part(
    records: Sequence[T], matrix: np.ndarray, terms_per_record: Sequence[Sequence[str]]
) -> Part[T]:
    """A part of new records, all alive. The matrix, float32 `[n, d]`, is kept, not copied."""
    lengths = np.fromiter(map(len, terms_per_record), np.int64, len(records))
    return _part(list(records), matrix, lengths, build_postings(terms_per_record))


def join_parts(parts: Sequence[Part[T]]) -> Part[T]:
    """One part with the living rows of several, in their order."""
    offset = 0
    rows_of_parts, renumbered = [], []
    for part in parts:
        rows = part.alive_rows()
        new_rows = np.full(part.size, -1, np.int32)
        new_rows[rows] = np.arange(offset, offset + len(rows))
        offset += len(rows)
        rows_of_parts.append(rows)
        renumbered.append((part.segment.postings, new_rows))
    joined = _part(
        [record for part in parts for record in part],
        np.concatenate(
            [
                p.segment.matrix if p.dead is None else p.segment.matrix[rows]
                for p, rows in zip(parts, rows_of_parts, strict=True)
            ]
        ),
        np.concatenate(
            [p.segment.lengths[rows] for p, rows in zip(parts, rows_of_parts, strict=True)]
        ),
        join_postings(renumbered),
    )
    known = [part.segment.columns for part in parts]
    if all(known):
        taken = zip(known, rows_of_parts, strict=True)
        joined.segment.columns.append(join_columns([one[0].taken(rows) for one, rows in taken]))
    return joined


def _part(records: list[T], matrix: np.ndarray, lengths: np.ndarray, postings: Postings) -> Part[T]:
    matrix.flags.writeable = False
    rows = {record.id: row for row, record in enumerate(records)}
    segment = Segment(records, matrix, lengths, postings, rows)
    return Part(segment, None, len(records), int(lengths.sum()))
