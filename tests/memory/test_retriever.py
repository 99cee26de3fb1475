"""Search in a corpus: against a naive one, by hand, and what it says of each hit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.errors import BadInput, MemogradError
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.search import (
    CrossEncoderReranker,
    Query,
    Weighing,
    Why,
    retrieve,
    turns_behind,
)
from memograd.memory.state import Corpus, MemoryState

NOW = datetime(2024, 1, 31, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass
class Ranked:
    record: Any
    score: float


class NaiveCorpus:
    """What a `Corpus` answers, by scoring every record and sorting."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, np.ndarray, tuple[str, ...]]] = []

    def add(self, record: Any, vector: np.ndarray, terms: Sequence[str]) -> None:
        self.rows.append((record, vector, tuple(terms)))

    def _best(
        self, scores: list[float], k: int, eligible: Callable[[Any], bool] | None
    ) -> list[Ranked]:
        found = [
            Ranked(record, score)
            for (record, _, _), score in zip(self.rows, scores, strict=True)
            if eligible is None or eligible(record)
        ]
        return sorted(found, key=lambda ranked: -ranked.score)[:k]

    def dense(self, vector: np.ndarray, *, k: int, eligible: Any = None) -> list[Ranked]:
        return self._best(self.similarities(vector, [row[0].id for row in self.rows]), k, eligible)

    def lexical(self, terms: Sequence[str], *, k: int, eligible: Any = None) -> list[Ranked]:
        n = len(self.rows)
        mean = sum(len(row[2]) for row in self.rows) / n if n else 0.0
        scores = []
        for _, _, own in self.rows:
            score = 0.0
            for term, repeats in Counter(terms).items():
                with_term = sum(term in row[2] for row in self.rows)
                count = own.count(term)
                if count:
                    idf = math.log(1 + (n - with_term + 0.5) / (with_term + 0.5))
                    norm = 1.2 * (1 - 0.75 + 0.75 * (len(own) / mean))
                    score += repeats * idf * (count / (count + norm))
            scores.append(score)
        return [ranked for ranked in self._best(scores, n, eligible) if ranked.score > 0][:k]

    def similarities(self, vector: np.ndarray, ids: Sequence[str]) -> list[float]:
        by_id = {row[0].id: row[1] for row in self.rows}
        return [
            round(math.fsum(float(a) * float(b) for a, b in zip(by_id[id], vector, strict=True)), 6)
            for id in ids
        ]

    def matched_terms(self, ids: Sequence[str], terms: Sequence[str]) -> list[tuple[str, ...]]:
        own = {row[0].id: row[2] for row in self.rows}
        return [tuple(dict.fromkeys(term for term in terms if term in own[id])) for id in ids]


def item(id: str, text: str = "", **fields: Any) -> MemoryItem:
    moments = {"created_at": NOW, "updated_at": NOW}
    return MemoryItem(id=id, text=text or id, scope=Scope("alice"), **(moments | fields))


def unit(*axes: float) -> np.ndarray:
    vector = np.array(axes, dtype=np.float32)
    return vector / np.linalg.norm(vector)


def query(vector: np.ndarray, *terms: str) -> Query:
    return Query(" ".join(terms), vector, terms)


class ByText:
    """A reranker that knows the score of every text."""

    def __init__(self, **scores: float) -> None:
        self.scores = scores
        self.shown: list[str] = []

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.shown = list(texts)
        return [self.scores.get(text, 0.0) for text in texts]


# Against the naive corpus.

# Few directions, so that ties happen; lengths of 1 exactly, so that no rounding differs.
DIRECTIONS = [unit(*axes) for axes in ((1, 0), (0, 1), (-1, 0), (3, 4), (4, -3))]
WORDS = ["hike", "alp", "tea", "北京", "2023"]
rows = st.lists(
    st.tuples(
        st.sampled_from(DIRECTIONS),
        st.lists(st.sampled_from(WORDS), max_size=5),
        st.integers(0, 400),
    ),
    max_size=90,
)


@settings(max_examples=150, deadline=None)
@given(
    rows,
    st.sampled_from(DIRECTIONS),
    st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=4),
    st.integers(1, 12),
    st.sampled_from(["hybrid", "dense", "lexical"]),
    st.sampled_from([None, -0.5, 0.61]),
    st.sampled_from([None, 10 * DAY]),
    st.sampled_from([None, 2, 3]),
)
def test_the_same_hits_as_over_a_naive_corpus(
    rows: list[tuple[np.ndarray, list[str], int]],
    vector: np.ndarray,
    terms: list[str],
    top_k: int,
    mode: Any,
    threshold: float | None,
    half_life: timedelta | None,
    every: int | None,
) -> None:
    corpus, naive = Corpus[MemoryItem](2), NaiveCorpus()
    for number, (row, own, age) in enumerate(rows):
        record = item(f"m{number}", updated_at=NOW - age * DAY)
        corpus.add(record, row, own)
        naive.add(record, row, own)
    arguments: dict[str, Any] = {
        "top_k": top_k,
        "mode": mode,
        "threshold": threshold,
        "weighing": Weighing(half_life, NOW),
        "eligible": None if every is None else lambda record: int(record.id[1:]) % every == 0,
    }
    hits = retrieve(corpus, query(vector, *terms), **arguments)
    assert hits == retrieve(naive, query(vector, *terms), **arguments)  # type: ignore[arg-type]
    assert len(hits) <= top_k
    assert len({hit.record.id for hit in hits}) == len(hits)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    for hit in hits:
        assert threshold is None or hit.why.similarity >= threshold
        assert every is None or int(hit.record.id[1:]) % every == 0
        assert hit.score == hit.why.fused * hit.why.recency


# By hand: near and far by meaning, with and without the words.


@pytest.fixture
def corpus() -> Corpus[MemoryItem]:
    corpus = Corpus[MemoryItem](2)
    corpus.add(item("meaning", valid_from=NOW - 30 * DAY), unit(1, 0), ["walk"])
    corpus.add(item("both", updated_at=NOW - 60 * DAY), unit(3, 4), ["hike", "alp"])
    corpus.add(item("words"), unit(-1, 0), ["hike", "hike", "tea"])
    return corpus


def test_fused_scores_and_the_reasons_by_hand(corpus: Corpus[MemoryItem]) -> None:
    hits = retrieve(corpus, query(unit(1, 0), "hike", "alp"), top_k=3)
    assert [hit.record.id for hit in hits] == ["both", "words", "meaning"]
    both, words, meaning = hits
    assert both.score == pytest.approx((21 / 22 + 1) / 2)
    assert meaning.score == pytest.approx(1 / 2)
    assert words.score == pytest.approx((21 / 23 + 21 / 22) / 2)
    assert (both.why.dense_rank, both.why.lexical_rank) == (2, 1)
    assert both.why.matched == ("hike", "alp")
    assert (meaning.why.lexical_rank, meaning.why.lexical_score) == (None, 0.0)
    assert words.why.similarity == -1.0


def test_modes(corpus: Corpus[MemoryItem]) -> None:
    asked = query(unit(1, 0), "hike")

    def ids(mode: Any) -> list[str]:
        return [hit.record.id for hit in retrieve(corpus, asked, top_k=5, mode=mode)]

    assert ids("dense") == ["meaning", "both", "words"]
    assert ids("lexical") == ["words", "both"]
    lexical = retrieve(corpus, asked, top_k=5, mode="lexical")
    assert [hit.why.similarity for hit in lexical] == [-1.0, 0.6]
    assert [hit.why.dense_rank for hit in lexical] == [None, None]


def test_no_terms_means_by_meaning_alone(corpus: Corpus[MemoryItem]) -> None:
    for asked in (query(unit(1, 0)), query(unit(1, 0), "unheard")):
        hits = retrieve(corpus, asked, top_k=2)
        assert [hit.record.id for hit in hits] == ["meaning", "both"]
        assert hits[0].score == 1.0
    assert retrieve(corpus, query(unit(1, 0)), top_k=2, mode="lexical") == []


def test_an_empty_corpus_answers_nothing() -> None:
    assert retrieve(Corpus[MemoryItem](2), query(unit(1, 0), "hike"), top_k=3) == []


def test_a_filter_is_asked_once_a_record(corpus: Corpus[MemoryItem]) -> None:
    asked: list[str] = []

    def eligible(record: MemoryItem) -> bool:
        asked.append(record.id)
        return record.id != "both"

    hits = retrieve(corpus, query(unit(1, 0), "hike"), top_k=5, eligible=eligible)
    assert {hit.record.id for hit in hits} == {"meaning", "words"}
    assert sorted(asked) == ["both", "meaning", "words"]


def test_of_two_records_with_one_id_only_the_eligible_is_found() -> None:
    alices, bobs = Corpus[MemoryItem](2), Corpus[MemoryItem](2)
    alices.add(item("same", "hers"), unit(3, 4), ["hike"])
    bobs.add(item("same", "his"), unit(1, 0), ["hike"])
    hits = retrieve(
        Corpus.union([alices, bobs]),
        query(unit(1, 0), "hike"),
        top_k=5,
        eligible=lambda record: record.text == "hers",
    )
    assert [hit.record.text for hit in hits] == ["hers"]


def test_threshold_holds_for_hits_by_words_too(corpus: Corpus[MemoryItem]) -> None:
    hits = retrieve(corpus, query(unit(1, 0), "hike"), top_k=5, threshold=0.6)
    assert {hit.record.id for hit in hits} == {"meaning", "both"}


def test_recency_halves_by_valid_from_else_by_updated_at(corpus: Corpus[MemoryItem]) -> None:
    hits = retrieve(
        corpus, query(unit(1, 0)), top_k=3, mode="dense", weighing=Weighing(30 * DAY, NOW)
    )
    assert {hit.record.id: hit.why.recency for hit in hits} == {
        "meaning": 0.5,
        "both": 0.25,
        "words": 1.0,
    }
    assert [hit.record.id for hit in hits] == ["words", "meaning", "both"]
    assert hits[1].score == 0.5


def test_a_reranker_orders_what_it_is_shown_and_changes_no_score(
    corpus: Corpus[MemoryItem],
) -> None:
    asked = query(unit(1, 0), "hike")
    plain = {hit.record.id: hit.score for hit in retrieve(corpus, asked, top_k=3)}
    reranker = ByText(words=3.0, meaning=-1.0, both=-2.0)
    hits = retrieve(corpus, asked, top_k=2, weighing=Weighing(reranker=reranker))
    assert [(hit.record.id, hit.why.rerank_score) for hit in hits] == [
        ("words", 3.0),
        ("meaning", -1.0),
    ]
    assert all(hit.score == plain[hit.record.id] for hit in hits)


def test_a_reranker_is_shown_three_times_as_many_as_are_wanted() -> None:
    corpus = Corpus[MemoryItem](2)
    for number in range(20):
        corpus.add(item(f"m{number:02}"), unit(1, number), [])
    reranker = ByText(m05=1.0, m06=9.0)
    [first, second] = retrieve(
        corpus, query(unit(1, 0)), top_k=2, weighing=Weighing(reranker=reranker)
    )
    assert reranker.shown == [f"m{number:02}" for number in range(6)]
    assert first.record.id == "m05"
    assert second.record.id == "m00"  # equal scores keep the fused order


@pytest.mark.parametrize("scores", [[1.0], [1.0, float("nan"), 2.0]])
def test_a_reranker_that_answers_nonsense_is_an_error(
    corpus: Corpus[MemoryItem], scores: list[float]
) -> None:
    class Broken:
        def score(self, query: str, texts: Sequence[str]) -> list[float]:
            return scores

    with pytest.raises(MemogradError, match="one finite number a text"):
        retrieve(corpus, query(unit(1, 0)), top_k=3, weighing=Weighing(reranker=Broken()))


def test_nonsense_is_refused(corpus: Corpus[MemoryItem]) -> None:
    asked = query(unit(1, 0))
    with pytest.raises(BadInput, match="top_k must be 1"):
        retrieve(corpus, asked, top_k=0)
    with pytest.raises(BadInput, match="no search mode 'best': use hybrid, dense, lexical"):
        retrieve(corpus, asked, top_k=1, mode="best")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="half-life"):
        retrieve(corpus, asked, top_k=1, weighing=Weighing(-DAY))


def test_why_is_a_sentence() -> None:
    why = Why(
        dense_rank=1,
        similarity=0.834,
        lexical_rank=2,
        lexical_score=4.1,
        matched=("alp", "hike"),
        fused=0.99,
        recency=0.5,
        rerank_score=3.2,
    )
    assert str(why) == (
        "Found as rank 1 by meaning and as rank 2 by words (BM25 4.10 for alp, hike), with"
        " similarity 0.83, its score times 0.50 for its age, then scored 3.20 by the reranker."
    )
    source = Why(None, 0.1, None, 0.0, (), 0.5, source_rank=3)
    assert str(source) == "Found as the source of the memory at rank 3, with similarity 0.10."
    # Of one item alone no group of reasons adds anything.
    for told, ending in (
        ((("its meaning", 0.0), ("its words", -0.04)), "with similarity 0.10."),
        ((("its meaning", 0.0), ("its age", -0.3)), "what weighed most: its age (-0.3)."),
    ):
        weighed = Why(1, 0.1, None, 0.0, (), 0.5, reasons=told)
        assert str(weighed).endswith(ending)


# Turns behind items.


def turn(id: str, **fields: Any) -> RawTurn:
    return RawTurn(id=id, speaker="Alice", text=id, time=NOW, session=1, **fields)


@pytest.fixture
def state() -> MemoryState:
    state = MemoryState(2)
    for number, id in enumerate(("far", "near", "source", "other")):
        state.add_turn(turn(id), unit(*((-1, 0.1), (1, 0), (0, 1), (1, 3))[number]), [id])
    state.add_item(item("i1", sources=("gone", "source")), unit(1, 0), [])
    state.add_item(item("i2", sources=("source", "far")), unit(3, 4), [])
    return state


def test_direct_turns_and_sources_are_fused(state: MemoryState) -> None:
    asked = query(unit(1, 0))
    item_hits = retrieve(state.items, asked, top_k=5)
    assert [hit.record.id for hit in item_hits] == ["i1", "i2"]
    hits = turns_behind(state, asked, item_hits, top_k=4)
    ranks = {hit.record.id: (hit.why.dense_rank, hit.why.source_rank) for hit in hits}
    assert ranks == {
        "near": (1, None),
        "other": (2, None),
        "source": (3, 1),
        "far": (4, 2),
    }
    scores = {hit.record.id: hit.score for hit in hits}
    assert scores["source"] == pytest.approx((21 / 23 + 1) / 2)
    assert scores["far"] == pytest.approx((21 / 24 + 21 / 22) / 2)
    assert scores["near"] == 0.5
    assert [hit.record.id for hit in hits] == ["source", "far", "near", "other"]
    assert [hit.position for hit in hits] == [2, 0, 1, 3]


def test_turns_without_items_are_a_plain_search(state: MemoryState) -> None:
    asked = query(unit(1, 0), "far")
    behind = turns_behind(state, asked, [], top_k=3)
    plain = retrieve(state.turns, asked, top_k=3)
    assert [(hit.record, hit.why.dense_rank, hit.why.lexical_rank) for hit in behind] == [
        (hit.record, hit.why.dense_rank, hit.why.lexical_rank) for hit in plain
    ]


def test_a_source_beyond_the_direct_ranking_comes_in_through_its_item(state: MemoryState) -> None:
    for number in range(60):
        state.add_turn(turn(f"t{number}"), unit(1, 0.01), [])
    asked = query(unit(1, 0))
    item_hits = retrieve(state.items, asked, top_k=5)
    hits = turns_behind(state, asked, item_hits, top_k=3)
    assert [hit.record.id for hit in hits] == ["near", "source", "t0"]
    assert (hits[1].why.dense_rank, hits[1].why.source_rank) == (None, 1)


def test_threshold_and_eligibility_hold_for_sources(state: MemoryState) -> None:
    asked = query(unit(1, 0))
    item_hits = retrieve(state.items, asked, top_k=5)
    hits = turns_behind(state, asked, item_hits, top_k=9, threshold=0.0)
    assert {hit.record.id for hit in hits} == {"near", "other", "source"}
    allowed = turns_behind(
        state, asked, item_hits, top_k=9, eligible=lambda turn: turn.id != "source"
    )
    assert {hit.record.id for hit in allowed} == {"near", "other", "far"}


def test_a_turn_is_reranked_by_the_text_that_is_embedded(state: MemoryState) -> None:
    reranker = ByText(**{"Alice: far [31 January 2024]": 1.0})
    [hit] = turns_behind(
        state, query(unit(1, 0)), [], top_k=1, weighing=Weighing(reranker=reranker)
    )
    assert hit.record.id == "near"  # `far` is fourth: beyond the three that are shown
    hits = turns_behind(state, query(unit(1, 0)), [], top_k=2, weighing=Weighing(reranker=reranker))
    assert hits[0].record.id == "far"


# A real cross-encoder, tiny and untrained.


@pytest.fixture(scope="module")
def tiny_cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "cross"
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "alice", "hikes", "tea", "who"]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=1,
        initializer_range=0.5,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_a_real_cross_encoder_scores_pairs(tiny_cross_encoder: Path) -> None:
    reranker = CrossEncoderReranker(tiny_cross_encoder)
    texts = ["alice hikes", "tea", "alice hikes"]
    scores = reranker.score("who hikes", texts)
    assert len(scores) == 3
    assert scores[0] == pytest.approx(scores[2])
    assert scores[0] != pytest.approx(scores[1])
    assert reranker.score("who hikes", []) == []
    assert reranker.score("tea", texts) != pytest.approx(scores)


@pytest.mark.slow
def test_a_cross_encoder_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be loaded") as refused:
        CrossEncoderReranker(tmp_path / "missing").score("q", ["t"])
    assert "\n" not in str(refused.value)
