"""A searchable collection of records that can be forked in no time: dense and lexical, exact.

A corpus is a handle on one immutable `CorpusView`: a few parts (segments with masks of removed
rows) and a tail of at most 32 records that are not worth a segment yet. Every write makes a new
view out of the old one and puts it in place with one assignment. Hence

- `fork` copies one reference; parent and fork share all memory, neither sees the other's writes;
- a read uses the view it began with, so reads and forks need no lock, not even beside a writer;
  only writers must take turns.

A full tail becomes a segment, and neighbours are joined while the left is smaller than twice the
right and both fit into 8,192 rows: n single writes cost O(n) rows copied times a small constant
(at most 8 joins a row), no single write copies more than 8,192 rows, and the number of segments
stays at n / 4,096 plus a logarithm. Joining drops removed rows, and a part that has lost half of
its rows is written anew, so memory and time follow the living records.

Invariant: any history of writes, joins and forks answers like a corpus built afresh from its living
records in their order, to the last bit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, compress
from typing import Generic

import numpy as np

from memograd.memory.state.bm25 import bm25_scores, word_scores
from memograd.memory.state.corpus_view import (
    CorpusView,
    PendingRow,
    cosines,
    earlier_view,
    gathered,
    layout_of,
    part_of,
    stacked,
)
from memograd.memory.state.scored import Scored, best
from memograd.memory.state.segment import SegmentPart, T, build_part, join_parts

TAIL_ROWS = 32
JOINED_ROWS = 8192
# Dot products of unit vectors in float32 are off by less than 2e-6 at 4,096 axes; scores are
# rounded to 6 decimals.
_DENSE_MARGIN = 1e-5

Eligible = Callable[[T], bool]


@dataclass(frozen=True, slots=True)
class Ranked(Generic[T]):
    """A record that a search found, and its score: cosine similarity or BM25."""

    record: T
    score: float


class Corpus(Generic[T]):
    """Records in the order of their insertion, with a unit vector and terms each.

    dimension: the length of a vector; 0 for a corpus that is only looked up, not searched.
    """

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._view: CorpusView[T] = CorpusView()

    @property
    def dimension(self) -> int:
        """The length of one vector."""
        return self._dimension

    # Reading

    def __len__(self) -> int:
        return len(self._view)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.get(id) is not None

    def __iter__(self) -> Iterator[T]:
        view = self._view
        for part in view.parts:
            yield from part
        for pending in view.pending():
            yield pending.record

    def get(self, id: str) -> T | None:
        """The record of that id, None when there is none (any longer)."""
        view = self._view
        if view.tail and id in view.tail:
            return view.tail[id].record
        found = view.find(id)
        return view.parts[found[0]].segment.records[found[1]] if found else None

    def last(self, k: int, eligible: Eligible[T] | None = None, *, skip: int = 0) -> list[T]:
        """Up to k eligible records, the most recently added first, without the first `skip`.

        Without `eligible` only those k are looked at, however many there are.
        """
        view = self._view
        if eligible is None:
            return self._newest(view, skip, skip + k)
        found: list[T] = []
        for record in _newest_first(view):
            if len(found) >= skip + k:
                break
            if eligible(record):
                found.append(record)
        return found[skip:]

    def count_by(self, attribute: str) -> Counter[str]:
        """How many records have each text of an attribute, such as `kind`."""
        view = self._view
        counts = Counter(str(getattr(pending.record, attribute)) for pending in view.pending())
        for part in view.parts:
            counts.update(part.count_by(attribute))
        return counts

    @staticmethod
    def _newest(view: CorpusView[T], start: int, stop: int) -> list[T]:
        """The records from `start` to `stop` in the order from the newest to the oldest."""
        found = [pending.record for pending in view.pending()[::-1][start:stop]]
        passed = len(view.tail or ())
        for part in reversed(view.parts):
            low, high = max(start - passed, 0), min(stop - passed, part.alive)
            if low < high:
                rows = part.alive_rows()[::-1][low:high].tolist()
                found.extend(part.segment.records[row] for row in rows)
            passed += part.alive
        return found

    # Searching

    def dense(
        self, vector: np.ndarray, *, k: int, eligible: Eligible[T] | None = None
    ) -> list[Ranked[T]]:
        """The k eligible records most similar to a unit vector `[d]`, best first.

        Scores are cosines rounded to 6 decimals; equal ones keep the order of insertion. Raises
        ValueError for a vector of another length.
        """
        view = self._view
        query = self._vectors([vector])[0]
        starts = view.starts()
        pending = view.pending()
        scores = np.empty(starts[-1] + len(pending), np.float32)
        for part, start in zip(view.parts, starts, strict=False):
            rows = scores[start : start + part.size]
            part.segment.vectors.multiply(query, out=rows)
            if part.dead is not None:
                rows[part.dead] = -np.inf
        if pending:
            np.matmul(stacked(pending), query, out=scores[starts[-1] :])

        def exact(places: np.ndarray) -> np.ndarray:
            return cosines(gathered(view, starts, pending, places), query)

        return self._ranked(view, scores, k, _DENSE_MARGIN, exact, eligible)

    def lexical(
        self, terms: Sequence[str], *, k: int, eligible: Eligible[T] | None = None
    ) -> list[Ranked[T]]:
        """The k eligible records with the highest BM25 score above 0, best first.

        The statistics are those of all living records, eligible or not. Equal scores keep the order
        of insertion.
        """
        view = self._view
        tail = [(pending.counts, len(pending.terms)) for pending in view.pending()]
        scores = bm25_scores(view.parts, tail, terms)
        places = np.flatnonzero(scores)
        matched = scores[places]
        return self._ranked(view, matched, k, 0.0, matched.__getitem__, eligible, places)

    def scored(self, vector: np.ndarray | None, terms: Sequence[str]) -> Scored[T]:
        """Every living record by meaning and by words.

        vector: None leaves the meaning out, as zeros. Raises ValueError for a vector of another
        length.
        """
        view = self._view
        if not view.layout:
            view.layout.append(layout_of(view))
        layout = view.layout[0]
        pending = view.pending()
        starts = view.starts()
        # Meaning before words: all vectors pass through the processor's cache, and what is
        # computed after them is still there when it is used.
        dense = np.zeros(starts[-1] + len(pending), np.float32)
        if vector is not None and len(dense):
            query = self._vectors([vector])[0]
            for part, start in zip(view.parts, starts, strict=False):
                part.segment.vectors.multiply(query, out=dense[start : start + part.size])
            if pending:
                np.matmul(stacked(pending), query, out=dense[starts[-1] :])
        words = word_scores(view.parts, [(p.counts, len(p.terms)) for p in pending], terms)
        if layout.places is not None:
            dense = dense[layout.places]
            matches = words.matches  # of living rows alone
            at = np.searchsorted(layout.places, matches.place)
            words = replace(
                words,
                bm25=words.bm25[layout.places],
                matches=replace(matches, place=at),
            )
        return Scored(view, layout, dense, words)

    def similarities(self, vector: np.ndarray, ids: Sequence[str]) -> list[float]:
        """The cosines, rounded as in `dense`, of a unit vector with the records of these ids.

        Raises KeyError for an id that is not there.
        """
        rows = self.vectors(ids)
        similarities: list[float] = cosines(rows, self._vectors([vector])[0]).tolist()
        return similarities

    def numbers(self, ids: Sequence[str]) -> list[int]:
        """Where the records of these ids stand in the order of insertion, counted from 0.

        Raises KeyError for an id that is not there.
        """
        view = self._view
        alive = [0, *accumulate(part.alive for part in view.parts)]
        in_tail = {id: at for at, id in enumerate(view.tail or ())}
        numbers = []
        for id in ids:
            if id in in_tail:
                numbers.append(alive[-1] + in_tail[id])
                continue
            found = view.find(id)
            if found is None:
                raise KeyError(id)
            part, row = view.parts[found[0]], found[1]
            gone = 0 if part.dead is None else int(part.dead[:row].sum())
            numbers.append(alive[found[0]] + row - gone)
        return numbers

    def vectors(self, ids: Sequence[str]) -> np.ndarray:
        """The unit vectors, float32 `[n, d]`, of the records of these ids.

        Raises KeyError for an id that is not there.
        """
        view = self._view
        rows = np.empty((len(ids), self._dimension), np.float32)
        for at, id in enumerate(ids):
            if view.tail and id in view.tail:
                rows[at] = view.tail[id].vector
                continue
            found = view.find(id)
            if found is None:
                raise KeyError(id)
            rows[at] = view.parts[found[0]].segment.vectors.at(np.array([found[1]]))[0]
        return rows

    def matched_terms(self, ids: Sequence[str], terms: Sequence[str]) -> list[tuple[str, ...]]:
        """For each record of these ids, which of the terms it holds, each once.

        Raises KeyError for an id that is not there.
        """
        view = self._view
        wanted = list(dict.fromkeys(terms))
        matched: list[tuple[str, ...]] = [()] * len(ids)
        rows_in: dict[int, list[tuple[int, int]]] = {}  # number of the part: (row, place in ids)
        for at, id in enumerate(ids):
            if view.tail and id in view.tail:
                counts = view.tail[id].counts
                matched[at] = tuple(term for term in wanted if term in counts)
                continue
            found = view.find(id)
            if found is None:
                raise KeyError(id)
            rows_in.setdefault(found[0], []).append((found[1], at))
        for number, places in rows_in.items():
            rows = np.array([row for row, _ in places])
            postings = view.parts[number].segment.postings
            held = zip(*(postings.holds(term, rows) for term in wanted), strict=True)
            for (_, at), holds in zip(places, held, strict=bool(wanted)):
                matched[at] = tuple(compress(wanted, holds))
        return matched

    # Writing and forking

    def add(self, record: T, vector: np.ndarray, terms: Sequence[str]) -> None:
        """Append one record; raises ValueError as `add_many` does."""
        self.add_many([record], [vector], [terms])

    def add_many(
        self,
        records: Sequence[T],
        vectors: np.ndarray | Sequence[np.ndarray],
        terms_per_record: Sequence[Sequence[str]],
        since: Sequence[int] | None = None,
    ) -> None:
        """Append records with their unit vectors, float32 `[n, d]`, and their terms; all or none.

        since: the places in the journal of the events that brought them, rising from call to call;
        None where there is no journal, and then nobody can go back in time (`went_back`). Raises
        ValueError for an id that is already there or comes twice, for vectors of another length,
        and for lists of different lengths.
        """
        if not len(records) == len(vectors) == len(terms_per_record):
            raise ValueError(
                f"{len(records)} records, {len(vectors)} vectors and {len(terms_per_record)} lists"
                " of terms do not belong together"
            )
        matrix = self._vectors(vectors)
        places = [0] * len(records) if since is None else since
        view = self._view
        ids: set[str] = set()
        for record in records:
            if record.id in ids or record.id in self:
                raise ValueError(f"there is a record with the id {record.id!r} already")
            ids.add(record.id)
        if len(view.tail or ()) + len(records) < TAIL_ROWS:
            tail = dict(view.tail or {})
            rows = zip(records, matrix, terms_per_record, places, strict=True)
            for record, vector, terms, place in rows:
                tail[record.id] = PendingRow(record, vector, tuple(terms), Counter(terms), place)
            self._view = CorpusView(view.parts, tail)
            return
        pending = view.pending()
        if pending:
            matrix = np.concatenate([stacked(pending), matrix])
        part = build_part(
            [*(p.record for p in pending), *records],
            matrix,
            [*(p.terms for p in pending), *terms_per_record],
            [*(p.since for p in pending), *places],
        )
        self._view = CorpusView(_tidy([*view.parts, part]))

    def remove(self, id: str) -> T:
        """Take the record of that id out and return it; raises KeyError when it is absent."""
        view = self._view
        if view.tail and id in view.tail:
            record = view.tail[id].record
            self._view = CorpusView(
                view.parts, {key: p for key, p in view.tail.items() if key != id}
            )
            return record
        found = view.find(id)
        if found is None:
            raise KeyError(id)
        number, row = found
        parts = list(view.parts)
        record = parts[number].segment.records[row]
        parts[number] = parts[number].without(row)
        worn = 2 * parts[number].alive <= parts[number].size
        self._view = CorpusView(_tidy(parts) if worn else tuple(parts), view.tail)
        return record

    def replace(self, record: T, vector: np.ndarray, terms: Sequence[str]) -> None:
        """Put a record in place of the one with the same id, as the most recent; all or nothing.

        Raises KeyError when there is none, ValueError when the vector does not fit.
        """
        changed = self.fork()
        changed.remove(record.id)
        changed.add(record, vector, terms)
        self._view = changed._view

    def with_vectors(self, vectors: Mapping[str, np.ndarray]) -> Corpus[T]:
        """The same records, those of these ids with other vectors `[d]`; ids that are not here are
        passed over.
        """
        view = self._view
        tail = dict(view.tail or {})
        rows_in: dict[int, list[tuple[int, str]]] = {}  # number of the part: (row, id)
        for id in vectors:
            if id in tail:
                tail[id] = replace(tail[id], vector=self._vectors([vectors[id]])[0])
            elif (found := view.find(id)) is not None:
                rows_in.setdefault(found[0], []).append((found[1], id))
        parts = list(view.parts)
        for number, places in rows_in.items():
            segment = parts[number].segment
            matrix = segment.vectors.whole().copy()
            matrix[[row for row, _ in places]] = self._vectors([vectors[id] for _, id in places])
            parts[number] = replace(parts[number], segment=segment.with_matrix(matrix))
        changed: Corpus[T] = Corpus(self._dimension)
        changed._view = CorpusView(tuple(parts), tail, view.layout)
        return changed

    def fork(self) -> Corpus[T]:
        """A corpus that holds the same now and goes its own way from here; costs the same at any
        size."""
        fork: Corpus[T] = Corpus(self._dimension)
        fork._view = self._view
        return fork

    @staticmethod
    def union(corpora: Sequence[Corpus[T]]) -> Corpus[T]:
        """The records of one or more corpora, in their order, as one to read; shares their memory.

        An id may occur in several of them: all are found by searches, `get` answers with one of
        them. Statistics of terms are those of the whole. Raises ValueError when no corpus is given
        or their vectors differ in length.
        """
        if len({corpus._dimension for corpus in corpora}) != 1:
            raise ValueError("a union needs corpora, all with vectors of one length")
        parts: list[SegmentPart[T]] = []
        for corpus in corpora:
            view = corpus._view
            parts += view.parts
            if pending := view.pending():
                parts.append(part_of(pending))
        union: Corpus[T] = Corpus(corpora[0]._dimension)
        union._view = CorpusView(tuple(parts))
        return union

    def went_back(self, place: int, without: Collection[str], brought: Corpus[T]) -> Corpus[T]:
        """The records that events up to `place` in the journal brought, without those of some ids,
        and with those of another corpus, in the order of the events; shares what memory it can.
        """
        past: Corpus[T] = Corpus(self._dimension)
        past._view = earlier_view(self._view, place, without, brought._view)
        return past

    # Inside

    def _vectors(self, vectors: np.ndarray | Sequence[np.ndarray]) -> np.ndarray:
        """A copy of the vectors that nobody else can write to, float32 `[n, d]`."""
        matrix = np.array(vectors, dtype=np.float32)
        if not len(matrix):
            return np.zeros((0, self._dimension), np.float32)
        if matrix.shape[1:] != (self._dimension,):
            raise ValueError(
                f"vectors of shape {matrix.shape[1:]} do not fit a corpus of dimension"
                f" {self._dimension}"
            )
        return matrix

    def _ranked(
        self,
        view: CorpusView[T],
        scores: np.ndarray,
        k: int,
        margin: float,
        exact: Callable[[np.ndarray], np.ndarray],
        eligible: Eligible[T] | None,
        places: np.ndarray | None = None,
    ) -> list[Ranked[T]]:
        """The best of `scores`, which belong to `places` (None: to all of the view)."""
        starts = view.starts()
        pending = view.pending()

        def record(at: int) -> T:
            place = at if places is None else int(places[at])
            if place >= starts[-1]:
                return pending[place - starts[-1]].record
            number = bisect_right(starts, place) - 1
            return view.parts[number].segment.records[place - starts[number]]

        allowed = None if eligible is None else lambda at: eligible(record(at))
        return [Ranked(record(at), value) for at, value in best(scores, k, margin, exact, allowed)]


def _tidy(parts: list[SegmentPart[T]]) -> tuple[SegmentPart[T], ...]:
    """The same records in fewer parts, by the rule that the module describes."""
    tidy: list[SegmentPart[T]] = []
    for part in parts:
        if not part.alive:
            continue
        group = [part]
        size = part.alive
        while tidy and tidy[-1].alive < 2 * size and tidy[-1].alive + size <= JOINED_ROWS:
            size += tidy[-1].alive
            group.insert(0, tidy.pop())
        worn = 2 * part.alive <= part.size
        tidy.append(join_parts(group) if len(group) > 1 or worn else part)
    return tuple(tidy)


def _newest_first(view: CorpusView[T]) -> Iterator[T]:
    for pending in reversed(view.pending()):
        yield pending.record
    for part in reversed(view.parts):
        for row in part.alive_rows()[::-1].tolist():
            yield part.segment.records[row]
