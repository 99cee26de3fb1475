from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.memory.state import Corpus
from memograd.memory.state.bm25 import idf
from memograd.memory.state.segment import (
    Postings,
    build_postings,
    join_postings,
    weave_postings,
)


@dataclass(frozen=True)
class Note:
    id: str


def corpus_of(documents: list[list[str]]) -> Corpus[Note]:
    corpus: Corpus[Note] = Corpus(0)
    notes = [Note(str(number)) for number in range(len(documents))]
    corpus.add_many(notes, np.zeros((len(notes), 0)), documents)
    return corpus


def naive_bm25(documents: list[list[str]], query: list[str]) -> list[float]:
    """The textbook formula, word by word."""
    mean = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for term in query:
            n = sum(term in other for other in documents)
            weight = math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
            count = document.count(term)
            if count:
                score += weight * count / (count + 1.2 * (1 - 0.75 + 0.75 * len(document) / mean))
        scores.append(score)
    return scores


def test_golden_scores_by_hand() -> None:
    # N = 3, lengths 2, 4 and 0, mean 2; "cat" is in two records, "sat" in one.
    corpus = corpus_of([["cat", "sat"], ["cat", "cat", "dog", "mat"], []])
    found = corpus.lexical(["cat"], k=5)
    weight = math.log(1 + 1.5 / 2.5)
    assert [hit.record.id for hit in found] == ["1", "0"]
    assert found[0].score == pytest.approx(weight * 2 / (2 + 1.2 * (0.25 + 0.75 * 4 / 2)))
    assert found[1].score == pytest.approx(weight * 1 / (1 + 1.2 * (0.25 + 0.75 * 2 / 2)))


def test_idf_is_positive_even_for_a_term_that_all_have() -> None:
    assert idf(10, 10) == pytest.approx(math.log(1 + 0.5 / 10.5))
    assert idf(10, 10) > 0


def test_only_records_with_a_term_of_the_query_are_found() -> None:
    corpus = corpus_of([["a"], ["b"], ["a", "b"]])
    assert {hit.record.id for hit in corpus.lexical(["a"], k=9)} == {"0", "2"}
    assert corpus.lexical(["z"], k=9) == []
    assert corpus.lexical([], k=9) == []
    assert corpus.lexical(["a"], k=0) == []
    assert Corpus[Note](0).lexical(["a"], k=3) == []


def test_equal_scores_keep_the_order_of_insertion() -> None:
    corpus = corpus_of([["x"], ["a"], ["a"], ["x"], ["a"]] * 20)
    found = [int(hit.record.id) for hit in corpus.lexical(["a"], k=100)]
    assert found == sorted(found) and len(found) == 60


words = st.sampled_from("abcdefgh")
documents = st.lists(st.lists(words, max_size=8), min_size=1, max_size=90)


@given(documents, st.lists(words, max_size=6), st.integers(1, 100))
def test_scores_equal_the_textbook(documents: list[list[str]], query: list[str], k: int) -> None:
    found = corpus_of(documents).lexical(query, k=k)
    naive = naive_bm25(documents, query)
    expected = sorted((s for s in naive if s > 0), reverse=True)[:k]
    assert [hit.score for hit in found] == pytest.approx(expected)
    for hit in found:
        assert hit.score == pytest.approx(naive[int(hit.record.id)])


@settings(deadline=None)
@given(st.data())
def test_any_history_scores_like_a_fresh_corpus_to_the_last_bit(data: st.DataObject) -> None:
    """Single adds, bulk adds, removals and forks against one built from the survivors."""
    corpus: Corpus[Note] = Corpus(0)
    kept: dict[str, list[str]] = {}
    number = 0
    for _ in range(data.draw(st.integers(1, 12))):
        batch = data.draw(st.lists(st.lists(words, max_size=5), max_size=45))
        notes = [Note(str(number + at)) for at in range(len(batch))]
        number += len(batch)
        if data.draw(st.booleans()):
            corpus.add_many(notes, np.zeros((len(notes), 0)), batch)
        else:
            for note, terms in zip(notes, batch, strict=True):
                corpus.add(note, np.zeros(0), terms)
        kept.update(zip((note.id for note in notes), batch, strict=True))
        share = data.draw(st.sampled_from([0.0, 0.1, 0.9]))
        for at, id in enumerate(list(kept)):
            if (at * 37 % 101) / 101 < share:
                corpus.remove(id)
                del kept[id]
        corpus = corpus.fork()
    fresh: Corpus[Note] = Corpus(0)
    fresh.add_many([Note(id) for id in kept], np.zeros((len(kept), 0)), list(kept.values()))
    query = data.draw(st.lists(words, max_size=5))
    k = data.draw(st.integers(1, 50))
    assert corpus.lexical(query, k=k) == fresh.lexical(query, k=k)

    def chosen(note: Note) -> bool:
        return int(note.id) % 3 == 0

    everything = [hit for hit in fresh.lexical(query, k=10_000) if chosen(hit.record)]
    assert corpus.lexical(query, k=k, eligible=chosen) == everything[:k]


def as_dict(postings: Postings) -> dict[str, list[tuple[int, int, int]]]:
    blocks = {}
    for term in postings.vocabulary:
        block = postings.block(term)
        assert block is not None
        columns = (postings.rows, postings.counts, postings.lengths)
        blocks[term] = list(
            zip(*(column[block[0] : block[1]].tolist() for column in columns), strict=True)
        )
    return blocks


@given(st.lists(documents, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_joined_postings_equal_built_ones(parts: list[list[list[str]]], random: object) -> None:
    survivors: list[list[str]] = []
    numbered = []
    for part in parts:
        new_rows = np.full(len(part), -1, np.int32)
        for row, terms in enumerate(part):
            if random.random() < 0.6:  # type: ignore[attr-defined]
                new_rows[row] = len(survivors)
                survivors.append(terms)
        numbered.append((build_postings(part), new_rows))
    assert as_dict(join_postings(numbered)) == as_dict(build_postings(survivors))


@given(documents, documents, st.randoms(use_true_random=False))
def test_woven_postings_equal_built_ones(
    first: list[list[str]], second: list[list[str]], random: object
) -> None:
    """Rows of both in any order among each other, in their own order among themselves."""
    turns = [0] * len(first) + [1] * len(second)
    random.shuffle(turns)  # type: ignore[attr-defined]
    survivors: list[list[str]] = []
    new_rows: tuple[list[int], list[int]] = ([], [])
    parts = (first, second)
    for which in turns:
        terms = parts[which][len(new_rows[which])]
        alive = random.random() < 0.8  # type: ignore[attr-defined]
        new_rows[which].append(len(survivors) if alive else -1)
        survivors += [terms] * alive
    one, other = (
        (build_postings(part), np.array(rows, np.int32))
        for part, rows in zip(parts, new_rows, strict=True)
    )
    woven = weave_postings(one, other, n_rows=len(survivors))
    assert as_dict(woven) == as_dict(build_postings(survivors))
    for column in (woven.rows, woven.counts, woven.lengths):
        assert column.dtype == np.int32
