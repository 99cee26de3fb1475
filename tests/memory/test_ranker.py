"""The trained ranking: what it must never do, whatever the memory and the weights."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memograd import Memory
from memograd.errors import BadInput
from memograd.memory import RawTurn
from memograd.memory.analysis import analyse
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.search import Query
from memograd.memory.search.ranker.features import FEATURES, GROUPS, group_of
from memograd.memory.search.ranker.files import (
    SHIPPED,
    Probability,
    load_ranker,
    save_ranker,
    shipped_ranker,
)
from memograd.memory.search.ranker.question import read_question
from memograd.memory.search.ranker.trained import (
    asked,
    candidates_of,
    choose_ranking,
    judge_both,
    judge_items,
    judge_turns,
)
from memograd.memory.state import MemoryState

START = datetime(2024, 1, 5, 9, tzinfo=UTC)


def unit(rng: np.random.Generator, n: int) -> np.ndarray:
    rows = rng.normal(size=(n, 8)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def state_of(
    texts: list[str], *, removed: tuple[int, ...] = (), at_once: bool = True
) -> MemoryState:
    state, vectors = MemoryState(8), unit(np.random.default_rng(3), len(texts))
    turns = [
        RawTurn(f"t{n}", "Ann" if n % 2 else "Ben", text, START + timedelta(days=n // 4), n // 4)
        for n, text in enumerate(texts)
    ]
    kept = [n for n in range(len(texts)) if not (at_once and n in removed)]
    if at_once:
        state.turns.add_many(
            [turns[n] for n in kept], vectors[kept], [analyse(turns[n].index_text()) for n in kept]
        )
        return state
    for n, turn in enumerate(turns):
        state.add_turn(turn, vectors[n], analyse(turn.index_text()))
    for n in removed:
        state.turns.remove(f"t{n}")
    return state


WORDS = ("cats", "dogs", "tea", "rain", "cars", "jazz")
TEXTS = [f"we spoke of {word} on the beach" for word in WORDS] * 12


def search(state: MemoryState, text: str, **given: Any) -> list[tuple[str, float]]:
    vector = unit(np.random.default_rng(5), 1)[0]
    query = Query(text, vector, analyse(text))
    seen = asked(
        state, query, asked_at=given.get("asked_at", START), item_eligible=None,
        turn_eligible=given.get("eligible"), with_turns=True,
    )  # fmt: skip
    ranker = shipped_ranker()
    found = candidates_of(
        judge_turns(seen, ranker.turns), state.turns, query, ranker.turns, ranker.turn_probability,
        most=given.get("most", 20), threshold=given.get("threshold"), explain=True,
    )  # fmt: skip
    return [(one.record.id, one.score) for one in found]


def test_scores_are_probabilities_that_never_rise() -> None:
    scores = [score for _, score in search(state_of(TEXTS), "What did Ann say of jazz?")]
    assert len(scores) == 20
    assert all(0 < score < 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


def test_more_than_the_lists_hold_can_be_asked_for() -> None:
    state = state_of(TEXTS * 5)
    everything = search(state, "What did Ann say of jazz?", most=1_000)
    assert len(everything) == len({id for id, _ in everything}) == len(state.turns)
    scores = [score for _, score in everything]
    assert scores == sorted(scores, reverse=True)
    assert everything[:200] == search(state, "What did Ann say of jazz?", most=200)
    by_ann = search(state, "jazz", most=1_000, eligible=lambda turn: turn.speaker == "Ann")
    assert len(by_ann) == len(state.turns) / 2


def test_what_was_said_on_the_day_asked_for_is_a_candidate() -> None:
    state = state_of(TEXTS * 5)
    day = START + timedelta(days=50)
    told = {turn.id for turn in state.turns if turn.time == day}
    assert len(told) == 4
    then = day + timedelta(days=3)
    found = search(state, "Where did we go three days ago?", most=64, asked_at=then)
    assert told <= {id for id, _ in found}


def test_a_history_of_writes_and_removals_answers_like_a_fresh_memory() -> None:
    gone = (0, 7, 8, 40)
    fresh = search(state_of(TEXTS, removed=gone), "rain or tea with Ben")
    lived = search(state_of(TEXTS, removed=gone, at_once=False), "rain or tea with Ben")
    assert [id for id, _ in fresh] == [id for id, _ in lived]
    np.testing.assert_allclose([s for _, s in fresh], [s for _, s in lived], atol=1e-4)


def test_vectors_are_those_of_the_living_records() -> None:
    texts = TEXTS + [f"late {word}" for word in WORDS]
    state = state_of(texts, removed=(0, 7, 40), at_once=False)
    scored = state.turns.scored(None, ())
    numbers = np.array([0, 3, 3, 37, len(scored) - 1])
    ids = [scored.record(number).id for number in numbers.tolist()]
    np.testing.assert_array_equal(scored.vectors(numbers), state.turns.vectors(ids))


def test_only_what_is_eligible_is_found() -> None:
    found = search(state_of(TEXTS), "cats", eligible=lambda turn: turn.speaker == "Ann")
    assert found
    assert all(int(id[1:]) % 2 for id, _ in found)


def test_a_threshold_is_the_least_probability() -> None:
    everything = search(state_of(TEXTS), "dogs and tea")
    middle = everything[5][1]
    assert search(state_of(TEXTS), "dogs and tea", threshold=middle) == [
        one for one in everything if one[1] >= middle
    ]


@pytest.mark.parametrize("texts", [TEXTS, ["only this"], []])
def test_items_and_turns_are_judged_together_as_each_alone(texts: list[str]) -> None:
    state = state_of(texts)
    for number, text in enumerate(["Tea was fine.", *texts[:9]]):
        sources = (f"t{3 * number}",) if number and number != 4 else ()  # some came from no turn
        item = MemoryItem(f"i{number}", text, Scope("ann"), START, START, sources=sources)
        state.add_item(item, unit(np.random.default_rng(number), 1)[0], analyse(text))
    query = Query("rain or tea?", unit(np.random.default_rng(5), 1)[0], analyse("rain or tea?"))
    seen = asked(
        state, query, asked_at=START, item_eligible=None, turn_eligible=None, with_turns=True
    )
    ranker = shipped_ranker()
    alone = judge_items(seen, ranker.items), judge_turns(seen, ranker.turns)
    for one, both in zip(alone, judge_both(seen, ranker), strict=True):
        assert (one is None) == (both is None) == (one is alone[1] and not texts)
        if one is not None and both is not None:
            np.testing.assert_array_equal(one.features.rows, both.features.rows)
            np.testing.assert_array_equal(one.scores, both.scores)


@pytest.mark.parametrize("texts", [[], ["only this"]])
def test_a_memory_of_nothing_or_of_one_turn(texts: list[str]) -> None:
    assert len(search(state_of(texts), "what was it?")) == len(texts)


def test_every_feature_is_of_a_group_that_has_words() -> None:
    assert {group_of(name) for name in FEATURES} == set(GROUPS)


def test_the_shipped_ranker_can_be_written_and_read(tmp_path: Path) -> None:
    save_ranker(shipped_ranker(), tmp_path / "ranker.json")
    again = load_ranker(tmp_path)
    assert again.embedder == shipped_ranker().embedder == "e5"
    np.testing.assert_allclose(again.turns.weights, shipped_ranker().turns.weights)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "x"}, "is not a ranker"),
        ({"features_version": 99}, "version 99"),
        ({"features": ["dense.gap"]}, "train it again"),
        ({"embedder": None}, "which embedder"),
        ({"turns": {}}, "finite numbers of at most"),
    ],
)
def test_what_cannot_rank_is_one_sentence(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    content = json.loads(SHIPPED.read_text("utf-8")) | change
    path = tmp_path / "r.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(BadInput, match=words):
        load_ranker(path)
    chosen = choose_ranking(str(path), "e5")
    assert chosen.ranker is None
    assert words in chosen.reason


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300, 10**400, None, "1"])
def test_what_is_no_number_to_count_with_is_refused(tmp_path: Path, number: Any) -> None:
    content = json.loads(SHIPPED.read_text("utf-8"))
    content["items"]["weights"][3] = number
    path = tmp_path / "r.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(BadInput, match=r"finite numbers of at most .* as weights of items"):
        load_ranker(path)


@pytest.mark.parametrize("scale", [0, -1.0, 1e-300])
def test_a_scale_that_nothing_can_be_divided_by_is_refused(tmp_path: Path, scale: float) -> None:
    content = json.loads(SHIPPED.read_text("utf-8"))
    content["turns"]["scale"][0] = scale
    path = tmp_path / "r.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert "has a scale below 1e-12 in turns" in choose_ranking(str(path), "e5").reason


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b"[" * 200_000, b'{"format": 1}'])
def test_a_file_that_is_no_ranker_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(content)
    chosen = choose_ranking(str(path), "e5")
    assert chosen.ranker is None
    assert "is not a ranker" in chosen.reason


def test_another_embedder_and_what_lost_to_fusion_rank_by_fusion(tmp_path: Path) -> None:
    assert "not of 'minilm'" in choose_ranking("trained", "minilm").reason
    lost = replace(shipped_ranker(), made_from={"held_out": {"adopted": False}})
    save_ranker(lost, tmp_path / "ranker.json")
    assert "did not beat" in choose_ranking(str(tmp_path), "e5").reason
    assert choose_ranking("fusion", "e5").ranker is None
    assert "no ranker at" in choose_ranking(str(tmp_path / "none"), "e5").reason


def test_a_better_score_is_never_less_probable() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=50)
    probability: Probability = shipped_ranker().turn_probability
    chances = probability.of(scores, np.zeros(len(probability.answerable) - 1))
    assert (np.diff(chances[np.argsort(-scores)]) <= 1e-12).all()


@pytest.mark.parametrize(
    ("text", "asks", "named"),
    [
        ("When did Caroline go to the museum?", {"when"}, {"caroline"}),
        ("How many books did I read?", {"count", "me"}, set()),
        ("你推荐了哪家餐厅？", {"you", "pref"}, set()),
        ("我现在住在哪里？", {"me", "now", "where"}, set()),
    ],
)
def test_questions_are_read(text: str, asks: set[str], named: set[str]) -> None:
    question = read_question(text, asked_at=None, names=("caroline", "user"), years=(2023,))
    assert asks <= question.asks
    assert question.named == named


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("What did we do on May 7?", datetime(2023, 5, 7)),
        ("What did I say two weeks ago?", datetime(2023, 8, 6)),
        ("昨天发生了什么？", datetime(2023, 8, 19)),
        ("8月3日我在哪？", datetime(2023, 8, 3)),
    ],
)
def test_dates_in_questions(text: str, day: datetime) -> None:
    asked_at = datetime(2023, 8, 20, 12, tzinfo=UTC)
    spans = read_question(text, asked_at=asked_at, names=(), years=(2023,)).spans
    assert any(begin <= day < end for begin, end in spans)


def test_what_was_rewritten_is_found_by_its_own_words(tmp_path: Path) -> None:
    # The home is told by two turns, and the last one says neither "live" nor "Boston".
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        memory.add("I live in Boston. My dog is called Rex.", user_id="alice")
        memory.add("guess who's a Denver local now!", user_id="alice")
        best = memory.search("Where does she live?", user_id="alice")["results"][0]
    assert "Denver" in best["memory"]


def items_of(*texts: str) -> MemoryState:
    state, vectors = MemoryState(8), unit(np.random.default_rng(5), len(texts))
    items = [
        MemoryItem(f"i{n}", text, Scope(user_id="u"), START, START) for n, text in enumerate(texts)
    ]
    state.items.add_many(items, vectors, [analyse(text) for text in texts])
    return state


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("Which car does the user drive?", ("User asked what User and User's kids eat.", "A car.")),
        ("用户在哪家公司？", ("用户说用户的妈问用户。", "公司很大。")),
    ],
)
def test_the_name_of_the_user_is_no_word_of_a_question(question: str, texts: tuple[str]) -> None:
    state = items_of(*texts, "Tea.", "Rain.")
    query = Query(question, unit(np.random.default_rng(1), 1)[0], analyse(question))
    seen = asked(
        state, query, asked_at=None, item_eligible=None, turn_eligible=None, with_turns=False
    )
    words = seen.items.words
    assert words.bm25[0] == 0 and words.bm25[1] > 0
    assert words.cover[0] == 0


def test_a_question_with_no_other_word_is_ranked_by_meaning() -> None:
    state = items_of("User is a florist.", "User asked: what can User do?", "Rain.")
    query = Query("What does the user do?", unit(np.random.default_rng(5), 3)[0], analyse("user"))
    seen = asked(
        state, query, asked_at=None, item_eligible=None, turn_eligible=None, with_turns=False
    )
    assert not seen.items.words.bm25.any()
    judged = judge_items(seen, shipped_ranker().items)
    assert judged is not None and np.isfinite(judged.scores).all()
    assert judged.lists.numbers[int(judged.scores.argmax())] == 0
