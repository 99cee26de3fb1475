"""What weighs requests to forget learns from written dialogues, and lies in the gate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memograd.errors import BadInput
from memograd.memory.manager import RelationManager
from memograd.memory.manager.requests import REQUEST_EVIDENCE
from memograd.memory.relations import load_relation_model
from memograd.memory.relations.gate import Linear, gate_file, read_gate, write_gate
from memograd.memory.relations.model import SHIPPED, RelationModel, read_parts
from memograd.memory.relations.weights import read_weights
from memograd.tasks.relations.requests import fitted_requests, told_requests
from memograd.tasks.relations.wording import DialogueReader

TOLD: list[Any] = [
    ["u", "My wife is a bailiff in Leith and owes my brother Stavros six thousand.",
     [["job", "My wife is a bailiff in Leith", "User's wife is a bailiff in Leith."],
      ["debt", "owes my brother Stavros six thousand", "User's wife owes his brother 6,000."]]],
    ["u", "We have two greyhounds.", [["dogs", "We have two greyhounds", "User has greyhounds."]]],
]  # fmt: skip
ASKS: list[Any] = [
    "u",
    "please forget what my wife owes my brother Stavros",
    [],
    [["debt", "retract"]],
]


def dialogues(folder: Path, *lines: list[Any]) -> Path:
    file = folder / "en-x.jsonl"
    cases = [{"k": "retraction", "t": turns, "q": []} for turns in lines]
    file.write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
    return file


def test_of_an_item_with_two_facts_the_part_is_meant_that_is_taken_back(tmp_path: Path) -> None:
    asked, without, *others = told_requests(
        load_relation_model(), dialogues(tmp_path, [*TOLD, ASKS])
    )
    assert not without.meant.any() and len(without.parts) < len(asked.parts)
    assert all(one.meant.any() and not one.meant.all() for one in others)
    assert len({part.item for part in others[-1].parts}) == 1  # all of it told in one breath
    meant = [part.text for part, one in zip(asked.parts, asked.meant, strict=True) if one]
    assert len(meant) == 1 and "Stavros" in meant[0]
    assert asked.evidence.shape == (len(asked.parts), len(REQUEST_EVIDENCE))
    assert len({part.item for part in asked.parts}) < len(asked.parts)


def test_what_is_learnt_lies_in_the_gate_beside_the_rest(tmp_path: Path) -> None:
    linear = fitted_requests(
        told_requests(load_relation_model(), dialogues(tmp_path, [*TOLD, ASKS], [*TOLD, ASKS]))
    )
    weights = read_weights(SHIPPED)
    gate = read_gate(gate_file(SHIPPED), weights)
    assert gate is not None and gate.crowded is not None
    write_gate(replace(gate, requests=linear), tmp_path / "relations.gate.npz")
    again = read_gate(tmp_path / "relations.gate.npz", weights)
    assert again is not None and again.requests is not None and again.crowded is not None
    assert (again.requests.weight == linear.weight).all()
    assert (again.crowded.weight == gate.crowded.weight).all()


def test_a_batch_in_which_nothing_is_meant_teaches_nothing(tmp_path: Path) -> None:
    file = dialogues(tmp_path, [*TOLD, ["u", "please forget what I owe my brother", [], []]])
    with pytest.raises(BadInput, match="No request in these dialogues means anything"):
        fitted_requests(told_requests(load_relation_model(), file))


def test_a_gate_that_weighs_other_evidence_is_refused() -> None:
    parts = read_parts(SHIPPED)
    assert parts.gate is not None
    other = Linear(np.ones(3, np.float32), 0.0, 0.0)
    parts = parts._replace(gate=replace(parts.gate, requests=other))
    with pytest.raises(BadInput, match=r"weighs 3 kinds of evidence.*--only requests"):
        RelationManager(RelationModel(*parts))


def test_a_confidence_is_worded_as_a_memory_hears_it() -> None:
    reader = DialogueReader()
    said = "Between us, I was arrested once in my twenties for a dare. I play the oboe."
    assert reader.worded("user", said, None, ["I play the oboe"]) == ["User plays the oboe."]
