"""An inverted index over the rows of one segment, immutable, in three flat arrays.

For every term the rows that hold it, how often, and how long those rows are, side by side in one
block; blocks are found through `vocabulary`. Invariant: joining postings gives what building them
from the joined rows gives, up to the numbering of terms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np


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

    With each come the new numbers of its rows, int `[rows]`, rising over all segments, -1 for a row
    that is left out; a term that loses its last row is left out too.
    """
    vocabulary: dict[str, int] = {}
    kept = []
    for postings, new_rows in parts:
        rows = new_rows[postings.rows]
        keep = rows >= 0
        sizes = np.zeros(0, np.int64)
        if keep.size:  # no block is empty, as `reduceat` demands
            sizes = np.add.reduceat(keep, postings.starts[:-1], dtype=np.int64)
        numbers = np.fromiter(
            (
                vocabulary.setdefault(term, len(vocabulary)) if size else -1
                for term, size in zip(postings.vocabulary, sizes.tolist(), strict=True)
            ),
            np.int64,
            len(sizes),
        )
        present = numbers >= 0
        kept.append((postings, rows, keep, numbers[present], sizes[present]))

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


def _starts(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
