"""Learning when an older item goes behind a newer one (`memory/search/ranker/newer.py`).

From questions whose evidence names the newest value: written dialogues, half of which leave old
values as they are, and the conversations beside them. Of the first ten items by a ranker's scores
every older one above a newer one is a pair, where exactly one of the two is evidence; a logistic
model learns which, each question counting the same.

Invariant: what a pair is seen by is what search computes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from memograd.memory.search.ranker.features import Features
from memograd.memory.search.ranker.files import Linear
from memograd.memory.search.ranker.newer import (
    PAIRS,
    Newer,
    asks_before,
    pair_rows,
    speech_of,
)
from memograd.tasks.retrieval.learning import logistic_fit
from memograd.tasks.retrieval.material import Row

FIRST: Final = 10  # items whose pairs are learnt from
RIDGE: Final = 2.0


def fit_newer(linear: Linear, rows: Sequence[Row]) -> Newer | None:
    """What these questions teach of older and newer items; None where they hold no pair."""
    found = [(pairs, right) for row in rows for pairs, right in _pairs(linear, row)]
    if not found:
        return None
    seen = np.concatenate([pairs for pairs, _ in found])
    right = np.concatenate([right for _, right in found])
    weight = np.concatenate([np.full(len(right), 1.0 / len(right)) for _, right in found])
    return Newer(logistic_fit(seen, right, RIDGE, np.zeros(len(PAIRS)), weight))


def _pairs(linear: Linear, row: Row) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The pairs of a question, if there are some, and whether the newer one is evidence."""
    items = row.items
    if items is None or items.told is None or items.alike is None or row.cues is None:
        return
    if asks_before(row.cues):
        return
    scores = linear.scores(items.features)
    first = np.argsort(-scores, kind="stable")[:FIRST]
    above, below = np.triu_indices(len(first), 1)
    older, newer = first[above], first[below]
    told, hit = items.told, items.hit
    chosen = (told[older] >= 0) & (told[newer] > told[older]) & (hit[older] != hit[newer])
    older, newer = older[chosen], newer[chosen]
    if not len(older):
        return
    evidence, other = np.where(hit[newer], newer, older), np.where(hit[newer], older, newer)
    alike = items.alike[np.cumsum(hit)[evidence] - 1, other].astype(np.float64)
    speech = speech_of(Features(np.arange(len(hit)), items.features.astype(np.float64)))
    gaps = scores[older] - scores[newer]
    yield pair_rows(gaps, alike, row.cues, speech[newer]), hit[newer]
