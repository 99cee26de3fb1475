"""What is asked (`SearchRequest`, `Query`), what is found (`Hit`), and why (`Why`).

A request is made and checked once, at the door, and handed on whole. By rank fusion a score orders
the hits of one search and means nothing between searches; by the trained ranker it is a
probability. Invariant: `why_sentence` is one sentence, and both languages tell the same of the same
hit.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeVar

from memograd.memory.filters import Filter
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.turns import RawTurn

if TYPE_CHECKING:
    import numpy as np

Mode = Literal["hybrid", "dense", "lexical"]
T = TypeVar("T", bound=MemoryItem | RawTurn)


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
    newer: the newer hit of about the same that this one went behind. not_trained: why the hits are
    ordered by rank fusion. beside: the hit whose neighbour this is.
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
    newer: str | None = None
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


def in_utc(moment: datetime) -> datetime:
    """The moment, in UTC where no zone is given."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def why_sentence(why: Why, *, chinese: bool) -> str:
    """One sentence."""
    return _chinese(why) if chinese else _english(why)


def _weighed(why: Why) -> list[tuple[str, float]]:
    """The reasons that added something: of one item alone none is nearer than another."""
    return [(reason, value) for reason, value in why.reasons if f"{abs(value):.1f}" != "0.0"]


def _english(why: Why) -> str:
    if why.beside is not None:
        return f"Shown because it stands beside {why.beside}."
    reasons = []
    if why.dense_rank is not None:
        reasons.append(f"rank {why.dense_rank} by meaning")
    if why.lexical_rank is not None:
        words = ", ".join(why.matched)
        reasons.append(
            f"rank {why.lexical_rank} by words (BM25 {why.lexical_score:.2f} for {words})"
        )
    if why.window_rank is not None:
        reasons.append(f"rank {why.window_rank} by the words around it")
    if why.source_rank is not None:
        reasons.append(f"the source of the memory at rank {why.source_rank}")
    if not reasons:
        reasons.append("told at the time that is asked about")
    sentence = f"Found as {' and as '.join(reasons)}, with similarity {why.similarity:.2f}"
    if why.probability is not None:
        sentence += f", and holds the answer with probability {why.probability:.2f}"
    if weighed := _weighed(why):
        told = ", ".join(f"{reason} ({value:+.1f})" for reason, value in weighed)
        sentence += f"; what weighed most: {told}"
    if why.newer is not None:
        sentence += f"; it stands behind {why.newer}, which was told later"
    if why.not_trained:
        sentence += f" (by rank fusion: {why.not_trained.rstrip('.')})"
    if why.recency != 1.0:
        sentence += f", its score times {why.recency:.2f} for its age"
    if why.rerank_score is not None:
        sentence += f", then scored {why.rerank_score:.2f} by the reranker"
    return sentence + "."


def _chinese(why: Why) -> str:
    if why.beside is not None:
        return f"与 {why.beside} 相邻，因此一并列出。"
    reasons = []
    if why.dense_rank is not None:
        reasons.append(f"语义第 {why.dense_rank} 位")
    if why.lexical_rank is not None:
        words = "、".join(why.matched)
        reasons.append(f"词语第 {why.lexical_rank} 位（BM25 {why.lexical_score:.2f}：{words}）")
    if why.window_rank is not None:
        reasons.append(f"前后文词语第 {why.window_rank} 位")
    if why.source_rank is not None:
        reasons.append(f"第 {why.source_rank} 条记忆的来源")
    if not reasons:
        reasons.append("所问的时间里说的")
    sentence = f"{'、'.join(reasons)}，相似度 {why.similarity:.2f}"
    if why.probability is not None:
        sentence += f"，包含答案的概率 {why.probability:.2f}"
    if weighed := _weighed(why):
        told = "、".join(
            f"{_GROUPS_ZH.get(reason, reason)}（{value:+.1f}）" for reason, value in weighed
        )
        sentence += f"；影响最大的是{told}"
    if why.newer is not None:
        sentence += f"；排在后来说的 {why.newer} 之后"
    if why.not_trained:
        sentence += f"（按名次融合排序：{why.not_trained.rstrip('.')}）"
    if why.recency != 1.0:
        sentence += f"，因时间久远得分乘以 {why.recency:.2f}"
    if why.rerank_score is not None:
        sentence += f"，重排得分 {why.rerank_score:.2f}"
    return sentence + "。"


_GROUPS_ZH: Final = {
    "its meaning": "语义",
    "its words": "词语",
    "the words of its neighbours": "前后文的词语",
    "the memories read from it": "由它得出的记忆",
    "several lists that agree": "多个名单一致",
    "how many of the question's words it holds": "包含问题中多少词",
    "the turns before and after it": "前后的发言",
    "the sitting it belongs to": "所在的那次谈话",
    "who said it": "说话的人",
    "what kind of answer is asked for": "问的是哪种答案",
    "how it is written": "写法",
    "the date in the question": "问题中的日期",
    "how long ago it was": "距今多久",
}
