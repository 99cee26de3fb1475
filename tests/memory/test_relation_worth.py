"""The worth of a user's sentences, corrected by what was learnt from chat."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.memory.test_relation_gate import gate_of
from tests.memory.test_relation_model import BEFORE, MESSAGE, small_weights

from memograd import Memory
from memograd.errors import BadInput
from memograd.memory.relations import RelationModel
from memograd.memory.relations.gate import WORTH_SEEN, Linear, read_gate, write_gate
from memograd.memory.relations.weights import WORTHS, Weights
from memograd.tasks.relations.gate import Worths, fitted_worth, judged_worth, told_worths
from memograd.tasks.relations.rows import read_dialogues

SENTENCES = ["guess who's a Montrealer now!", "周六搬的家。"]
FACT, NOTHING, WISH = (WORTHS.index(name) for name in ("fact", "nothing", "forget"))


@pytest.fixture(scope="module")
def weights() -> Weights:
    return small_weights()


def correcting(weights: Weights, bias: float) -> RelationModel:
    """A model whose function is by chance, but for the bias."""
    drawn = np.random.default_rng(3).normal(size=2 * weights.hidden + WORTH_SEEN) / 50
    gate = gate_of(weights, 0.0)
    worth = Linear(drawn.astype(np.float32), bias, 0.0)
    return RelationModel(weights, replace(gate, worth=worth))


def test_fact_and_nothing_share_anew_what_is_no_wish(weights: Weights) -> None:
    plain = RelationModel(weights).worth(MESSAGE, BEFORE, SENTENCES)
    model = correcting(weights, 0.7)
    found = model.worth(MESSAGE, BEFORE, SENTENCES)
    assert np.allclose(found.sum(1), 1.0, atol=1e-6)
    assert np.array_equal(found[:, WISH], plain[:, WISH])
    order, seen = model.worth_seen(MESSAGE, BEFORE, SENTENCES)
    assert order == [0, 1]
    odds = seen @ model._gate.worth.weight + 0.7  # type: ignore[union-attr]
    assert np.allclose(np.log(found[:, FACT] / found[:, NOTHING]), odds, atol=1e-3)
    assert not np.allclose(found[:, FACT], plain[:, FACT], atol=1e-3)


def test_what_an_assistant_says_is_not_corrected(weights: Weights) -> None:
    plain = RelationModel(weights).worth(MESSAGE, BEFORE, SENTENCES, role="assistant")
    found = correcting(weights, 0.7).worth(MESSAGE, BEFORE, SENTENCES, role="assistant")
    assert np.array_equal(found, plain)


def test_lengths_and_a_question_before_are_seen(weights: Weights) -> None:
    model = RelationModel(weights)
    _, seen = model.worth_seen("no way. two cats, Pip and Dot", (), ["no way.", "two cats"])
    _, asked = model.worth_seen("two cats", [("assistant", "Any pets?")], ["two cats"])
    _, told = model.worth_seen("two cats", [("assistant", "I see.")], ["two cats"])
    part, whole, answers = (-WORTH_SEEN + place for place in (1, 2, 7))
    assert (seen[:, part] <= seen[:, whole]).all() and (seen[0, whole] > told[0, whole]).all()
    assert (asked[0, answers], told[0, answers], seen[0, answers]) == (1, 0, 0)


def chat(*turns: tuple[str, bool]) -> str:
    said = [["u", text, [["f1", text, f"User: {text}"]] if fact else []] for text, fact in turns]
    return json.dumps({"k": "chat", "t": said, "q": []})


def test_it_is_learnt_of_what_the_writer_marks(weights: Weights, tmp_path: Path) -> None:
    places = ["attic", "shed", "barn", "porch", "cellar", "garage", "loft", "yard"]
    lines = [
        chat((f"my {place} is damp", True), (f"play the {place} song", False)) for place in places
    ]
    file = tmp_path / "en-v.jsonl"
    file.write_text("\n".join(lines[:5]))
    (tmp_path / "en-w.jsonl").write_text("\n".join(lines[5:]))
    model = RelationModel(weights)
    learnt, other = (
        told_worths(model, read_dialogues(tmp_path / f"en-{author}.jsonl")) for author in "vw"
    )
    assert learnt.fact.sum() == 5 and learnt.chat.all() and len(learnt.fact) == 10
    assert learnt.seen.shape == (10, 2 * weights.hidden + WORTH_SEEN)
    gate = gate_of(weights, 0.0)
    write_gate(replace(gate, worth=fitted_worth(learnt)), tmp_path / "x.gate.npz")
    found = read_gate(tmp_path / "x.gate.npz", weights)
    assert found is not None and found.worth is not None
    some = Worths(learnt.seen, np.zeros(10, bool), learnt.chat)
    with pytest.raises(BadInput, match="facts only, or none"):
        fitted_worth(some)
    sure = Linear(np.zeros(learnt.seen.shape[1], np.float32), 9.0, 0.0)
    judged = judged_worth(sure, other, 0.36)
    assert (judged.sentences, judged.facts) == (6, 3)
    assert (judged.kept_facts, judged.kept_others) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("idle", "fact"),
    [
        ("turn the fan on", "no fan in my flat"),
        ("no way", "no dairy for me"),
        ("next song", "night shifts till March"),
        ("wifi's being slow today", "wife's name is Orla"),
        ("空调调低两度", "我家没装空调"),
        ("再来一首", "二胎,都是闺女"),
        ("等一下啊", "不吃香菜"),
    ],
)
def test_short_chat_is_told_from_short_facts(tmp_path: Path, idle: str, fact: str) -> None:
    with Memory.open(tmp_path) as memory:
        memory.add(idle, user_id="u")
        assert memory.get_all(user_id="u")["results"] == []
        memory.add(fact, user_id="u")
        assert len(memory.get_all(user_id="u")["results"]) == 1
