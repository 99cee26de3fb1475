"""One search, as it is asked: made and checked once, at the door, and handed on whole."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from memograd.memory.filters import Filter
from memograd.memory.search.hits import Mode


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """query: the words of the question. wanted: what it may see. top_k, turns: how many items and
    how many raw turns are to be found.

    threshold: the least score of a hit. as_of: answer from what was known then. asked_at: what
    "last week" counts from; `as_of` or the present where it is None. recency_half_life: the age at
    which a score is halved. rerank: let the reranker order the hits. explain: say why each is one.
    show_expired: find what has ended by itself, too.
    """

    query: str
    wanted: Filter
    top_k: int
    turns: int = 0
    threshold: float | None = None
    as_of: datetime | None = None
    asked_at: datetime | None = None
    mode: Mode = "hybrid"
    recency_half_life: timedelta | None = None
    rerank: bool = False
    explain: bool = False
    show_expired: bool = False
