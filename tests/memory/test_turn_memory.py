from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memograd.errors import BadInput, MemogradError
from memograd.memory import RawTurn, RetrievedTurn, TurnMemory, load_embedder
from memograd.memory.embedders import MiniLMEmbedder
from memograd.memory.reader import RuleReader

NASTY_SCOPES = [
    "ann",
    'ann"',
    "ann'",
    "ann\\",
    'ann\\"',
    "ann\n",
    "ann ",
    "Ann",
    "a%",
    '" or scope_key != "',
    "user_id == 1",
    "用户一",
    "用户二",
    "🐱",
    "🐱‍👤",
    "é",  # one code point
    "e\u0301",  # two code points, the same to the eye
    "x" * 5_000,
]
NAMES = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
run = count()


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, trigrams: Any) -> Iterator[TurnMemory]:
    with TurnMemory.open(tmp_path_factory.mktemp("m") / "m.db", trigrams()) as memory:
        yield memory


def _turn(number: int, text: str, session: int = 1, speaker: str = "Ann") -> RawTurn:
    time = datetime(2023, 5, 1, 13, 56) + timedelta(days=session)
    return RawTurn(f"D{session}:{number}", speaker, text, time, session)


def _search(memory: TurnMemory, query: str, scope: str, **limits: int) -> list[RetrievedTurn]:
    asked = {"top_k": 10, "token_budget": 10_000} | limits
    return memory.search(query, scope=scope, count_tokens=len, **asked)


def test_scope_is_a_wall_for_nasty_names(memory: TurnMemory) -> None:
    for number, scope in enumerate(NASTY_SCOPES):
        assert memory.add_turns(scope, [_turn(1, f"secret number {number}")]) == 1
    for number, scope in enumerate(NASTY_SCOPES):
        mine = [_turn(1, f"secret number {number}")]
        assert [one.turn for one in _search(memory, "secret number", scope, top_k=50)] == mine
        last = memory.last_turns(scope, top_k=50, token_budget=10_000, count_tokens=len)
        assert [one.turn for one in last] == mine
        assert memory.count(scope) == 1


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    scopes=st.lists(st.text(NAMES, min_size=1, max_size=20), min_size=2, max_size=4, unique=True),
    text=st.text(max_size=40),
)
def test_scope_is_a_wall_for_any_names(memory: TurnMemory, scopes: list[str], text: str) -> None:
    # One store serves all examples; the number keeps them apart from each other.
    example = f"example {next(run)} "
    for number, scope in enumerate(scopes):
        memory.add_turns(example + scope, [_turn(number, text), _turn(10 + number, "common")])
    for number, scope in enumerate(scopes):
        found = _search(memory, text, example + scope, top_k=50)
        assert [one.turn for one in found] == [_turn(number, text), _turn(10 + number, "common")]


@given(
    text=st.text(max_size=60),
    speaker=st.text(max_size=10),
    caption=st.none() | st.text(max_size=20),
    time=st.none() | st.datetimes() | st.datetimes(timezones=st.just(UTC)),
    session=st.integers(-5, 10**9),
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_turn_comes_back_as_it_went_in(
    memory: TurnMemory,
    text: str,
    speaker: str,
    caption: str | None,
    time: datetime | None,
    session: int,
) -> None:
    scope = f"round trip {next(run)}"
    turn = RawTurn('D1:"1"\\', speaker, text, time, session, caption)
    memory.add_turns(scope, [turn])
    assert _search(memory, "anything", scope)[0].turn == turn


def test_adding_twice_stores_once(memory: TurnMemory) -> None:
    scope = f"twice {next(run)}"
    turns = [_turn(number, f"text {number}") for number in range(5)]
    assert memory.add_turns(scope, turns[:3]) == 3
    assert memory.add_turns(scope, [*turns, turns[4]]) == 2
    assert memory.add_turns(scope, turns) == 0
    assert memory.add_turns(scope, []) == 0
    assert memory.count(scope) == 5
    found = _search(memory, "text", scope)
    assert [one.turn for one in found] == turns
    assert [one.position for one in found] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("memories", [1, 2])
def test_two_who_add_the_same_turns_at_once_store_them_once(
    tmp_path: Path, trigrams: Any, memories: int
) -> None:
    turns = [_turn(number, f"text {number}") for number in range(50)]
    for attempt in range(3):
        opened = [TurnMemory.open(tmp_path / str(attempt), trigrams()) for _ in range(memories)]
        start = Barrier(4)

        def add(memory: TurnMemory, start: Barrier = start) -> int:
            start.wait()
            return memory.add_turns("c", turns)

        with ThreadPoolExecutor(4) as pool:
            new = list(pool.map(add, (opened * 4)[:4]))
        assert sorted(new) == [0, 0, 0, 50]
        for memory in opened:
            assert memory.count("c") == 50
            memory.close()


def test_one_id_with_two_contents_is_refused(memory: TurnMemory) -> None:
    scope = f"conflict {next(run)}"
    memory.add_turns(scope, [_turn(1, "I live in Rome.")])
    with pytest.raises(BadInput, match=r"'D1:1' is stored already with other content"):
        memory.add_turns(scope, [_turn(1, "I live in Oslo.")])
    with pytest.raises(BadInput, match=r"'D1:2' is stored already with other content"):
        memory.add_turns(scope, [_turn(2, "One."), _turn(2, "Two.")])
    many = [_turn(number, f"text {number}") for number in range(10, 900)]
    with pytest.raises(BadInput, match=r"'D1:1' is stored already with other content"):
        memory.add_turns(scope, [*many, _turn(1, "I live in Oslo.")])
    assert memory.count(scope) == 1


def test_more_turns_than_any_default_limit(memory: TurnMemory) -> None:
    scope = f"many {next(run)}"
    turns = [_turn(number, f"text {number}") for number in range(1_234)]
    assert memory.add_turns(scope, turns) == 1_234
    assert memory.count(scope) == 1_234
    last = memory.last_turns(scope, top_k=1_200, token_budget=10**6, count_tokens=len)
    assert [one.turn for one in last] == turns[34:]
    assert len(_search(memory, "text", scope, top_k=1_200, token_budget=10**6)) == 1_200


def test_results_are_ranked_by_relevance_and_told_in_order(memory: TurnMemory) -> None:
    scope = f"order {next(run)}"
    texts = ["the weather is grey", "my sister plays the cello", "I adopted a parrot"]
    memory.add_turns(scope, [_turn(n, text, session=12 - n) for n, text in enumerate(texts)])
    found = _search(memory, "my sister plays the cello well", scope)
    assert [one.turn.session for one in found] == [10, 11, 12]
    by_rank = sorted(found, key=lambda one: one.rank)
    assert [one.rank for one in by_rank] == [1, 2, 3]
    assert by_rank[0].turn.text == texts[1]
    assert by_rank[0].score > by_rank[1].score >= by_rank[2].score
    assert [one.turn.text for one in _search(memory, texts[2], scope, top_k=1)] == [texts[2]]


def test_the_score_is_the_cosine(memory: TurnMemory, trigrams: Any) -> None:
    scope = f"cosine {next(run)}"
    turn = _turn(1, "my sister plays the cello")
    memory.add_turns(scope, [turn])
    query, stored = trigrams().embed(["who plays?", turn.index_text()])
    [found] = _search(memory, "who plays?", scope)
    assert found.score == pytest.approx(float(query @ stored), abs=1e-5)


def test_the_budget_and_the_most_recent(memory: TurnMemory) -> None:
    scope = f"budget {next(run)}"
    turns = [_turn(1, "a" * 10), _turn(2, "b" * 500), _turn(3, "c" * 10)]
    memory.add_turns(scope, turns)
    cost = len(turns[0].render()) + 1

    def texts(budget: int, top_k: int = 3) -> list[str]:
        found = memory.last_turns(scope, top_k=top_k, token_budget=budget, count_tokens=len)
        return [one.turn.text[0] for one in found]

    assert texts(2 * cost) == ["a", "c"]
    assert texts(2 * cost - 1) == ["c"]
    assert texts(cost - 1) == []
    assert texts(10_000, top_k=2) == ["b", "c"]
    assert _search(memory, "aaa", scope, token_budget=0) == []


def test_same_words_of_two_speakers_stay_two_turns(memory: TurnMemory) -> None:
    scope = f"speakers {next(run)}"
    turns = [_turn(1, "I moved.", speaker="Ann"), _turn(2, "I moved.", speaker="Bob")]
    memory.add_turns(scope, turns)
    lines = [one.turn.render() for one in _search(memory, "I moved.", scope)]
    assert lines == ["[2 May 2023] Ann: I moved.", "[2 May 2023] Bob: I moved."]


def test_many_queries_answer_as_one_by_one(memory: TurnMemory) -> None:
    scope = f"batch {next(run)}"
    memory.add_turns(scope, [_turn(n, f"text about {word}") for n, word in enumerate("abcdefgh")])
    queries = ["about a", "about c", "关于猫"]
    together = memory.search_many(queries, scope=scope, top_k=3, token_budget=200, count_tokens=len)
    for query, found in zip(queries, together, strict=True):
        alone = _search(memory, query, scope, top_k=3, token_budget=200)
        assert [(one.turn, one.rank) for one in found] == [(one.turn, one.rank) for one in alone]
    assert memory.search_many([], scope=scope, top_k=3, token_budget=9, count_tokens=len) == []


def test_an_unknown_scope_is_empty(memory: TurnMemory) -> None:
    assert memory.count("nobody") == 0
    assert _search(memory, "anything", "nobody") == []
    assert memory.last_turns("nobody", top_k=3, token_budget=99, count_tokens=len) == []


def test_input_that_cannot_be_stored_or_searched(memory: TurnMemory) -> None:
    with pytest.raises(BadInput, match="scope must not be empty"):
        memory.add_turns("", [_turn(1, "text")])
    with pytest.raises(BadInput, match="half a surrogate pair"):
        memory.add_turns("half \ud83d", [_turn(1, "text")])
    with pytest.raises(BadInput, match="half a surrogate pair"):
        memory.add_turns("u", [_turn(1, "half \ud83d")])
    with pytest.raises(BadInput, match="half a surrogate pair"):
        _search(memory, "half \ud83d", "u")
    with pytest.raises(BadInput, match="top_k is 0"):
        _search(memory, "query", "u", top_k=0)
    assert memory.count("u") == 0


def test_an_embedder_that_breaks_its_promise(tmp_path: Path, trigrams: Any) -> None:
    class Broken(trigrams):  # type: ignore[misc]
        def embed(self, texts: Any) -> np.ndarray:
            return np.zeros((len(texts), 7), dtype=np.float32)

    with (
        TurnMemory.open(tmp_path / "m.db", Broken()) as memory,
        pytest.raises(MemogradError, match=r"shape \(1, 7\)"),
    ):
        memory.add_turns("u", [_turn(1, "text")])
        _search(memory, "text", "u")


def test_minilm_finds_what_was_meant(tmp_path: Path) -> None:
    with TurnMemory.open(tmp_path / "m.db", MiniLMEmbedder()) as memory:
        texts = ["Work was slow today.", "We adopted a puppy named Biscuit.", "It rained."]
        memory.add_turns("u", [_turn(n, text) for n, text in enumerate(texts)])
        [found] = _search(memory, "What is the dog called?", "u", top_k=1)
        assert found.turn.text == texts[1]


def test_ranked_turns_are_those_of_the_scope_within_the_budget(tmp_path: Path) -> None:
    """As `Memory.search` ranks: with the shipped ranker, whose embedder is e5."""
    told = [
        _turn(1, "I adopted a cat called Miso yesterday."),
        _turn(2, "Nice! What colour is she?", speaker="Bob"),
        _turn(3, "Grey, with white paws."),
        _turn(4, "I sold my bicycle last week.", session=2),
        _turn(5, "上周我搬到了广州。", session=2),
    ]
    with TurnMemory.open(tmp_path / "m", load_embedder("e5")) as memory:
        assert memory.add_turns("ann", told, reader=RuleReader()) == len(told)
        assert memory.add_turns("ann", told, reader=RuleReader()) == 0
        memory.add_turns("bob", [_turn(1, "My cat is called Tiger.")], reader=RuleReader())
        asked = ["What colour is Ann's cat?", "她搬到了哪里?"]
        found = memory.search_many(
            asked, scope="ann", top_k=2, token_budget=10_000, count_tokens=len, ranked=True
        )
        assert {one.turn.text for one in found[0]} <= {turn.text for turn in told}
        assert any("Grey" in one.turn.text for one in found[0])
        assert any("广州" in one.turn.text for one in found[1])
        assert all(0 <= one.score <= 1 for one in [*found[0], *found[1]])
        assert [len(turns) for turns in found] == [2, 2]
        nothing = memory.search_many(
            asked[:1], scope="ann", top_k=2, token_budget=3, count_tokens=len, ranked=True
        )
        assert nothing == [[]]
