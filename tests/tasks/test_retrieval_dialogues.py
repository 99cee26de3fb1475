"""Memories of written dialogues: what is held, what answers, and what a ranker learns from it."""

from __future__ import annotations

import json
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
from memograd.memory.search.ranker.files import load_ranker
from memograd.tasks.base.life import train_task
from memograd.tasks.retrieval.dialogues import (
    Dialogue,
    memories_of_dialogues,
    read_dialogues,
    sittings_of,
)
from memograd.tasks.retrieval.material import rows_of
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
