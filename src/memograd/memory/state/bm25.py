"""BM25 over the parts of a corpus, exact for the records that are alive.

Document frequencies are counted among living rows when a query asks, the mean length comes from a
running total of integers, and the contributions to a row are added in the order of the query's
terms. So scores depend on the living records alone, to the last bit: not on how they are spread
over segments, nor on what was removed before.

Formula: Robertson and Zaragoza, *The Probabilistic Relevance Framework: BM25 and Beyond*, 2009, in
the form of Lucene (idf never negative, without the constant factor k1 + 1).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from memograd.memory.state.segment import Part

K1 = 1.2
B = 0.75


def idf(n_records: int, n_with_term: int) -> float:
    """ln(1 + (N - n + 0.5) / (n + 0.5)): how much a term tells, above 0 for every n."""
    return math.log(1.0 + (n_records - n_with_term + 0.5) / (n_with_term + 0.5))


def bm25_scores(
    parts: Sequence[Part[Any]],
    tail: Sequence[tuple[Counter[str], int]],
    terms: Sequence[str],
) -> np.ndarray:
    """float64 `[places]`: the score of every row of the parts, then of the tail; 0 without a match.

    tail: per record the counts of its terms and its length. A term that the query repeats counts as
    often.
    """
    n_records = sum(part.alive for part in parts) + len(tail)
    total_length = sum(part.alive_length for part in parts) + sum(length for _, length in tail)
    n_places = sum(part.size for part in parts) + len(tail)
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    weights: list[float] = []
    sizes: list[int] = []
    shifts: list[int] = []
    for term, repeats in Counter(terms).items():
        n_found = len(found)
        n_with_term = 0
        offset = 0
        for part in parts:
            postings = part.segment.postings
            block = postings.block(term)
            if block is not None:
                start, end = block
                triple = (
                    postings.rows[start:end],
                    postings.counts[start:end],
                    postings.lengths[start:end],
                )
                if part.dead is not None:
                    alive = ~part.dead[triple[0]]
                    triple = (triple[0][alive], triple[1][alive], triple[2][alive])
                found.append(triple)
                shifts.append(offset)
                n_with_term += len(triple[0])
            offset += part.size
        in_tail = [at for at, (counts, _) in enumerate(tail) if term in counts]
        if in_tail:
            found.append(
                (
                    np.array(in_tail, np.int32),
                    np.array([tail[at][0][term] for at in in_tail], np.int32),
                    np.array([tail[at][1] for at in in_tail], np.int32),
                )
            )
            shifts.append(offset)
            n_with_term += len(in_tail)
        weight = repeats * idf(n_records, n_with_term)
        weights += [weight] * (len(found) - n_found)
        sizes += [len(rows) for rows, _, _ in found[n_found:]]
    if not any(sizes):
        return np.zeros(n_places)
    places = np.concatenate([rows for rows, _, _ in found]) + np.repeat(shifts, sizes)
    counts = np.concatenate([counts for _, counts, _ in found]).astype(np.float64)
    lengths = np.concatenate([lengths for _, _, lengths in found])
    norms = K1 * (1.0 - B + B * (lengths / (total_length / n_records)))
    gains = np.repeat(weights, sizes) * (counts / (counts + norms))
    # bincount adds in the order given: term by term, whatever the layout.
    return np.bincount(places, weights=gains, minlength=n_places)
