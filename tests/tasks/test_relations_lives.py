"""Written lives: what stands beside each message, and what a memory makes of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memograd.errors import BadInput
from memograd.memory.embedders.e5_weights import read_e5
from memograd.memory.manager.crowded import EVIDENCE, LEAST, MOST, stand_out
from memograd.memory.relations import RELATIONS, load_relation_model
from memograd.memory.relations.gate import Linear, gate_file, read_gate, write_gate
from memograd.memory.relations.model import SHIPPED
from memograd.memory.relations.rows import ITEMS_A_ROW, RowBuilder
from memograd.memory.relations.weights import CLOSING, read_weights
from memograd.tasks.relations.lives import fitted_crowded, judged_lives, met_in_lives, told_lives
from memograd.tasks.relations.met import read_met
from memograd.tasks.relations.recipe import make_job
from memograd.tasks.relations.rows import STAYS, Examples, read_dialogues
from memograd.tasks.relations.settings import RelationsConfig

TOLD = [
    "I work nights at the biscuit factory in Carlisle.",
    "My sister Moira keeps bees in Hexham.",
    "I'm on metformin, 500 twice a day.",
    "We have a greyhound called Fig.",
    "I play darts at the Crown on Thursdays.",
    "My car is a red Fiesta.",
    "My daughter Isla is doing her GCSEs.",
    "I'm allergic to penicillin.",
]


def life() -> dict[str, Any]:
    """Eight facts of one person; the last turn replaces one of them."""
    turns: list[list[Any]] = [
        ["u", text, [[f"f{n}", text.rstrip("."), text]], [], f"2025-03-{n + 1:02}T09:00:00+00:00"]
        for n, text in enumerate(TOLD)
    ]
    new = "They've taken me off metformin, it's glipizide now."
    turns.append(
        [
            "u",
            new,
            [["g", "it's glipizide now", "User takes glipizide."]],
            [["f2", "replace"]],
            "2025-03-20T09:00:00+00:00",
        ]
    )
    return {"k": "life", "t": turns, "q": [["What does the user take?", ["g"], "glipizide"]]}


@pytest.fixture
def lives(tmp_path: Path) -> Path:
    """A file with one life."""
    file = tmp_path / "en-life.jsonl"
    file.write_text(json.dumps(life()) + "\n", encoding="utf-8")
    return file


def test_what_stands_beside_a_message_and_what_it_closes(lives: Path) -> None:
    found = told_lives(load_relation_model(), lives)
    assert [one.text for one in found][-1].startswith("They've taken me off")
    last = found[-1]
    assert last.closing and last.evidence.shape == (len(last.items), len(EVIDENCE))
    closed = [text for text, gone in zip(last.items, last.closed, strict=True) if gone]
    assert len(closed) == 1 and "metformin" in closed[0]
    assert not any(one.closing for one in found[:-1])


def test_a_change_among_many_items_is_made_and_nothing_else(lives: Path) -> None:
    found = judged_lives(lives, load_relation_model())
    assert (found.lives, found.closings, found.made) == (1, 1, 1)
    assert (found.hit, found.lost, found.unasked) == (0, 0, 0)


def test_what_weighs_many_items_is_learnt_and_lies_in_the_gate(tmp_path: Path, lives: Path) -> None:
    linear = fitted_crowded(told_lives(load_relation_model(), lives))
    assert linear.weight.shape == (len(EVIDENCE),) and np.isfinite(linear.weight).all()
    weights = read_weights(SHIPPED)
    gate = read_gate(gate_file(SHIPPED), weights)
    assert gate is not None and gate.crowded is not None
    write_gate(replace(gate, crowded=linear), tmp_path / "relations.gate.npz")
    again = read_gate(tmp_path / "relations.gate.npz", weights)
    assert again is not None and again.crowded is not None
    assert (again.crowded.weight == linear.weight).all()
    assert again.secrets is not None and gate.secrets is not None
    assert (again.secrets.weight == gate.secrets.weight).all()


def test_lives_in_which_nothing_ends_teach_nothing(tmp_path: Path) -> None:
    calm = life()
    calm["t"].pop()
    file = tmp_path / "en-calm.jsonl"
    file.write_text(json.dumps(calm) + "\n", encoding="utf-8")
    with pytest.raises(BadInput, match="No message of these lives closes an item"):
        fitted_crowded(told_lives(load_relation_model(), file))


def test_only_what_stands_out_is_weighed() -> None:
    closing = np.linspace(0.0, 0.9, 12, dtype=np.float32)
    places = stand_out(closing)
    assert places == [11, 10, 9, 8, 7] and len(places) == MOST
    assert stand_out(np.full(4, LEAST / 2, np.float32)) == []


def test_a_gate_of_another_kind_of_evidence_is_refused(tmp_path: Path) -> None:
    from memograd.memory.manager import RelationManager
    from memograd.memory.relations.model import RelationModel

    weights = read_weights(SHIPPED)
    gate = read_gate(gate_file(SHIPPED), weights)
    assert gate is not None
    other = Linear(np.ones(3, np.float32), 0.0, 0.0)
    with pytest.raises(BadInput, match="weighs 3 kinds of evidence"):
        RelationManager(RelationModel(weights, replace(gate, crowded=other)))


def test_a_model_reads_a_message_beside_the_items_that_a_memory_compares_it_with(
    lives: Path,
) -> None:
    met = met_in_lives(lives)
    last = met[-1]
    assert last.text.startswith("They've taken me off") and last.met and len(last.items) > 3
    said = dict(zip([fact.item for fact in last.items], last.relations, strict=True))
    [closed] = [text for text, relation in said.items() if relation != STAYS]
    assert "metformin" in closed and said[closed] == "replace"
    assert all(relation == STAYS for one in met[:-1] for relation in one.relations)


def test_rows_of_lives_hold_what_is_touched_and_say_nothing_of_worth(lives: Path) -> None:
    [turn] = met_in_lives(lives)[-1:]
    own = read_dialogues(lives)
    examples = Examples([*own, turn], RowBuilder(read_e5()), RelationsConfig())
    rows = [examples.of_pass(number)[-1] for number in range(40)]
    counts = {len(row.relations) for row in rows}
    assert 1 in counts and max(counts) == min(len(turn.items), ITEMS_A_ROW) > 3
    for row in rows:
        assert row.worths == []
        certain = [right for right, _ in row.relations if len(right) == 1]
        assert certain == [(RELATIONS.index("replace"),)]
        assert len(row.relations) == len(row.row.items)


def test_a_message_that_ends_something_is_also_read_beside_what_it_leaves_alone(
    lives: Path,
) -> None:
    """A model that never sees that closes whatever lies near "sold my old amp"."""
    [turn] = met_in_lives(lives)[-1:]
    own = read_dialogues(lives)
    for said in (turn, own[-1]):
        config = RelationsConfig(absent=1.0)
        examples = Examples([*own[:-1], said], RowBuilder(read_e5()), config)
        for number in range(10):
            row = examples.of_pass(number)[-1]
            closing = {RELATIONS.index(name) for name in CLOSING}
            assert row.relations, "nothing beside it teaches nothing"
            assert not any(closing & set(right) for right, _ in row.relations)


def test_files_without_a_life_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "en-none.jsonl"
    file.write_text(json.dumps(life() | {"k": "change"}) + "\n", encoding="utf-8")
    with pytest.raises(BadInput, match="has a message that meets an earlier fact"):
        met_in_lives(file)


def test_lives_are_trained_on_or_measured_on_and_never_dropped_in_silence(lives: Path) -> None:
    other = lives.with_name("en-other.jsonl")
    other.write_text(lives.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(BadInput, match="named by data, lives or met, and by eval_data"):
        make_job(RelationsConfig(data=[other], lives=[lives], eval_data=[lives]), None)
    with pytest.raises(BadInput, match="lives have none: leave out lives"):
        make_job(RelationsConfig(algorithm="grpo", data=[other], lives=[lives]), None)


def test_a_life_that_is_told_twice_meets_the_same_items(lives: Path) -> None:
    assert met_in_lives(lives) == met_in_lives(lives)


@pytest.mark.parametrize(
    "turn", [["u"], ["u", "I sold it.", [["f"]]], ["u", "Hi", [], [], "someday"], 7, ["x", "Hi"]]
)
def test_a_broken_life_is_named_by_its_line(tmp_path: Path, turn: Any) -> None:
    file = tmp_path / "en-broken.jsonl"
    broken = life()
    broken["t"].append(turn)
    file.write_text(json.dumps(life()) + "\n" + json.dumps(broken) + "\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"Line 2 of .*en-broken\.jsonl is not a dialogue"):
        met_in_lives(file)


def test_written_messages_beside_items_become_rows(tmp_path: Path) -> None:
    line: dict[str, Any] = {
        "text": "sold it",
        "before": [["user", "I drive a Honda"]],
        "items": ["User drives a Honda.", "User lives in Leeds."],
        "relations": ["end", STAYS],
    }
    file = tmp_path / "met.jsonl"
    file.write_text(json.dumps(line) + "\n", encoding="utf-8")
    [turn] = read_met(file)
    assert turn.met and turn.before == [("user", "I drive a Honda")]
    assert [fact.item for fact in turn.items] == line["items"]
    broken: list[dict[str, Any]]
    broken = [{"relations": ["end"]}, {"relations": ["end", "eats"]}, {"items": []}]
    for wrong in broken:
        file.write_text(json.dumps(line) + "\n" + json.dumps(line | wrong) + "\n", "utf-8")
        with pytest.raises(BadInput, match=r"Line 2 of .*met\.jsonl is no message beside items"):
            read_met(file)
