from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from memograd.memory.state import Corpus
from memograd.memory.state.corpus import JOINED_ROWS, TAIL_ROWS
from memograd.memory.state.scored import best

D = 8


@dataclass(frozen=True)
class Note:
    id: str


def unit(seed: int) -> np.ndarray:
    """One of 50 directions: equal vectors, and so ties, are common."""
    vector = np.random.default_rng(seed % 50).standard_normal(D).astype(np.float32)
    return vector / np.linalg.norm(vector)


def terms_of(seed: int) -> list[str]:
    return [f"t{seed % 7}", f"t{seed % 11}", "all"]


def filled(n: int) -> Corpus[Note]:
    corpus: Corpus[Note] = Corpus(D)
    corpus.add_many(
        [Note(str(i)) for i in range(n)],
        np.stack([unit(i) for i in range(n)]),
        [terms_of(i) for i in range(n)],
    )
    return corpus


def ids(corpus: Corpus[Note]) -> list[str]:
    return [note.id for note in corpus]


def naive_dense(seeds: list[int], query: np.ndarray) -> list[tuple[str, float]]:
    scored = [(str(s), round(float(unit(s).astype(float) @ query.astype(float)), 6)) for s in seeds]
    return sorted(scored, key=lambda pair: -pair[1])  # stable: ties in order of insertion


def test_dense_golden_by_hand() -> None:
    corpus: Corpus[Note] = Corpus(2)
    for id, vector in {
        "east": [1, 0],
        "north": [0, 1],
        "half": [0.6, 0.8],
        "west": [-1, 0],
    }.items():
        corpus.add(Note(id), np.array(vector, np.float32), ())
    found = corpus.dense(np.array([1, 0], np.float32), k=9)
    assert [(hit.record.id, hit.score) for hit in found] == [
        ("east", 1.0),
        ("half", 0.6),
        ("north", 0.0),
        ("west", -1.0),
    ]


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 500), unique=True, max_size=120),
    st.integers(0, 200),
    st.integers(0, 130),
    st.integers(1, 60),
    st.booleans(),
)
def test_dense_equals_sorting_everything(
    seeds: list[int], query_seed: int, k: int, modulus: int, bulk: bool
) -> None:
    corpus: Corpus[Note] = Corpus(D)
    if bulk:
        matrix = np.array([unit(s) for s in seeds], np.float32).reshape(-1, D)
        corpus.add_many([Note(str(s)) for s in seeds], matrix, [()] * len(seeds))
    else:
        for seed in seeds:
            corpus.add(Note(str(seed)), unit(seed), ())
    query = unit(query_seed)
    expected = naive_dense(seeds, query)
    assert [(h.record.id, h.score) for h in corpus.dense(query, k=k)] == expected[:k]
    found = corpus.dense(query, k=k, eligible=lambda note: int(note.id) % modulus == 0)
    assert [(h.record.id, h.score) for h in found] == [
        pair for pair in expected if int(pair[0]) % modulus == 0
    ][:k]


@given(st.integers(1, 3000), st.integers(0, 40), st.integers(1, 400), st.integers(0, 1 << 30))
@settings(deadline=None, max_examples=100)
def test_best_equals_sorting_and_filtering(n: int, k: int, modulus: int, seed: int) -> None:
    """Fast scores with an error, exact ones with ties; asked at most once a place."""
    random = np.random.default_rng(seed)
    exact = random.integers(0, 30, n).astype(np.float64)
    fast = exact + random.uniform(-0.5, 0.5, n)
    order = np.argsort(-exact, kind="stable").tolist()
    asked: list[int] = []

    def eligible(place: int) -> bool:
        asked.append(place)
        return place % modulus == 0

    expected = [(place, float(exact[place])) for place in order]
    assert best(fast, k, 1.0, exact.__getitem__, None) == expected[:k]
    found = best(fast, k, 1.0, exact.__getitem__, eligible)
    assert found == [pair for pair in expected if pair[0] % modulus == 0][:k]
    assert len(asked) == len(set(asked))


def test_scores_that_differ_less_than_the_rounding_are_ties() -> None:
    """The order of insertion decides, not the noise of float32 products."""
    random = np.random.default_rng(0)
    query = random.standard_normal(384)
    query /= np.linalg.norm(query)
    rows = (query + 1e-5 * random.standard_normal((600, 384)) / np.sqrt(384)).astype(np.float32)
    corpus: Corpus[Note] = Corpus(384)
    corpus.add_many([Note(str(i)) for i in range(600)], rows, [()] * 600)
    query = query.astype(np.float32)
    exact = np.round(rows.astype(np.float64) @ query.astype(np.float64), 6)
    expected = np.argsort(-exact, kind="stable")[:10].tolist()
    assert [int(hit.record.id) for hit in corpus.dense(query, k=10)] == expected


def test_a_filter_is_not_asked_about_records_that_cannot_enter() -> None:
    corpus = filled(2000)
    asked: list[str] = []

    def even(note: Note) -> bool:
        asked.append(note.id)
        return int(note.id) // 50 % 2 == 0

    assert len(corpus.dense(unit(3), k=10, eligible=even)) == 10
    assert len(asked) < 60


def test_the_records_of_a_search_survive_a_joined_layout_with_equal_scores() -> None:
    one_by_one: Corpus[Note] = Corpus(D)
    for i in range(700):
        one_by_one.add(Note(str(i)), unit(i), terms_of(i))
    bulk = filled(700)
    for i in range(0, 700, 3):
        one_by_one.remove(str(i))
        bulk.remove(str(i))
    assert ids(one_by_one) == ids(bulk)
    for seed in range(20):
        assert one_by_one.dense(unit(seed), k=500) == bulk.dense(unit(seed), k=500)
        assert one_by_one.lexical(terms_of(seed), k=500) == bulk.lexical(terms_of(seed), k=500)


def test_lookups() -> None:
    corpus = filled(100)
    corpus.add(Note("late"), unit(1), ["only", "all"])
    corpus.remove("50")
    assert corpus.get("7") == Note("7") and corpus.get("late") == Note("late")
    assert corpus.get("50") is None and "50" not in corpus and 50 not in corpus
    assert "late" in corpus and len(corpus) == 100
    assert [note.id for note in corpus.last(3)] == ["late", "99", "98"]
    assert [n.id for n in corpus.last(2, lambda note: note.id < "2")] == ["19", "18"]
    assert corpus.last(0) == []
    assert corpus.matched_terms(["late"], ["all", "only", "only", "t1"]) == [("all", "only")]
    asked = ["t0", "all", "t8", "t1", "zzz"]
    of_eight = ("all", "t8", "t1")
    assert corpus.matched_terms(["8", "late", "8"], asked) == [of_eight, ("all",), of_eight]
    assert corpus.matched_terms([], asked) == []
    expected = [round(float(unit(s).astype(float) @ unit(9).astype(float)), 6) for s in (1, 8)]
    assert corpus.similarities(unit(9), ["late", "8"]) == expected
    assert corpus.similarities(unit(9), []) == []


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    corpus = filled(40)
    with pytest.raises(ValueError, match="'3' already"):
        corpus.add(Note("3"), unit(0), ())
    with pytest.raises(ValueError, match="'x' already"):
        corpus.add_many([Note("x"), Note("x")], [unit(0)] * 2, [(), ()])
    with pytest.raises(ValueError, match="dimension 8"):
        corpus.add(Note("x"), np.zeros(9), ())
    with pytest.raises(ValueError, match="do not belong together"):
        corpus.add_many([Note("x")], [unit(0)], [])
    with pytest.raises(ValueError, match="dimension 8"):
        corpus.dense(np.zeros(9), k=1)
    with pytest.raises(ValueError, match="dimension 8"):
        corpus.replace(Note("3"), np.zeros(9), ())
    for call in (corpus.remove, lambda id: corpus.matched_terms([id], ["all"])):
        with pytest.raises(KeyError):
            call("x")
    with pytest.raises(KeyError):
        corpus.similarities(unit(0), ["x"])
    with pytest.raises(KeyError):
        corpus.replace(Note("x"), unit(0), ())
    assert ids(corpus) == [str(i) for i in range(40)]


def test_an_empty_corpus_answers() -> None:
    corpus: Corpus[Note] = Corpus(D)
    assert corpus.dense(unit(0), k=3) == corpus.lexical(["all"], k=3) == corpus.last(3) == []
    corpus.add(Note("a"), unit(0), ["all"])
    corpus.remove("a")
    corpus.add_many([], np.zeros((0, D)), [])
    assert corpus.dense(unit(0), k=3) == corpus.lexical(["all"], k=3) == list(corpus) == []


def test_the_caller_may_reuse_its_array() -> None:
    corpus: Corpus[Note] = Corpus(D)
    vectors = np.stack([unit(i) for i in range(50)])
    corpus.add_many([Note(str(i)) for i in range(50)], vectors, [()] * 50)
    before = corpus.dense(unit(4), k=50)
    vectors[:] = 0
    assert corpus.dense(unit(4), k=50) == before


def test_forks_share_memory_and_the_number_of_segments_stays_small() -> None:
    corpus: Corpus[Note] = Corpus(0)
    for i in range(2 * JOINED_ROWS + 100):
        corpus.add(Note(str(i)), np.zeros(0), ())
    parts = corpus._view.parts
    assert len(parts) <= 12
    assert all(part.size <= JOINED_ROWS for part in parts)

    corpus = filled(500)
    fork = corpus.fork()
    for i in range(500, 500 + TAIL_ROWS // 2):
        fork.add(Note(str(i)), unit(i), terms_of(i))
    fork.remove("4")
    assert np.shares_memory(
        corpus._view.parts[0].segment.vectors.whole(), fork._view.parts[0].segment.vectors.whole()
    )
    assert "4" in corpus and len(corpus) == 500


def test_a_past_that_is_only_looked_at_moves_no_vectors() -> None:
    numbers = [n for n in range(500) if n % 5]
    corpus: Corpus[Note] = Corpus(D)
    notes, vectors = [Note(str(n)) for n in numbers], np.stack([unit(n) for n in numbers])
    corpus.add_many(notes, vectors, [terms_of(n) for n in numbers], numbers)
    lost: Corpus[Note] = Corpus(D)
    for n in range(0, 401, 5):
        lost.add_many([Note(str(n))], unit(n)[None], [terms_of(n)], [n])
    past = corpus.went_back(400, [], lost)
    woven = max(past._view.parts, key=lambda part: part.size)
    made = woven.segment.searched.cache_info  # type: ignore[attr-defined]
    assert ids(past) == [str(n) for n in range(401)]
    assert "3" in past and past.last(1, skip=len(past) - 1) == [Note("0")]
    assert made().currsize == 0
    afresh = filled(len(past))
    found = past.dense(unit(3), k=50)
    assert made().currsize == 1
    assert found == afresh.dense(unit(3), k=50)
    assert past.lexical(["t3"], k=50) == afresh.lexical(["t3"], k=50)


def test_a_corpus_that_lost_half_its_records_forgets_them() -> None:
    corpus = filled(1000)
    for i in range(0, 1000, 2):
        corpus.remove(str(i))
    for i in range(1, 801, 2):
        corpus.remove(str(i))
    assert sum(part.size for part in corpus._view.parts) < 2 * len(corpus) + 2
    for id in ids(corpus):
        corpus.remove(id)
    assert corpus._view.parts == ()


def test_union_searches_over_several_and_leaves_them_alone() -> None:
    one, two = filled(60), filled(40)
    two.add(Note("extra"), unit(5), ["rare"])
    union = Corpus.union([one, two, Corpus(D)])
    assert ids(union) == ids(one) + ids(two)
    assert [h.record.id for h in union.lexical(["rare"], k=5)] == ["extra"]
    # Vector 5 is in both under one id, and once more as "extra".
    assert [h.record.id for h in union.dense(unit(5), k=4)] == ["5", "55", "5", "extra"]
    assert np.shares_memory(
        union._view.parts[0].segment.vectors.whole(), one._view.parts[0].segment.vectors.whole()
    )
    union.add(Note("new"), unit(1), ())
    assert "new" not in one and "new" not in two
    with pytest.raises(ValueError, match="one length"):
        Corpus.union([one, Corpus(D + 1)])
    with pytest.raises(ValueError, match="needs corpora"):
        Corpus.union([])


def test_readers_need_no_lock_beside_a_writer() -> None:
    corpus = filled(20)
    done = threading.Event()

    def write() -> None:
        for i in range(20, 500):
            corpus.add(Note(str(i)), unit(i), terms_of(i))
            if i % 3 == 0:
                corpus.remove(str(i - 10))
        done.set()

    def read() -> int:
        rounds = 0
        while not done.is_set() or not rounds:
            found = corpus.dense(unit(3), k=5) + corpus.lexical(["all"], k=5)
            assert len({hit.record.id for hit in found}) >= 5
            listed = ids(corpus.fork())
            assert len(listed) == len(set(listed)) and listed == sorted(listed, key=int)
            rounds += 1
        return rounds

    with ThreadPoolExecutor(3) as pool:
        writer = pool.submit(write)
        readers = [pool.submit(read) for _ in range(2)]
        writer.result()
        assert all(reader.result() for reader in readers)


class Branches(RuleBasedStateMachine):
    """Corpora that fork and write, each against a plain list of its own."""

    corpora = Bundle("corpora")

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[Corpus[Note], list[int]]] = []
        self.next = 0

    @rule(target=corpora, n=st.sampled_from([0, 5, 31, 32, 100]))
    def start(self, n: int) -> int:
        self.pairs.append((filled(n) if n else Corpus(D), list(range(n))))
        self.next = max(self.next, n)
        return len(self.pairs) - 1

    @rule(target=corpora, at=corpora)
    def fork(self, at: int) -> int:
        corpus, seeds = self.pairs[at]
        self.pairs.append((corpus.fork(), list(seeds)))
        return len(self.pairs) - 1

    @rule(at=corpora, n=st.integers(1, 70), bulk=st.booleans())
    def add(self, at: int, n: int, bulk: bool) -> None:
        corpus, seeds = self.pairs[at]
        new = list(range(self.next, self.next + n))
        self.next += n
        if bulk:
            corpus.add_many(
                [Note(str(s)) for s in new],
                np.stack([unit(s) for s in new]),
                [terms_of(s) for s in new],
            )
        else:
            for seed in new:
                corpus.add(Note(str(seed)), unit(seed), terms_of(seed))
        seeds += new

    @rule(at=corpora, start=st.integers(0, 300), step=st.integers(1, 5), n=st.integers(1, 80))
    def remove(self, at: int, start: int, step: int, n: int) -> None:
        corpus, seeds = self.pairs[at]
        for seed in seeds[start : start + step * n : step]:
            assert corpus.remove(str(seed)) == Note(str(seed))
            seeds.remove(seed)

    @rule(at=corpora, place=st.integers(0, 300))
    def replace(self, at: int, place: int) -> None:
        corpus, seeds = self.pairs[at]
        if seeds:
            seed = seeds.pop(place % len(seeds))
            corpus.replace(Note(str(seed)), unit(seed), terms_of(seed))
            seeds.append(seed)

    @invariant()
    def every_branch_is_its_own_list(self) -> None:
        for corpus, seeds in self.pairs:
            assert len(corpus) == len(seeds)
            assert ids(corpus) == [str(seed) for seed in seeds]

    @rule(at=corpora, query=st.integers(0, 60), k=st.integers(1, 30))
    def search(self, at: int, query: int, k: int) -> None:
        corpus, seeds = self.pairs[at]
        fresh: Corpus[Note] = Corpus(D)
        fresh.add_many(
            [Note(str(s)) for s in seeds], [unit(s) for s in seeds], [terms_of(s) for s in seeds]
        )
        assert corpus.dense(unit(query), k=k) == fresh.dense(unit(query), k=k)
        assert corpus.lexical(terms_of(query), k=k) == fresh.lexical(terms_of(query), k=k)
        for seed in seeds[:5]:
            assert corpus.get(str(seed)) == Note(str(seed))
        assert corpus.get(str(self.next)) is None


TestBranches = Branches.TestCase
TestBranches.settings = settings(deadline=None, max_examples=30, stateful_step_count=20)


def test_numbers_are_places_in_the_order_of_insertion() -> None:
    corpus: Corpus[Note] = Corpus(0)
    for number in range(100):
        corpus.add(Note(str(number)), np.zeros(0, np.float32), ())
    for number in (0, 3, 40, 70, 99):
        corpus.remove(str(number))
    ids = [record.id for record in corpus]
    assert corpus.numbers(ids) == list(range(95))
    with pytest.raises(KeyError):
        corpus.numbers(["3"])
