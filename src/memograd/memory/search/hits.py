"""What is asked, what is found, and why.

A score is fused from ranks, so it orders the hits of one search and means nothing between searches;
the cosine similarity does. Invariant: `str(why)` is one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from memograd.memory.records.items import MemoryItem
from memograd.memory.records.turns import RawTurn
from memograd.memory.search.why_sentence import why_sentence

if TYPE_CHECKING:
    import numpy as np

Mode = Literal["hybrid", "dense", "lexical"]
T = TypeVar("T", bound=MemoryItem | RawTurn)


@dataclass(frozen=True, eq=False)
class Query:
    """text, its vector float32 `[d]` of length 1, and its search terms (may be none)."""

    text: str
    vector: np.ndarray
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Why:
    """Where a record stood in each ranking (1 is first, None where it was not among the best).

    similarity: cosine to the query. lexical_score, matched: BM25 and the query's terms that the
    record holds; 0.0 and none without a lexical rank. fused: the fused ranks, 1.0 when first in
    every ranking that found anything. source_rank: rank of the found item that a raw turn is the
    source of. recency: the factor for its age. rerank_score: in the reranker's own unit.

    By the trained ranking, `fused` is `probability`, that the hit holds what was asked; window_rank
    is the rank by the words of a turn and its neighbours; reasons are what spoke for or against the
    hit the most, in words, with what each adds to the score (when an explanation is asked for).
    not_trained: why the hits are ordered by rank fusion. beside: the hit whose neighbour this is.
    """

    dense_rank: int | None
    similarity: float
    lexical_rank: int | None
    lexical_score: float
    matched: tuple[str, ...]
    fused: float
    source_rank: int | None = None
    recency: float = 1.0
    rerank_score: float | None = None
    window_rank: int | None = None
    probability: float | None = None
    reasons: tuple[tuple[str, float], ...] = ()
    not_trained: str = ""
    beside: str | None = None

    def __str__(self) -> str:
        """One sentence in English; `why_sentence` tells it in Chinese, too."""
        return why_sentence(self, chinese=False)


@dataclass(frozen=True, slots=True)
class Hit(Generic[T]):
    """A record with its score (`why.fused` times `why.recency`) and the reason for it.

    position: for a raw turn, how many turns its memory heard before it.
    """

    record: T
    score: float
    why: Why
    position: int = 0


def text_of(record: MemoryItem | RawTurn) -> str:
    """What a reranker reads of a record: the text that was embedded."""
    return record.text if isinstance(record, MemoryItem) else record.index_text()


def moment_of(record: MemoryItem | RawTurn) -> datetime | None:
    """When an item began to be true (else when it was learnt), or when a turn was said."""
    if isinstance(record, MemoryItem):
        return record.valid_from or record.updated_at
    return record.time
