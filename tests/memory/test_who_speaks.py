"""Whom a question names, and who said a turn: names as a memory gets them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memograd import Memory
from memograd.memory import RawTurn
from memograd.memory.analysis import analyse
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.search import Query
from memograd.memory.search.ranker.features import FEATURES
from memograd.memory.search.ranker.files import shipped_ranker
from memograd.memory.search.ranker.question import read_question
from memograd.memory.search.ranker.trained import asked, judge_items
from memograd.memory.state import MemoryState
from memograd.memory.state.columns import BIT, Columns, describe, spoken

MOMENT = datetime(2024, 1, 5, 9, tzinfo=UTC)
NAMES = ("ann", "caroline baker", "jon smith", "jon miller", "will", "a", "张伟明", "o'brien jr.")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("What does Ann do?", {"ann"}),
        ("Ann在哪里工作？", {"ann"}),
        ("我問過Ann嗎？", {"ann"}),
        ("What did Joanna say?", set()),
        ("What did Caroline buy?", {"caroline baker"}),
        ("what did caroline baker buy?", {"caroline baker"}),
        ("What did Jon buy?", set()),  # there are two
        ("What did Jon Miller buy?", {"jon miller"}),
        ("伟明喜欢什么？", {"张伟明"}),
        ("張偉明喜歡什麼？", {"张伟明"}),
        ("Where does Will work?", {"will"}),
        ("Will's new job?", {"will"}),
        ("Will it rain?", set()),
        ("Where will it rain?", set()),
        ("What did A say about a car?", {"a"}),
        ("Did I buy a car?", set()),
        ("What is O'Brien Jr. afraid of?", {"o'brien jr."}),
    ],
)
def test_whom_a_question_names(text: str, named: set[str]) -> None:
    assert read_question(text, asked_at=None, names=NAMES, years=()).named == named


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("我什麼時候去看牙醫？", {"when", "me"}),
        ("妳推薦了哪家餐廳？", {"pref", "where", "you"}),
        ("您建议我吃什么？", {"pref", "you", "me"}),
        ("我的貓幾歲？", {"count", "me"}),
        ("誰教我彈琴？", {"who"}),
    ],
)
def test_what_a_chinese_question_asks_for(text: str, asks: set[str]) -> None:
    assert asks <= read_question(text, asked_at=None, names=(), years=()).asks


def described(*said: tuple[str, str]) -> Columns:
    turns = [RawTurn(f"t{n}", who, text, None, 1) for n, (who, text) in enumerate(said)]
    return spoken(describe(turns))


def speakers(columns: Columns) -> list[str]:
    return [columns.names[number] for number in columns.speaker.tolist()]


def test_texts_that_say_who_speaks_tell_the_speakers() -> None:
    columns = described(
        ("user", "Gina: I lost my job."),
        ("assistant", "Jon Miller: Me too!"),
        ("user", "**Gina**: What now?"),
        ("assistant", "张伟：你好"),
        ("user", "User: hello"),
    )
    assert speakers(columns) == ["gina", "jon miller", "gina", "张伟", "user"]
    roles = BIT["user"] | BIT["assistant"]
    assert (columns.flags & roles).tolist() == [0, 0, 0, 0, BIT["user"]]


def test_a_heading_now_and_then_is_nobody() -> None:
    said = [("user", "I moved."), ("assistant", "Ingredients: flour"), ("user", "Thanks")] * 3
    columns = described(*said)
    assert speakers(columns) == [who for who, _ in said]
    assert "ingredients" not in columns.names


@pytest.mark.parametrize("speaker", ["model", "AI", "bot", "助手"])
def test_a_model_by_another_name_is_the_assistant(speaker: str) -> None:
    assert described((speaker, "Hello.")).flags[0] & BIT["assistant"]


def test_neighbours_weigh_the_same_where_no_item_holds_a_word() -> None:
    # Their words were once counted in units of the best item's, of which there was none.
    state = MemoryState(4)
    rows = np.eye(4, dtype=np.float32)
    turns = [
        RawTurn(f"t{n}", "user" if n % 2 == 0 else "assistant", text, MOMENT, 1)
        for n, text in enumerate(("I like zebras.", "Zebras are fine.", "And zebras run.", "Yes."))
    ]
    state.turns.add_many(turns, rows, [analyse(turn.index_text()) for turn in turns])
    items = [
        MemoryItem(f"i{n}", text, Scope(user_id="u"), MOMENT, MOMENT, sources=(f"t{n}",))
        for n, text in enumerate(("User likes striped animals.", "User agrees."))
    ]
    state.items.add_many(items, rows[:2], [analyse(item.text) for item in items])
    query = Query("What about zebras?", rows[0], analyse("What about zebras?"))
    seen = asked(
        state, query, asked_at=None, item_eligible=None, turn_eligible=None, with_turns=True
    )
    judged = judge_items(seen, shipped_ranker().items)
    assert judged is not None
    near = [at for at, name in enumerate(FEATURES) if name.startswith("near.")]
    assert 0 < judged.features.rows[:, near].max() <= 4.0


TALK = [
    {"role": "user", "name": "Gina", "content": "I lost my job at the bank."},
    {"role": "user", "name": "Jon", "content": "Oh no! I lost mine at the mill."},
]


@pytest.fixture
def verbatim(tmp_path: Path, trigrams: Any) -> Memory:
    memory = Memory.open(tmp_path, embedder=trigrams(384, "e5"), reader="rules", manager="rules")
    memory.add(TALK, user_id="u", infer=False, timestamp="2024-05-07T10:00:00")
    return memory


def test_what_was_remembered_word_for_word_is_found_as_a_turn(verbatim: Memory) -> None:
    found = verbatim.search("Where did Jon lose his job?", user_id="u", turns=2)["turns"]
    assert {turn["speaker"]: turn["text"] for turn in found} == {
        said["name"]: said["content"] for said in TALK
    }


def test_a_context_says_it_once(verbatim: Memory) -> None:
    shown = verbatim.context("Where did Jon lose his job?", user_id="u", token_budget=500)
    assert shown.text.count("at the mill") == 1
    assert not shown.left_out_turns


def test_what_was_deleted_is_no_turn_either(verbatim: Memory) -> None:
    [first, _] = verbatim.get_all(user_id="u")["results"]
    verbatim.delete(first["id"])
    found = verbatim.search("Where did Gina lose her job?", user_id="u", turns=5)
    assert "bank" not in str(found)
