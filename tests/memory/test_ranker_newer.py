"""An older item goes behind the newer one that answers the same: never out of what is found."""

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
from memograd.memory.filters import scope_filter
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.search import Query
from memograd.memory.search.hits import SearchRequest
from memograd.memory.search.ranker.files import Ranker, load_ranker, save_ranker, shipped_ranker
from memograd.memory.search.ranker.newer import COMPARED, PAIRS, Newer
from memograd.memory.search.ranker.question import read_question
from memograd.memory.search.reach import Reached
from memograd.memory.search.recall import trained
from memograd.memory.state import MemoryState

START = datetime(2024, 1, 5, 9, tzinfo=UTC)
WORN = "How many times has the user worn the boots?"
ALIKE = {"alike": 10.0, "asks_did": -20.0, "bias": -6.0}


def newer_of(weights: dict[str, float]) -> Newer:
    return Newer(np.array([weights.get(name, 0.0) for name in (*PAIRS, "bias")]))


def ranker_of(newer: Newer | None) -> Ranker:
    return replace(shipped_ranker(), newer=newer)


def state_of(said: list[tuple[str, list[float]]]) -> MemoryState:
    """A sitting a day, an item each."""
    state = MemoryState(4)
    for n, (text, direction) in enumerate(said):
        time = START + timedelta(days=n)
        vector = np.array(direction, np.float32) / np.linalg.norm(direction)
        turn = RawTurn(f"t{n}", "user", text, time, n, role="user")
        state.add_turn(turn, vector, analyse(text))
        item = MemoryItem(f"i{n}", text, Scope("u"), time, time, sources=(turn.id,), role="user")
        state.add_item(item, vector, analyse(text))
    return state


BOOTS = [
    ("User has worn the boots four times, the red boots.", [3.0, 1.0, 0.2, 0.0]),
    ("User feeds a cat.", [0.2, -1.0, 2.0, 0.1]),
    ("User ran errands, that makes six times in the boots.", [2.4, 1.0, 0.3, 0.1]),
    ("User likes jazz and rain.", [0.1, -1.0, 0.0, 2.0]),
]


def found(
    state: MemoryState, question: str, ranker: Ranker, **given: Any
) -> list[tuple[str, float, str | None]]:
    vector = np.array([1.0, 0.1, 0.0, 0.0], np.float32)
    query = Query(question, vector / np.linalg.norm(vector), analyse(question))
    wanted = scope_filter("u", None, None, None)
    request = SearchRequest(question, wanted, top_k=10, asked_at=START, **given)
    hits = trained(request, query, Reached(state, wanted, None, whole=True), ranker, None).items
    return [(hit.record.id, hit.score, hit.why.newer) for hit in hits]


def test_the_newer_of_two_that_are_alike_comes_first_and_takes_the_place() -> None:
    before = found(state_of(BOOTS), WORN, ranker_of(None))
    after = found(state_of(BOOTS), WORN, ranker_of(newer_of(ALIKE)))
    assert [id for id, *_ in before[:2]] == ["i0", "i2"]
    assert [(id, newer) for id, _, newer in after[:2]] == [("i2", None), ("i0", "i2")]
    assert [score for _, score, _ in after] == [score for _, score, _ in before]


def test_a_question_about_the_past_and_what_was_told_before_stay() -> None:
    first = "How many times has the user worn the boots before?"
    did = "How many times did the user wear the boots?"
    for question, said in ((first, BOOTS), (did, BOOTS), (WORN, BOOTS[::-1])):
        ways = [
            found(state_of(said), question, ranker_of(newer))
            for newer in (None, newer_of(ALIKE), newer_of({"bias": -1.0}))
        ]
        assert ways[0] == ways[1] == ways[2]


ENGLISH = (
    "I planted tomatoes.", "The train was late again.", "I am learning to knit.",
    "My neighbour fixed the fence.", "We watched a film about whales.", "I had pasta for lunch.",
    "I bought a green umbrella.", "The dentist moved my appointment.", "My sister plays the harp.",
)  # fmt: skip
CHINESE = (
    "我在阳台种了番茄。", "上班的地铁又晚点了。", "我在学织毛衣。", "邻居修好了栅栏。",
    "我们看了一部讲鲸鱼的电影。", "我买了一把绿伞。", "牙医改了我的预约。", "我养了一只猫。",
)  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "now", "then"),
    [
        (
            "I usually go to the gym at 7 pm on weekdays.",
            "I need to leave early, the gym is usually at 6 pm these days.",
            "What time do I usually go to the gym?", "What time did I go to the gym before?",
        ),
        (
            "I have worn my new black Converse sneakers four times already.",
            "I ran errands in the black Converse, so that makes six times now.",
            "How many times have I worn my black Converse sneakers?",
            "How many times did I first wear my black Converse sneakers?",
        ),
        (
            "用户每周跑步三次。", "用户说最近每周跑五次步了。",
            "用户每周跑步几次？", "用户以前每周跑步几次？",
        ),
    ],
)  # fmt: skip
def test_the_shipped_ranker_prefers_the_newer_unless_asked_for_the_past(
    tmp_path: Path, old: str, new: str, now: str, then: str
) -> None:
    between = ENGLISH if old.isascii() else CHINESE
    with Memory.open(tmp_path, env_file=None) as memory:
        for n, text in enumerate((old, *between, new)):  # word for word: no turn is kept
            time = START + timedelta(days=7 * n)
            memory.add(text, user_id="u", timestamp=time, infer=False)
        first = {
            question: [hit["memory"] for hit in memory.search(question, user_id="u")["results"][:2]]
            for question in (now, then)
        }
    assert first == {now: [new, old], then: [old, new]}


def test_the_first_three_stay_the_same_three_and_scores_never_rise() -> None:
    draw = np.random.default_rng(7)
    for _ in range(30):
        said = [(f"boots number {n}", draw.normal(size=4).tolist()) for n in range(12)]
        newer = Newer(draw.normal(size=len(PAIRS) + 1) * 3)
        state = state_of(said)
        before = found(state, WORN, ranker_of(None))
        after = found(state, WORN, ranker_of(newer))
        ids = [[id for id, *_ in hits] for hits in (before, after)]
        assert set(ids[0][:COMPARED]) == set(ids[1][:COMPARED])
        assert ids[0][COMPARED:] == ids[1][COMPARED:]
        scores = [score for _, score, _ in after]
        assert scores == sorted(scores, reverse=True)
        at = {id: n for n, id in enumerate(ids[1])}
        for id, _, behind in after:
            assert behind is None or (int(behind[1:]) > int(id[1:]) and at[behind] < at[id])


def test_a_threshold_shows_as_many_and_an_explanation_says_why() -> None:
    state, ranker = state_of(BOOTS), ranker_of(newer_of(ALIKE))
    second = found(state, WORN, ranker)[1][1]
    assert [id for id, *_ in found(state, WORN, ranker, threshold=second)] == ["i2", "i0"]
    query = Query(WORN, np.array([1.0, 0.0, 0.0, 0.0], np.float32), analyse(WORN))
    wanted = scope_filter("u", None, None, None)
    request = SearchRequest(WORN, wanted, top_k=2, asked_at=START, explain=True)
    hits = trained(request, query, Reached(state, wanted, None, whole=True), ranker, None).items
    assert "it stands behind i2, which was told later" in str(hits[1].why)


def test_what_was_learnt_of_newer_items_can_be_written_and_read(tmp_path: Path) -> None:
    newer = newer_of(ALIKE)
    path = tmp_path / "ranker.json"
    save_ranker(ranker_of(newer), path)
    read = load_ranker(path).newer
    assert read is not None
    np.testing.assert_array_equal(read.weights, newer.weights)
    save_ranker(ranker_of(None), path)
    assert load_ranker(path).newer is None


@pytest.mark.parametrize(
    "part",
    [[], {"pairs": list(PAIRS)}, {"pairs": ["gap"], "weights": [1.0, 2.0]},
     {"pairs": list(PAIRS), "weights": [float("nan")] * (len(PAIRS) + 1)}],
)  # fmt: skip
def test_what_cannot_tell_newer_items_is_one_sentence(tmp_path: Path, part: Any) -> None:
    path = tmp_path / "ranker.json"
    save_ranker(shipped_ranker(), path)
    content = json.loads(path.read_text("utf-8")) | {"newer": part}
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(BadInput, match="train it again"):
        load_ranker(path)


@pytest.mark.parametrize(
    ("question", "did"),
    [("Where does the user live?", False), ("Where did Ann go?", True), ("他当时住在哪里？", True),
     ("用户住在哪里？", False), ("Was it good?", True)],
)  # fmt: skip
def test_a_question_about_what_happened_is_told(question: str, did: bool) -> None:
    asks = read_question(question, asked_at=None, names=(), years=()).asks
    assert ("did" in asks) is did
