"""What a message beside a few memories closes: what is learnt of it, and what it spares."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memograd import Memory
from memograd.errors import BadInput
from memograd.memory.manager import RelationManager
from memograd.memory.manager.crowded import EVIDENCE, few_evidence
from memograd.memory.manager.past import present
from memograd.memory.records.notes import is_doubted, is_past
from memograd.memory.relations import load_relation_model
from memograd.memory.relations.gate import gate_file, read_gate, write_gate
from memograd.memory.relations.model import SHIPPED
from memograd.memory.relations.weights import read_weights
from memograd.tasks.relations.few import Looked, fitted_few, told_few

MOVED = {
    "k": "change",
    "t": [
        ["u", "I live in Ottawa", [["f1", "I live in Ottawa", "User lives in Ottawa."]]],
        [
            "u",
            "I've moved to Montreal",
            [["f2", "I've moved to Montreal", "User lives in Montreal."]],
            [["f1", "replace"]],
        ],
    ],
}
CHAT = {"k": "chat", "t": [["u", "strewth", []], ["u", "wrong chat haha", []]]}
DOG = {
    "k": "addition",
    "t": [["u", "I have a dog called Rex", [["f1", "I have a dog called Rex", "User has a dog."]]]],
}


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    return path


def test_strangers_are_never_closed_and_its_own_are_as_the_writer_says(tmp_path: Path) -> None:
    file = written(tmp_path / "en-x.jsonl", [MOVED, CHAT, DOG])
    found = told_few(load_relation_model(), file)
    assert {one.stranger for one in found} == {True, False}
    assert not any(one.closed.any() for one in found if one.stranger)
    [closing] = [one for one in found if one.closed.any()]
    assert closing.text == "I've moved to Montreal" and closing.evidence.shape[1] == len(
        few_evidence(load_relation_model())
    )
    again = told_few(load_relation_model(), file)
    assert all(np.array_equal(a.evidence, b.evidence) for a, b in zip(found, again, strict=True))


def test_the_bound_lets_pass_what_is_closed_and_it_lies_in_the_gate(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(400, len(EVIDENCE))).astype(np.float32)
    closed = rows[:, 0] > 0
    found = [
        Looked(f"d:{n}", "", rows[n : n + 1], closed[n : n + 1], stranger=False) for n in range(400)
    ]
    few = fitted_few(found)
    assert few.weight[EVIDENCE.index("items")] == 0  # twins would give themselves away
    passed = few.scores(rows) >= few.least
    assert passed[closed].mean() > 0.95 and passed[~closed].mean() < 0.2
    weights = read_weights(SHIPPED)
    gate = read_gate(gate_file(SHIPPED), weights)
    assert gate is not None
    write_gate(replace(gate, few=few), tmp_path / "relations.gate.npz")
    again = read_gate(tmp_path / "relations.gate.npz", weights)
    assert again is not None and again.few is not None
    assert again.few.least == pytest.approx(few.least)
    assert (again.few.weight == few.weight).all()


def test_of_a_life_the_last_message_alone_is_noted_and_its_facts_are_no_strangers(
    tmp_path: Path,
) -> None:
    told = [["u", text, [["f", text, text]]] for text in ("I drive a Honda", "I play the bass")]
    life = {"k": "life", "t": [*told, ["u", "sold the Honda", [], [["f", "end"]]]]}
    found = told_few(load_relation_model(), written(tmp_path / "en-x.jsonl", [life, life, DOG]))
    own = [one for one in found if one.dialogue != "en-x:3"]
    assert own and {one.text for one in own} == {"sold the Honda"}
    assert not any(one.stranger for one in found if one.dialogue == "en-x:3")


def test_dialogues_in_which_nothing_ends_teach_nothing(tmp_path: Path) -> None:
    file = written(tmp_path / "en-x.jsonl", [DOG, CHAT])
    with pytest.raises(BadInput, match="closes an item, so nothing can be learnt"):
        fitted_few(told_few(load_relation_model(), file))


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (("I play the cello on Tuesdays.", "My birthday is 3 March."), "yessir"),
        (("I support Leeds United.", "I drive a Honda."), "done"),
        (("My boss is called Karen.", "I have a dog called Rex."), "wrong chat haha"),
        (("I drive a Honda.", "I work at Tesco."), "ja nee"),
        (("I take 50 mg of sertraline.", "My rent is 1450 euros a month."), "strewth"),
        (("My flight is on 14 June at 6am.", "I'm vegetarian."), "ahem"),
        (("我养了一只狗叫旺财", "我在银行上班"), "笑死"),
        (("我吃素", "我开本田"), "好吧"),
    ],
)
def test_what_speaks_of_nothing_closes_nothing(
    tmp_path: Path, facts: tuple[str, str], said: str
) -> None:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        for fact in facts:
            memory.add(fact, user_id="ann")
        before = {one["memory"] for one in memory.get_all(user_id="ann")["results"]}
        memory.add(said, user_id="ann")
        after = {one["memory"] for one in memory.get_all(user_id="ann")["results"]}
    assert before <= after


@pytest.mark.parametrize(
    ("facts", "said", "gone"),
    [
        (("I drive a Honda.", "I work at Tesco."), "sold the Honda", "drives a Honda."),
        (("I'm vegetarian.", "I work at Tesco."), "quit my job at Tesco today", "at Tesco."),
        (("我养了一只狗叫旺财", "我在银行上班"), "我从银行辞职了", "用户在银行上班。"),
    ],
)
def test_what_ends_something_still_does(
    tmp_path: Path, facts: tuple[str, str], said: str, gone: str
) -> None:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        for fact in (*facts, said):
            memory.add(fact, user_id="ann")
        after = {one["memory"] for one in memory.get_all(user_id="ann")["results"]}
    assert not any(text.endswith(gone) for text in after)


@pytest.mark.parametrize(
    ("facts", "said", "kept"),
    [
        (
            ("I have a standing order to Oxfam for £10 a month", "I cycle to work"),
            "cancelled my Oxfam shop trip, raining",
            "Oxfam for £10",
        ),
        (
            ("I run a Massey Ferguson 135 on the farm", "My wife's called Bríd"),
            "sold the last of the bullocks Tuesday, poor trade",
            "Massey Ferguson 135",
        ),
    ],
)
def test_what_only_sounds_like_an_end_is_doubted_at_most(
    tmp_path: Path, facts: tuple[str, str], said: str, kept: str
) -> None:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        for fact in (*facts, said):
            memory.add(fact, user_id="ann")
        after = [one["memory"] for one in memory.get_all(user_id="ann")["results"]]
    assert any(kept in present(text) and not is_past(text) for text in after)


@pytest.mark.parametrize(("close_above", "doubted"), [(0.6, False), (0.999, True)])
def test_what_is_not_sure_enough_is_doubted_and_not_closed(
    tmp_path: Path, close_above: float, doubted: bool
) -> None:
    model = load_relation_model()
    thresholds = replace(model.about.thresholds, few_close_above=close_above)
    manager = RelationManager(model, thresholds=thresholds)
    with Memory.open(tmp_path, reader="trained", manager=manager, env_file=None) as memory:
        for text in ("I drive a Honda.", "I work at Tesco.", "sold the Honda"):
            memory.add(text, user_id="ann")
        [honda] = [
            one["memory"]
            for one in memory.get_all(user_id="ann")["results"]
            if "drives a Honda" in one["memory"]
        ]
    assert is_doubted(honda) is doubted and is_past(honda) is not doubted
