"""What a search of the index found: two lists of rows, put in order and merged.

Scores of the two lists cannot be compared (Lite's BM25 is negative, and counted file by file), so
only ranks are. Invariant: equal scores rank by age, whatever file they came from. Pure; imports
nothing of the room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

SCORE_NOISE: Final = 1e-6
RRF_K: Final = 20  # as in `retrieval.fusion`


@dataclass(frozen=True, slots=True)
class IndexHit:
    """A row that a search found: whose it is, its id, and its places in the two lists.

    Ranks start at 1 and are None where the list does not hold the row. similarity: cosine, None
    without a dense rank.
    """

    owner: str
    id: str
    dense_rank: int | None
    similarity: float | None
    lexical_rank: int | None

    @property
    def fused(self) -> float:
        """Reciprocal rank fusion: the sum of 1 / (20 + rank) over the lists that hold the row."""
        ranks = (self.dense_rank, self.lexical_rank)
        return sum(1.0 / (RRF_K + rank) for rank in ranks if rank is not None)


def merged(
    dense: Sequence[tuple[float, dict[str, Any]]], lexical: Sequence[tuple[float, dict[str, Any]]]
) -> list[IndexHit]:
    """One hit a row, best fused rank first; equals in the order of the dense list."""
    ids = [(row["owner"], row["item_id"]) for _, row in dense]
    dense_ranks = {place: rank for rank, place in enumerate(ids, start=1)}
    similarities = {place: score for place, (score, _) in zip(ids, dense, strict=True)}
    lexical_ranks = {
        (row["owner"], row["item_id"]): rank for rank, (_, row) in enumerate(lexical, start=1)
    }
    hits = [
        IndexHit(*place, dense_ranks.get(place), similarities.get(place), lexical_ranks.get(place))
        for place in dense_ranks | lexical_ranks
    ]
    return sorted(hits, key=lambda hit: -hit.fused)


def score(field: str, distance: float) -> float:
    """The higher the better, on servers and in Lite, whose BM25 distances are negative."""
    return distance if field == "vector" else abs(distance)


def ordered(scored: Sequence[tuple[float, dict[str, Any]]]) -> list[tuple[float, dict[str, Any]]]:
    """Best first, equal scores by age: the same text scores float noise apart in another file."""
    falling = sorted(scored, key=lambda pair: -pair[0])
    keyed = []
    group, previous = 0, float("inf")
    for score, row in falling:
        group += previous - score > SCORE_NOISE
        keyed.append((group, row["seq"], score, row))
        previous = score
    return [(score, row) for _, _, score, row in sorted(keyed, key=lambda entry: entry[:2])]
