"""What a query makes of every living record of a corpus, before anything is ranked or left out.

Invariant: records are numbered in the order of their insertion, as in a corpus built afresh. Reads
the view that it was made of, whatever is written meanwhile.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Generic

import numpy as np

from memograd.memory.state.bm25 import WordScores
from memograd.memory.state.corpus_view import CorpusView, Layout
from memograd.memory.state.segment import T


class Scored(Generic[T]):
    """What a query makes of every living record of a corpus, in the order of insertion.

    dense: float32 `[n]`, cosines (exact to about 1e-6). words: `bm25`, `held` of the same records
    and the query's idf. layout: lengths and columns of the records.
    """

    def __init__(
        self, view: CorpusView[T], layout: Layout, dense: np.ndarray, words: WordScores
    ) -> None:
        self._view, self.layout, self.dense, self.words = view, layout, dense, words
        self._starts = view.starts()
        self._pending = view.pending()
        self._in_tail = {pending.record.id: at for at, pending in enumerate(self._pending)}
        self._rows = [part.segment.rows for part in view.parts]
        self._dead = [part.dead for part in view.parts]

    def __len__(self) -> int:
        return len(self.layout.lengths)

    def record(self, at: int) -> T:
        """The record at one number in the order of insertion."""
        place = at if self.layout.places is None else int(self.layout.places[at])
        if place >= self._starts[-1]:
            return self._pending[place - self._starts[-1]].record
        number = bisect_right(self._starts, place) - 1
        return self._view.parts[number].segment.records[place - self._starts[number]]

    def number(self, id: str) -> int | None:
        """Where the record of that id stands in the order of insertion, None if it is not here."""
        at = self._in_tail.get(id)
        if at is not None:
            return len(self) - len(self._in_tail) + at
        for number in range(len(self._rows) - 1, -1, -1):
            row = self._rows[number].get(id)
            dead = self._dead[number]
            if row is not None and (dead is None or not dead[row]):
                place = self._starts[number] + row
                places = self.layout.places
                return place if places is None else int(np.searchsorted(places, place))
        return None
