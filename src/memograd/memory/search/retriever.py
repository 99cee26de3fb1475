"""Search in one corpus: by meaning, by words, fused, weighed, and explained.

Each ranking contributes its best max(3 top_k, 50). They are fused by reciprocal ranks (Cormack,
Clarke and Büttcher, SIGIR 2009): a record scores the sum of 1 / (k + rank) over the rankings that
hold it, divided by the most that can be had, so that first in every ranking is 1.0. The paper has k
= 60; with the few hundred records of a person's memory the first ranks deserve more, and k = 20
finds more evidence (chosen on LoCoMo's conversation 26, `docs/log.md`).

The fused score is multiplied by recency, which halves with every half-life. A third ranking by age
would not do: ranks know who is older, not by how much, so the half-life would make no difference.
Equal scores are ordered by similarity, then by place in the rankings (meaning first), so the same
corpus and query always give the same hits.

Invariants: a search equals a naive one that sorts everything; the order of the rankings changes no
score; recency is 1 at age 0, 1/2 at one half-life, and never rises with age.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Generic, get_args

from memograd.errors import BadInput
from memograd.memory.search.hits import Hit, Mode, Query, T, Why, in_utc, moment_of, text_of
from memograd.memory.search.rerank import SHOWN_PER_RESULT, Reranker, checked_scores

if TYPE_CHECKING:
    from memograd.memory.state import Corpus, Ranked


K: Final = 20


def fuse(rankings: Sequence[Mapping[str, int]]) -> dict[str, float]:
    """The score in (0, 1] of every id in any ranking (id to rank, 1 is first).

    Ids come in the order of the rankings and within them. An empty ranking, which had nothing to
    say, counts as not asked.
    """
    used = [ranks for ranks in rankings if ranks]
    if len(used) < 3:  # two numbers are added exactly to rounding, as by fsum
        sums: dict[str, float] = {}
        for ranks in used:
            for id, rank in ranks.items():
                sums[id] = sums.get(id, 0.0) + (K + 1) / (K + rank)
        return {id: sum / len(used) for id, sum in sums.items()}
    shares: dict[str, list[float]] = {}
    for ranks in used:
        for id, rank in ranks.items():
            shares.setdefault(id, []).append((K + 1) / (K + rank))
    return {id: math.fsum(each) / len(used) for id, each in shares.items()}


def recency_factor(moment: datetime | None, *, now: datetime, half_life: timedelta) -> float:
    """2 to the power of -age / half_life, in [0, 1].

    What is yet to come, or has no date, keeps its score: the factor is 1. Times without a zone
    count as UTC. Raises BadInput for a half-life that is not positive.
    """
    if half_life <= timedelta(0):
        raise BadInput(f"The half-life of recency must be positive, not {half_life}.")
    if moment is None:
        return 1.0
    age = in_utc(now) - in_utc(moment)
    return math.exp2(-(max(age, timedelta(0)) / half_life))


DEPTH_PER_RESULT: Final = 3
LEAST_DEPTH: Final = 50


@dataclass(slots=True)
class Candidate(Generic[T]):
    """A record on its way to being a hit; the fields are those of `Why`."""

    record: T
    similarity: float
    dense_rank: int | None = None
    lexical_rank: int | None = None
    lexical_score: float = 0.0
    source_rank: int | None = None
    fused: float = 0.0
    recency: float = 1.0
    rerank_score: float | None = None
    window_rank: int | None = None
    probability: float | None = None
    reasons: tuple[tuple[str, float], ...] = ()
    newer: str | None = None

    @property
    def score(self) -> float:
        """What the candidate is ordered by."""
        return self.fused * self.recency


@dataclass(frozen=True, slots=True)
class Weighing:
    """What comes after fusion: recency, then the reranker. None: not wanted.

    recency_half_life: the age at which a score is halved, counted up to `now` (None: the present)
    from the beginning of an item's validity, else from when it was learnt, or from when a turn was
    said. reranker: reads the best 3 top_k hits and decides their order; their scores stay as they
    are. not_trained: why the hits are ordered by rank fusion, where a ranker might have.
    """

    recency_half_life: timedelta | None = None
    now: datetime | None = None
    reranker: Reranker | None = None
    not_trained: str = ""

    @property
    def wants_more(self) -> bool:
        """Whether the order may change, so that more candidates than hits are needed."""
        return self.recency_half_life is not None or self.reranker is not None


BY_FUSION: Final = Weighing()


def retrieve(
    corpus: Corpus[T],
    query: Query,
    *,
    top_k: int,
    mode: Mode = "hybrid",
    eligible: Callable[[T], bool] | None = None,
    threshold: float | None = None,
    weighing: Weighing = BY_FUSION,
) -> list[Hit[T]]:
    """The records that answer a query best, at most `top_k`, best first.

    mode: `dense` ranks by cosine similarity, `lexical` by BM25, `hybrid` fuses both; a query
    without search terms is then answered by meaning alone. eligible: what the query may see.
    threshold: the least cosine similarity of a hit, however it was found.

    Raises BadInput for a top_k below 1, an unknown mode or a half-life that is not positive.
    """
    check_query(top_k, mode)
    depth = max(DEPTH_PER_RESULT * top_k, LEAST_DEPTH)
    candidates = find(corpus, query, depth, mode, eligible, threshold)
    return finish(corpus, query, candidates, top_k, weighing)


def check_query(top_k: int, mode: str) -> None:
    """Raise BadInput for what no search can mean."""
    if top_k < 1:
        raise BadInput(f"top_k must be 1 or more, not {top_k}.")
    if mode not in get_args(Mode):
        raise BadInput(f"There is no search mode {mode!r}: use {', '.join(get_args(Mode))}.")


def find(
    corpus: Corpus[T],
    query: Query,
    depth: int,
    mode: Mode,
    eligible: Callable[[T], bool] | None,
    threshold: float | None,
) -> list[Candidate[T]]:
    """The fused candidates of the best `depth` of each ranking, best first."""
    eligible = None if eligible is None else asked_once(eligible)
    dense = corpus.dense(query.vector, k=depth, eligible=eligible) if mode != "lexical" else []
    asks_words = mode != "dense" and query.terms
    lexical = corpus.lexical(query.terms, k=depth, eligible=eligible) if asks_words else []
    found: dict[str, Candidate[T]] = {}
    for rank, ranked in enumerate(dense, start=1):
        found[ranked.record.id] = Candidate(ranked.record, ranked.score, dense_rank=rank)
    by_words_alone = [ranked.record.id for ranked in lexical if ranked.record.id not in found]
    similarity = dict(
        zip(by_words_alone, corpus.similarities(query.vector, by_words_alone), strict=True)
    )
    for rank, ranked in enumerate(lexical, start=1):
        key = ranked.record.id
        if key in similarity:
            found[key] = Candidate(ranked.record, similarity[key])
        found[key].lexical_rank, found[key].lexical_score = rank, ranked.score
    scores = fuse([_ranks(dense), _ranks(lexical)])
    for key, candidate in found.items():
        candidate.fused = scores[key]
    return ordered(
        [
            candidate
            for candidate in found.values()
            if threshold is None or candidate.similarity >= threshold
        ]
    )


def asked_once(eligible: Callable[[T], bool]) -> Callable[[T], bool]:
    """The same predicate, which remembers its answers: both rankings ask about the same records.

    It goes by the record itself, for two owners may each have one of the same id.
    """
    answers: dict[int, bool] = {}

    def asked(record: T) -> bool:
        answer = answers.get(id(record))
        if answer is None:
            answer = answers[id(record)] = eligible(record)
        return answer

    return asked


def _ranks(ranking: Sequence[Ranked[T]]) -> dict[str, int]:
    return {ranked.record.id: rank for rank, ranked in enumerate(ranking, start=1)}


def ordered(candidates: Sequence[Candidate[T]]) -> list[Candidate[T]]:
    """By score, then by similarity; what is equal in both stays as it is."""
    return sorted(candidates, key=lambda one: (-one.fused * one.recency, -one.similarity))


def finish(
    corpus: Corpus[T],
    query: Query,
    candidates: Sequence[Candidate[T]],
    top_k: int,
    weighing: Weighing,
) -> list[Hit[T]]:
    """The best `top_k` candidates as hits, after recency and the reranker."""
    chosen = list(candidates)
    if weighing.recency_half_life is not None:
        now = weighing.now or datetime.now(UTC)
        for candidate in chosen:
            candidate.recency = recency_factor(
                moment_of(candidate.record), now=now, half_life=weighing.recency_half_life
            )
        chosen = ordered(chosen)
    if weighing.reranker is not None and chosen:
        chosen = chosen[: SHOWN_PER_RESULT * top_k]
        texts = [text_of(candidate.record) for candidate in chosen]
        scores = checked_scores(weighing.reranker, query.text, texts)
        for candidate, score in zip(chosen, scores, strict=True):
            candidate.rerank_score = score
        chosen.sort(key=lambda candidate: -(candidate.rerank_score or 0.0))
    chosen = chosen[:top_k]
    by_words = [candidate.record.id for candidate in chosen if candidate.lexical_rank is not None]
    matched = dict(zip(by_words, corpus.matched_terms(by_words, query.terms), strict=True))
    return [
        _hit(candidate, matched.get(candidate.record.id, ()), weighing.not_trained)
        for candidate in chosen
    ]


def _hit(candidate: Candidate[T], matched: tuple[str, ...], not_trained: str) -> Hit[T]:
    why = Why(
        dense_rank=candidate.dense_rank,
        similarity=candidate.similarity,
        lexical_rank=candidate.lexical_rank,
        lexical_score=candidate.lexical_score,
        matched=matched,
        fused=candidate.fused,
        source_rank=candidate.source_rank,
        recency=candidate.recency,
        rerank_score=candidate.rerank_score,
        window_rank=candidate.window_rank,
        probability=candidate.probability,
        reasons=candidate.reasons,
        newer=candidate.newer,
        not_trained=not_trained,
    )
    return Hit(candidate.record, candidate.score, why)
