"""Some records of a corpus for good: the immutable building stone that forks share.

A `Segment` never changes once it is built; with it go its `Postings`, an inverted index in three
flat arrays: for every term the rows that hold it, how often, and how long those rows are, side by
side in one block. A `SegmentPart` is a segment as one corpus sees it: the segment and a mask of the
rows that this corpus has removed; it is replaced, never changed, so a fork that holds the old part
sees what it always saw. Joining parts makes a new segment of the rows that are alive, in the same
order. Weaving two makes one whose vectors and postings are made when somebody first searches there:
a past that is only looked at needs neither.

Invariant: joining changes nothing that a search can see: joined postings are those that building
them from the joined rows gives, up to the numbering of terms.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import Generic, Protocol, TypeVar

import numpy as np

from memograd.memory.state.columns import Columns, describe, join_columns
from memograd.memory.state.vectors import Vectors, weave_vectors


class Record(Protocol):
    """Anything with an id; a corpus holds one record of an id at a time."""

    @property
    def id(self) -> str:
        """Unique within a corpus."""
        ...


T = TypeVar("T", bound=Record)


@dataclass(frozen=True, slots=True)
class SharedTexts:
    """Texts that rows have in common. codes: int64 `[n]`, numbers into them."""

    texts: tuple[str, ...]
    codes: np.ndarray


@dataclass(frozen=True, slots=True)
class Postings:
    """vocabulary: term to its number. starts: int64 `[terms + 1]`, the block of term t is
    `starts[t]:starts[t + 1]`. rows, counts, lengths: int32 `[postings]`; rows rise in a block;
    lengths are those of the whole row in terms."""

    vocabulary: dict[str, int]
    starts: np.ndarray
    rows: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray

    def block(self, term: str) -> tuple[int, int] | None:
        """Where the postings of `term` begin and end; None when no row has it."""
        number = self.vocabulary.get(term)
        if number is None:
            return None
        return int(self.starts[number]), int(self.starts[number + 1])

    def holds(self, term: str, rows: np.ndarray) -> list[bool]:
        """Of each of these rows, int `[n]`, whether it has `term`."""
        block = self.block(term)
        if block is None:
            return [False] * len(rows)
        having = self.rows[block[0] : block[1]]
        at = np.minimum(having.searchsorted(rows), len(having) - 1)
        holding: list[bool] = (having[at] == rows).tolist()
        return holding


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search reads of records: vectors of `n` rows, and postings."""

    vectors: Vectors
    postings: Postings


@dataclass(frozen=True, slots=True)
class Segment(Generic[T]):
    """records `[n]`, lengths in terms int64 `[n]`, what a search reads, the row of each id, and the
    place of the event that brought each, int64 `[n]`, 0 without a journal.
    """

    records: list[T]
    lengths: np.ndarray
    searched: Callable[[], Searched]
    rows: dict[str, int]
    since: np.ndarray
    columns: list[Columns] = field(default_factory=list, compare=False, repr=False)
    labels: dict[str, SharedTexts] = field(default_factory=dict, compare=False, repr=False)

    @property
    def vectors(self) -> Vectors:
        """The vectors of its rows."""
        return self.searched().vectors

    @property
    def postings(self) -> Postings:
        """Which rows hold a term."""
        return self.searched().postings

    def with_matrix(self, matrix: np.ndarray) -> Segment[T]:
        """The same records with other vectors, which are kept, not copied."""
        searched = Searched(Vectors(matrix), self.postings)
        return replace(self, searched=lambda: searched)

    def labelled(self, attribute: str) -> SharedTexts:
        """Its records by the text of one attribute; made when it is first asked for."""
        if attribute not in self.labels:
            numbers: dict[str, int] = {}
            values = (str(getattr(record, attribute)) for record in self.records)
            codes = [numbers.setdefault(value, len(numbers)) for value in values]
            self.labels[attribute] = SharedTexts(tuple(numbers), np.array(codes, np.int64))
        return self.labels[attribute]

    def described(self) -> Columns:
        """What the ranker wants to know of its records; made when it is first asked for."""
        if not self.columns:
            self.columns.append(describe(self.records))
        return self.columns[0]


@dataclass(frozen=True, slots=True)
class SegmentPart(Generic[T]):
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

    def without(self, row: int) -> SegmentPart[T]:
        """The same part after the removal of one row that is alive."""
        dead = np.zeros(self.size, bool) if self.dead is None else self.dead.copy()
        dead[row] = True
        length = int(self.segment.lengths[row])
        return SegmentPart(self.segment, dead, self.alive - 1, self.alive_length - length)

    def only(self, keep: np.ndarray) -> SegmentPart[T]:
        """The same part with the rows that are alive and in `keep` (bool `[n]`)."""
        if self.dead is not None:
            keep = keep & ~self.dead
        alive = int(keep.sum())
        if alive == self.alive:
            return self
        return SegmentPart(self.segment, ~keep, alive, int(self.segment.lengths[keep].sum()))

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
    records: Sequence[T],
    matrix: np.ndarray,
    terms_per_record: Sequence[Sequence[str]],
    since: Sequence[int],
) -> SegmentPart[T]:
    """A part of new records, all alive. The matrix, float32 `[n, d]`, is kept, not copied."""
    lengths = np.fromiter(map(len, terms_per_record), np.int64, len(records))
    searched = Searched(Vectors(matrix), build_postings(terms_per_record))
    return _part(list(records), lengths, lambda: searched, np.array(since, np.int64))


def join_parts(parts: Sequence[SegmentPart[T]]) -> SegmentPart[T]:
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
    alive = list(zip(parts, rows_of_parts, strict=True))
    matrix = np.concatenate(
        [
            p.segment.vectors.whole() if p.dead is None else p.segment.vectors.at(rows)
            for p, rows in alive
        ]
    )
    searched = Searched(Vectors(matrix), join_postings(renumbered))
    joined = _part(
        [record for part in parts for record in part],
        np.concatenate([p.segment.lengths[rows] for p, rows in alive]),
        lambda: searched,
        np.concatenate([p.segment.since[rows] for p, rows in alive]),
    )
    known = [part.segment.columns for part in parts]
    if all(known):
        taken = zip(known, rows_of_parts, strict=True)
        joined.segment.columns.append(join_columns([one[0].taken(rows) for one, rows in taken]))
    return joined


def weave_parts(first: SegmentPart[T], second: SegmentPart[T]) -> SegmentPart[T]:
    """One part with the living rows of both, in the order of the events that brought them."""
    segments = (first.segment, second.segment)
    rows = (first.alive_rows(), second.alive_rows())
    both = list(zip(segments, rows, strict=True))
    since = np.concatenate([segment.since[taken] for segment, taken in both])
    order = np.argsort(since, kind="stable")
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    places = (ranks[: len(rows[0])], ranks[len(rows[0]) :])
    records: list[T] = [*first, *second]

    @cache  # two threads may both make it: it is the same
    def searched() -> Searched:
        vectors = weave_vectors(
            *(
                (segment.vectors, taken, at)
                for (segment, taken), at in zip(both, places, strict=True)
            )
        )
        renumbered = []
        for (segment, taken), mine in zip(both, places, strict=True):
            new_rows = np.full(len(segment.records), -1, np.int32)
            new_rows[taken] = mine
            renumbered.append((segment.postings, new_rows))
        return Searched(vectors, weave_postings(*renumbered, n_rows=len(order)))

    lengths = np.concatenate([segment.lengths[taken] for segment, taken in both])
    in_order = [records[at] for at in order.tolist()]
    woven = _part(in_order, lengths[order], searched, since[order])
    for attribute in first.segment.labels:
        labels = [segment.labelled(attribute) for segment in segments]
        texts = tuple(dict.fromkeys(text for one in labels for text in one.texts))
        codes = [
            np.array([texts.index(text) for text in one.texts], np.int64)[one.codes[taken]]
            for one, taken in zip(labels, rows, strict=True)
        ]
        woven.segment.labels[attribute] = SharedTexts(texts, np.concatenate(codes)[order])
    return woven


def _part(
    records: list[T],
    lengths: np.ndarray,
    searched: Callable[[], Searched],
    since: np.ndarray,
) -> SegmentPart[T]:
    rows = {record.id: row for row, record in enumerate(records)}
    segment = Segment(records, lengths, searched, rows, since)
    return SegmentPart(segment, None, len(records), int(lengths.sum()))


def build_postings(terms_per_row: Sequence[Sequence[str]]) -> Postings:
    """The postings of rows given by their terms, in any order and with repetitions."""
    numbering: defaultdict[str, int] = defaultdict()
    numbering.default_factory = numbering.__len__
    lengths = np.fromiter(map(len, terms_per_row), np.int64, len(terms_per_row))
    numbers = np.fromiter(
        map(numbering.__getitem__, chain.from_iterable(terms_per_row)),
        np.int64,
        int(lengths.sum()),
    )
    n_rows = max(1, len(terms_per_row))
    # One integer a token, ordered by term and then by row, so that one sort groups them.
    keys, counts = np.unique(
        numbers * n_rows + np.repeat(np.arange(len(terms_per_row)), lengths), return_counts=True
    )
    of_term, rows = np.divmod(keys, n_rows)
    return Postings(
        vocabulary=dict(numbering),
        starts=_starts(np.bincount(of_term, minlength=len(numbering))),
        rows=rows.astype(np.int32),
        counts=counts.astype(np.int32),
        lengths=lengths[rows].astype(np.int32),
    )


def join_postings(parts: Sequence[tuple[Postings, np.ndarray]]) -> Postings:
    """The postings of several segments as one.

    With each come the new numbers of its rows, int `[rows]`, rising over all segments (else those
    of a term are not in order), -1 for a row that is left out; a term that loses its last row is
    left out too.
    """
    vocabulary: dict[str, int] = {}
    kept = [(postings, *_renumbered(postings, rows, vocabulary)) for postings, rows in parts]
    totals = np.zeros(len(vocabulary), np.int64)
    for _, _, _, numbers, sizes in kept:
        totals[numbers] += sizes
    starts = _starts(totals)
    joined = [np.empty(int(starts[-1]), np.int32) for _ in range(3)]
    # The next free place of every term: each segment copies its blocks there, in order, so rows go
    # on rising within a term without a sort.
    free = starts[:-1].copy()
    for postings, rows, keep, numbers, sizes in kept:
        before = _starts(sizes)[:-1]
        places = np.repeat(free[numbers] - before, sizes) + np.arange(int(sizes.sum()))
        for target, source in zip(joined, (rows, postings.counts, postings.lengths), strict=True):
            target[places] = source[keep]
        free[numbers] += sizes
    return Postings(vocabulary, starts, *joined)


def weave_postings(
    first: tuple[Postings, np.ndarray], second: tuple[Postings, np.ndarray], *, n_rows: int
) -> Postings:
    """The postings of two segments whose rows stand among each other, as one.

    As in `join_postings`, but that the new numbers, all below `n_rows`, rise over the rows of each
    of the two. It costs one pass over those of the first, and a sort of those of the second.
    """
    vocabulary: dict[str, int] = {}
    keys, columns, blocks = [], [], []
    for postings, new_rows in (first, second):
        rows, keep, numbers, sizes = _renumbered(postings, new_rows, vocabulary)
        rows = rows[keep]
        keys.append(np.repeat(numbers, sizes) * max(n_rows, 1) + rows)
        columns.append((rows, postings.counts[keep], postings.lengths[keep]))
        blocks.append((numbers, sizes))
    order = np.argsort(keys[1], kind="stable")
    # The first one's terms were numbered in their order, so its keys rise already.
    places = np.searchsorted(keys[0], keys[1][order]) + np.arange(len(order))
    others = np.ones(len(keys[0]) + len(order), bool)
    others[places] = False
    woven = [np.empty(len(others), np.int32) for _ in range(3)]
    for target, mine, more in zip(woven, *columns, strict=True):
        target[others] = mine
        target[places] = more[order]
    totals = np.zeros(len(vocabulary), np.int64)
    for numbers, sizes in blocks:
        totals[numbers] += sizes
    return Postings(vocabulary, _starts(totals), *woven)


def _renumbered(
    postings: Postings, new_rows: np.ndarray, vocabulary: dict[str, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of postings whose rows get new numbers, -1 for none: the new rows, which stay, and of each
    term that keeps any its number in the vocabulary, where it is put, and how many it keeps."""
    rows = new_rows[postings.rows]
    keep = rows >= 0
    sizes = np.diff(postings.starts)
    gone = np.searchsorted(postings.starts, np.flatnonzero(~keep), "right") - 1
    sizes = sizes - np.bincount(gone, minlength=len(sizes))
    numbers = np.fromiter(
        (
            vocabulary.setdefault(term, len(vocabulary)) if size else -1
            for term, size in zip(postings.vocabulary, sizes.tolist(), strict=True)
        ),
        np.int64,
        len(sizes),
    )
    present = numbers >= 0
    return rows, keep, numbers[present], sizes[present]


def _starts(sizes: np.ndarray) -> np.ndarray:
    """Where blocks of these sizes begin, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
