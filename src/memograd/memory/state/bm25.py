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
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from memograd.memory.state.segment import SegmentPart

K1 = 1.2
B = 0.75


def idf(n_records: int, n_with_term: int) -> float:
    """ln(1 + (N - n + 0.5) / (n + 0.5)): how much a term tells, above 0 for every n."""
    return math.log(1.0 + (n_records - n_with_term + 0.5) / (n_with_term + 0.5))


COVERED_TERMS: Final = 62  # distinct terms of a query that a cover counts


@dataclass(frozen=True, slots=True)
class WordScores:
    """What the words of a query find in every place of a corpus.

    bm25: float64 `[places]`, 0 without a match. idf: float64 `[terms]` of the distinct terms.
    known: bool `[terms]`, whether any record holds it. ideal: the score that no record exceeds, the
    idf of all terms as often as the query says them.
    """

    bm25: np.ndarray
    idf: np.ndarray
    known: np.ndarray
    ideal: float
    matches: Matches


@dataclass(frozen=True, slots=True)
class Matches:
    """Every match of a distinct term: term, place and count, each int64 `[matches]`.

    repeats: int64 `[terms]`, how often the query says it.
    """

    term: np.ndarray
    place: np.ndarray
    count: np.ndarray
    repeats: np.ndarray

    def grouped(
        self, group: np.ndarray, lengths: np.ndarray, idf: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """BM25 of groups of records, each as one text, and the share of `idf` `[terms]` that each
        holds; both float64 `[groups]`.

        group: int64 `[matches]`, whose match it is, -1 for nobody's. lengths: `[groups]` in terms.
        """
        n = len(lengths)
        mine = np.flatnonzero(group >= 0)
        keys = self.term[mine] * n + group[mine]
        order = keys.argsort(kind="stable")
        keys = keys[order]
        new = np.ones(len(keys), bool)
        np.not_equal(keys[1:], keys[:-1], out=new[1:])
        firsts = np.flatnonzero(new)
        counted = np.add.reduceat(self.count[mine[order]], firsts) if len(keys) else np.zeros(0)
        term, of = np.divmod(keys[firsts], max(n, 1))
        holders = np.bincount(term, minlength=len(self.repeats))
        weights = self.repeats * np.log(1.0 + (n - holders + 0.5) / (holders + 0.5))
        norms = K1 * (1.0 - B + B * lengths[of] / max(float(lengths.mean()), 1e-9) if n else 1.0)
        gains = weights[term] * counted / (counted + norms)
        return np.bincount(of, weights=gains, minlength=n), _cover(term, of, n, idf)

    def cover(self, n: int, idf: np.ndarray) -> np.ndarray:
        """float64 `[n]`: the share of `idf` `[terms]` that every record holds."""
        return _cover(self.term, self.place, n, idf)


def _cover(term: np.ndarray, of: np.ndarray, n: int, idf: np.ndarray) -> np.ndarray:
    counting = np.where(np.arange(len(idf)) < COVERED_TERMS, idf, 0.0)[term]
    cover: np.ndarray = np.bincount(of, weights=counting, minlength=n)
    cover /= max(float(idf.sum()), 1e-9)
    return cover


def bm25_scores(
    parts: Sequence[SegmentPart[Any]],
    tail: Sequence[tuple[Counter[str], int]],
    terms: Sequence[str],
) -> np.ndarray:
    """float64 `[places]`: the score of every row of the parts, then of the tail; 0 without a match.

    tail: per record the counts of its terms and its length. A term that the query repeats counts as
    often.
    """
    return word_scores(parts, tail, terms).bm25


def word_scores(
    parts: Sequence[SegmentPart[Any]],
    tail: Sequence[tuple[Counter[str], int]],
    terms: Sequence[str],
) -> WordScores:
    """`bm25_scores` with what else the words say."""
    n_records = sum(part.alive for part in parts) + len(tail)
    total_length = sum(part.alive_length for part in parts) + sum(length for _, length in tail)
    n_places = sum(part.size for part in parts) + len(tail)
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    weights: list[float] = []
    sizes: list[int] = []
    shifts: list[int] = []
    idfs: list[float] = []
    known: list[bool] = []
    numbers: list[int] = []
    for bit, (term, repeats) in enumerate(Counter(terms).items()):
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
        idfs.append(idf(n_records, n_with_term))
        known.append(n_with_term > 0)
        weight = repeats * idfs[-1]
        weights += [weight] * (len(found) - n_found)
        sizes += [len(rows) for rows, _, _ in found[n_found:]]
        numbers += [bit] * (len(found) - n_found)
    repeats_of = Counter(terms).values()
    ideal = math.fsum(count * weight for count, weight in zip(repeats_of, idfs, strict=True))
    facts = (np.array(idfs), np.array(known, bool), ideal)
    repeated = np.array(list(repeats_of), np.int64)
    if not any(sizes):
        none = np.zeros(0, np.int64)
        return WordScores(np.zeros(n_places), *facts, Matches(none, none, none, repeated))
    places = np.concatenate([rows for rows, _, _ in found]) + np.repeat(shifts, sizes)
    counts = np.concatenate([counts for _, counts, _ in found]).astype(np.float64)
    lengths = np.concatenate([lengths for _, _, lengths in found])
    norms = K1 * (1.0 - B + B * (lengths / (total_length / n_records)))
    gains = np.repeat(weights, sizes) * (counts / (counts + norms))
    # bincount adds in the order given: term by term, whatever the layout.
    scores = np.bincount(places, weights=gains, minlength=n_places)
    return WordScores(scores, *facts, Matches(np.repeat(numbers, sizes), places, counts, repeated))
