"""Memories of written dialogues: what is held, what answers, and what a ranker learns from it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tasks.test_retrieval import Letters, conversation, written

from memograd.data import Conversation
from memograd.errors import BadInput
from memograd.memory import RawTurn
from memograd.memory.analysis import analyse
from memograd.memory.search import Query
from memograd.memory.search.ranker.features import FEATURES
from memograd.memory.search.ranker.files import load_ranker, shipped_ranker
from memograd.memory.search.ranker.newer import PAIRS, centred
from memograd.memory.search.ranker.trained import asked, judge_items
from memograd.tasks.base.life import train_task
from memograd.tasks.retrieval.dialogues import (
    Dialogue,
    memories_of_dialogues,
    read_dialogues,
    sittings_of,
)
from memograd.tasks.retrieval.learning import fit_newer
from memograd.tasks.retrieval.material import row_of, rows_of, state_of
from memograd.tasks.retrieval.recipe import recipe_with
from memograd.tasks.retrieval.settings import RetrievalConfig

HOME = {
    "k": "change",
    "t": [
        ["u", "I live in Ottawa", [["f1", "I live in Ottawa", "User lives in Ottawa."]]],
        [
            "u", "I live in Montreal now",
            [["f2", "I live in Montreal now", "User lives in Montreal."]], [["f1", "replace"]],
        ],
    ],
    "q": [["Where does the user live?", ["f2"], "montreal"]],
}  # fmt: skip
GYM = {
    "k": "ending",
    "t": [
        ["u", "I play squash", [["f1", "I play squash", "User plays squash."]]],
        ["u", "I have a dog called Rex", [["f2", "I have a dog called Rex", "User has a dog."]]],
        ["u", "I gave squash up", [["f3", "I gave squash up", "User gave up."]], [["f1", "end"]]],
        ["u", "forget the dog", [], [["f2", "retract"]]],
    ],
    "q": [["Does the user play squash?", ["f1", "f3"], "gave"], ["Which dog is it?", []]],
}  # fmt: skip


def file_of(path: Path, *cases: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
    return path


def chat(number: int = 0, count: int = 6) -> Conversation:
    turns = [
        RawTurn(
            f"{session}:{n}",
            "assistant" if n % 2 else "user",
            f"Talk {number} of matter {n} in sitting {session}",
            datetime(2024, 1, session),
            session,
        )
        for session in range(1, 7)
        for n in range(count)
    ]
    return Conversation(f"chat{number}", ("user", "assistant"), tuple(turns), (), ())


def test_items_are_what_is_left_as_the_manager_words_it(tmp_path: Path) -> None:
    home, gym = read_dialogues(file_of(tmp_path / "en-x.jsonl", HOME, GYM))
    assert [item.text for item in home.items] == [
        "User lives in Montreal now (formerly: User lives in Ottawa, until 7 May 2024)."
    ]
    texts = [item.text for item in gym.items]
    assert texts == ["User plays squash (until 7 May 2024).", "User gave squash up."]
    assert gym.asked == (
        ("Does the user play squash?", frozenset(item.id for item in gym.items)),
        ("Which dog is it?", frozenset()),
    )


def test_a_line_that_is_no_dialogue_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"Line 2 of .*en-x\.jsonl is not a dialogue"):
        read_dialogues(file_of(tmp_path / "en-x.jsonl", HOME, {"k": "change"}))


def test_no_dialogue_shares_a_memory_with_one_that_is_asked_the_same(tmp_path: Path) -> None:
    batch = read_dialogues(file_of(tmp_path / "en-x.jsonl", HOME, HOME, GYM))
    memories = memories_of_dialogues([batch], sittings_of(chat()), Letters())
    asked = [[one.text for one in told.asked if one.evidence] for told in memories]
    assert sorted(texts.count("Where does the user live?") for texts in asked) == [1, 1]
    assert sum("Does the user play squash?" in texts for texts in asked) == 1


def test_the_answer_is_an_item_and_turns_are_not_learnt_from(tmp_path: Path) -> None:
    batch = read_dialogues(file_of(tmp_path / "en-x.jsonl", HOME, GYM))
    (told,) = memories_of_dialogues([batch], sittings_of(chat()), Letters())
    assert {item.sources[-1] for item in told.items or ()} <= {
        turn.id for some in told.conversations for turn in some
    }
    rows = {row.text: row for row in rows_of([told], Letters())}
    row = rows["Where does the user live?"]
    assert row.turns is None and row.items is not None
    (right,) = np.flatnonzero(row.items.hit)
    assert row.items.lines[right].startswith("User lives in Montreal now")
    assert len(row.items.lines) > 5  # the talk around it, too


def test_a_dialogue_inside_a_sitting_is_no_sitting_of_its_own(tmp_path: Path) -> None:
    batch: list[Dialogue] = []
    for number in range(12):
        case = json.loads(json.dumps(HOME).replace("live", f"live{number}"))
        batch += read_dialogues(file_of(tmp_path / f"en-{number}.jsonl", case))
    within = 0
    for told in memories_of_dialogues([batch], sittings_of(chat()), Letters()):
        for turns in told.conversations:
            own = [turn for turn in turns if not turn.id.startswith("chat")]
            if own and len(own) < len(turns):
                within += 1
                assert len({turn.session for turn in turns}) == 1
                assert len({turn.time for turn in turns}) == 1
                # Somebody answers, as in the talk around it.
                roles = [turn.said_as for turn in turns]
                assert all(one != two for one, two in pairwise(roles))
    assert within


@pytest.mark.slow
def test_turns_are_learnt_as_without_dialogues_and_items_are_not(tmp_path: Path) -> None:
    talk = written(tmp_path / "talk.jsonl", [conversation(number) for number in range(5)])
    beside = written(tmp_path / "beside.jsonl", [conversation(7)])
    dialogues = file_of(tmp_path / "en-x.jsonl", HOME, GYM)
    given: dict[str, Any] = {"data": [talk], "steps": 20, "embedder": "letters"}
    told = given | {"dialogues": [dialogues], "beside": [beside], "turns_only": [talk]}
    kept = []
    for name, settings in (("one", given), ("two", told)):
        config = RetrievalConfig(out=tmp_path / name, **settings)
        run = train_task("retrieval", recipe_with(Letters()), config)
        kept.append(load_ranker(run / "final"))
    assert np.array_equal(kept[0].turns.weights, kept[1].turns.weights)
    assert not np.array_equal(kept[0].items.weights, kept[1].items.weights)


def test_settings_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="dialogues and beside belong together"):
        RetrievalConfig(dialogues=[tmp_path / "en-x.jsonl"])
    with pytest.raises(
        ValueError, match=r"turns_only names files that are not in data: .*b\.jsonl"
    ):
        RetrievalConfig(data=[tmp_path / "a.jsonl"], turns_only=[tmp_path / "b.jsonl"])


def many(path: Path, count: int = 40) -> Path:
    """Changes of as many unlike matters."""
    cases = []
    for n in range(count):
        thing = "".join(chr(97 + (n * 7 + k * (n + 3)) % 26) for k in range(6))
        old, new = f"my {thing} costs {n} euros", f"the {thing} costs {n + 50} euros now"
        cases.append(
            {
                "k": "change",
                "t": [
                    ["u", old, [["f1", old, old]]],
                    ["u", new, [["f2", new, new]], [["f1", "replace"]]],
                ],
                "q": [[f"What does the {thing} cost?", ["f2"], str(n + 50)]],
            }
        )
    return file_of(path, *cases)


def test_half_of_the_dialogues_leave_old_values_open(tmp_path: Path) -> None:
    path = many(tmp_path / "en-x.jsonl")
    closed, opened = read_dialogues(path), read_dialogues(path, left_open=True)
    assert {len(one.items) for one in closed} == {1}
    held = [len(one.items) for one in opened]
    assert 10 < held.count(2) < 30
    assert held.count(1) == 40 - held.count(2)
    for one, other in zip(closed, opened, strict=True):
        assert [question for question, _ in one.asked] == [question for question, _ in other.asked]
        assert other.asked[0][1] == {other.items[-1].id}


def test_what_was_to_be_forgotten_is_left_open_by_none(tmp_path: Path) -> None:
    opened = read_dialogues(file_of(tmp_path / "en-x.jsonl", *[GYM] * 20), left_open=True)
    texts = {item.text for one in opened for item in one.items}
    assert "User plays squash." in texts
    assert not any("Rex" in text for text in texts)


@pytest.mark.parametrize("beside", [True, False])
def test_the_second_part_of_a_dialogue_is_told_later(tmp_path: Path, beside: bool) -> None:
    opened = read_dialogues(many(tmp_path / "en-x.jsonl"), left_open=True)
    sittings = sittings_of(chat()) if beside else []
    memories = memories_of_dialogues([opened], sittings, Letters(), cut=True)
    apart = 0
    for told in memories:
        place = {turn.id: turn.session for talk in told.conversations for turn in talk}
        order = [turn.id for talk in told.conversations for turn in talk]
        for name in {":".join(id.split(":")[:2]) for id in order if id.startswith("en-x")}:
            assert order.index(f"{name}:0") < order.index(f"{name}:1")
            apart += place[f"{name}:0"] < place[f"{name}:1"]
    assert apart > 10
    asked = [asking for told in memories for asking in told.asked if asking.evidence]
    assert len(asked) == 40


def test_a_run_learns_that_the_newer_value_comes_first(tmp_path: Path) -> None:
    opened = read_dialogues(many(tmp_path / "en-x.jsonl"), left_open=True)
    told = memories_of_dialogues([opened], sittings_of(chat()), Letters(), cut=True)
    rows = list(rows_of(told, Letters()))
    even = replace(shipped_ranker().items, weights=np.zeros(len(FEATURES)))
    newer = fit_newer(even, rows)
    assert newer is not None
    surely = newer.weights[-1] + newer.weights[PAIRS.index("near")]
    assert surely + 0.9 * newer.weights[PAIRS.index("alike")] > 0
    assert newer.weights[PAIRS.index("alike")] > 0
    assert fit_newer(even, [replace(row, items=None) for row in rows]) is None


def test_what_a_pair_is_learnt_by_is_what_search_computes(tmp_path: Path) -> None:
    opened = read_dialogues(many(tmp_path / "en-x.jsonl"), left_open=True)
    told = memories_of_dialogues([opened], sittings_of(chat()), Letters(), cut=True)[0]
    asking = next(one for one in told.asked if one.evidence)
    vector = Letters().embed_queries([asking.text])[0]
    query = Query(asking.text, vector, analyse(asking.text))
    state = state_of(told, Letters())
    row = row_of(state, query, asking, told)
    assert row.items is not None
    assert row.items.told is not None
    assert row.items.alike is not None
    seen = asked(
        state, query, asked_at=None, item_eligible=None, turn_eligible=None, with_turns=False
    )
    judged = judge_items(seen, shipped_ranker().items)
    assert judged is not None
    vectors = centred(judged.own.scored, judged.lists, np.arange(len(row.items.hit)))
    expected = (vectors @ vectors.T)[row.items.hit]
    np.testing.assert_allclose(row.items.alike, expected, atol=1e-6)
    np.testing.assert_array_equal(row.items.told, judged.lists.turn)
