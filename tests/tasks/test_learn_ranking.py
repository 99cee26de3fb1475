"""A ranker that learns from feedback: what it learns, what the guard refuses, and the way back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tasks.conftest import Command

from memograd.data.lifelog.from_journal import is_held_out
from memograd.errors import BadInput
from memograd.memory import Memory
from memograd.memory.search.ranker.features import FEATURES
from memograd.memory.search.ranker.files import (
    SHIPPED,
    Ranker,
    RankerVersions,
    save_ranker,
    shipped_ranker,
)
from memograd.tasks.retrieval.feedback import FoundBy, adapted, feedback_rows, learn_ranking
from memograd.tasks.retrieval.learning import items_part

TOLD = {
    "Which town do I live in?": "I live in Boston.",
    "What is my cat called?": "My cat is called Muffin.",
    "Which car do I drive?": "I drive an old Volvo.",
    "What is my job?": "I work as a nurse.",
    "What is my sister's name?": "My sister's name is Clara.",
    "Which tea do I like?": "I like jasmine tea.",
    "What am I allergic to?": "I am allergic to peanuts.",
    "Which instrument do I play?": "I play the cello.",
    "Which language do I learn?": "I learn Portuguese.",
    "What is my favourite film?": "My favourite film is Amelie.",
    "我养了什么宠物？": "我养了一只鹦鹉。",
    "Which sport do I do?": "I go rowing on Sundays.",
}


def contrary() -> Ranker:
    """Puts first what looks least like the question."""
    shipped = shipped_ranker()
    weights = np.zeros(len(FEATURES))
    weights[FEATURES.index("surface.length")] = 0.5
    linear = replace(shipped.items, weights=weights)
    return replace(shipped, items=linear, turns=linear, made_from={})


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """Statements word for word, and a question about each that was answered well."""
    with Memory.open(
        tmp_path / "m", env_file=None, ranking=str(tmp_path / "rankers"), reader="rules",
        manager="rules",
    ) as opened:  # fmt: skip
        shown = {
            question: opened.add(text, user_id="a", infer=False)["results"][0]["id"]
            for question, text in TOLD.items()
        }
        for question in TOLD:  # says more of the question's words than the answer does
            opened.add(f"Ben asked me: {question}", user_id="a", infer=False)
        for question, item in shown.items():
            answer = opened.answered(question, TOLD[question], shown=[item], user_id="a")
            opened.feedback(answer, "good", user_id="a")
        yield opened


def found_first(memory: Memory) -> int:
    """How many of the answers a search puts among the first five."""
    found = {
        question: memory.search(question, user_id="a", top_k=5)["results"] for question in TOLD
    }
    return sum(
        TOLD[question] in [hit["memory"] for hit in hits] for question, hits in found.items()
    )


def test_feedback_becomes_questions_with_evidence(memory: Memory) -> None:
    rows, left_out = feedback_rows(memory, "user:a")
    assert [row.text for row in rows] == list(TOLD) and not left_out
    assert all(row.items is not None and row.items.hit.sum() == 1 for row in rows)
    assert feedback_rows(memory, "user:b") == ([], {})


def test_a_bad_ranker_gets_better_and_goes_back(memory: Memory, tmp_path: Path) -> None:
    versions = RankerVersions(tmp_path / "rankers")
    first = versions.save(contrary())
    versions.adopt(first)
    before = found_first(memory)
    report = learn_ranking(memory, "user:a", versions.folder, ridge=10.0)
    assert "items" in report.adopted and report.found["items"].better
    assert report.held_out == sum(is_held_out(question, 0.25) for question in TOLD)
    assert report.trained_on + report.held_out == len(TOLD)
    assert found_first(memory) > before  # the open memory follows
    assert (versions.current, versions.before) == (report.after_version, [first])
    log = (versions.folder / "log.jsonl").read_text("utf-8")
    assert "nurse" not in log and "job" not in log
    assert versions.rollback() == first
    assert found_first(memory) == before


def test_what_finds_no_more_is_not_adopted(memory: Memory, tmp_path: Path) -> None:
    report = learn_ranking(memory, "user:a", tmp_path / "rankers", ridge=1e6)
    assert report.adopted == () and not report.found["items"].better
    versions = RankerVersions(tmp_path / "rankers")
    assert versions.current == report.before_version == report.after_version
    assert not FoundBy(0.5, 0.6, 0.6).better and not FoundBy(0.7, 0.5, 0.6).better
    assert FoundBy(0.5, 0.5, 0.6).better


def test_few_questions_move_little_and_none_nothing(memory: Memory) -> None:
    rows, _ = feedback_rows(memory, "user:a")
    start = shipped_ranker().items
    moved = [adapted(start, rows[:count], items_part) for count in (1, len(rows))]
    away = [
        0.0 if one is None else float(np.abs(one.weights - start.weights).sum()) for one in moved
    ]
    assert 0 < away[0] < away[1]
    assert adapted(start, [], items_part) is None


def test_what_cannot_be_learnt_from_is_one_sentence(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    with pytest.raises(BadInput, match="too little for a ranker: 0 questions"):
        learn_ranking(memory, "user:nobody", folder)
    with pytest.raises(BadInput, match="0 to judge by"):
        learn_ranking(memory, "user:a", folder, held_out=0.0)
    assert not folder.exists()
    versions = RankerVersions(folder)
    versions.adopt(versions.save(replace(contrary(), embedder="minilm")))
    with pytest.raises(BadInput, match="trained on vectors of 'minilm', the memory has 'e5'"):
        learn_ranking(memory, "user:a", folder)
    with pytest.raises(BadInput, match="adopt it into another folder"):
        versions.save(contrary())


@pytest.mark.slow
def test_at_the_command_line(command: Command) -> None:
    assert "adopt one with memograd ranker adopt" in command("ranker", "list", "--dir", "r", code=2)
    assert "There is no ranker" in command("ranker", "adopt", "mine", "--dir", "r", code=2)
    assert not Path("r").exists()
    save_ranker(contrary(), Path("mine/ranker.json"))
    command("ranker", "adopt", "mine", "--dir", "r")
    learn = ("learn", "--user", "a", "--ranker-dir", "r")
    assert "There is no memory in memories" in command(*learn, code=2)
    command("memory", "add", "I live in Rome.", "--user", "b")
    assert "too little for a ranker" in command(*learn, code=2)
    assert "give --policy-dir with them" in command(*learn, "steps=3", code=2)
    with Memory.open("memories", reader="rules", manager="rules") as memory:
        for question, text in TOLD.items():
            item = memory.add(text, user_id="a", infer=False)["results"][0]["id"]
            answer = memory.answered(question, text, shown=[item], user_id="a")
            memory.feedback(answer, "good", user_id="a")
    report: dict[str, Any] = json.loads(command(*learn, "--json"))["ranker"]
    assert report["trained_on"] + report["held_out"] == len(TOLD)
    assert (report["after_version"] != report["before_version"]) == bool(report["adopted"])
    command("ranker", "adopt", str(SHIPPED), "--dir", "r")
    rows = json.loads(command("ranker", "list", "--dir", "r", "--json"))
    assert rows[-1]["state"] == "current" and rows[-1]["about"]["algorithm"] == "supervised"
    before = report["after_version"]
    assert f"{before} is current again" in command("ranker", "rollback", "--dir", "r")
