"""Training the second reading: what it learns from, and that what is trained is what is served."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memograd.errors import BadInput
from memograd.memory.relations.model import SHIPPED, RelationModel
from memograd.memory.relations.rows import RowBuilder
from memograd.memory.relations.second import second_of
from memograd.memory.relations.weights import Weights, read_weights
from memograd.tasks.relations.rows import Examples, WrittenTurn, read_dialogues
from memograd.tasks.relations.second import train_second, turns_to_learn
from memograd.tasks.relations.settings import RelationsConfig


def life(*told: str, last: str, closes: str | None = None) -> dict[str, Any]:
    facts = [["u", text, [[f"f{n}", text, text]]] for n, text in enumerate(told)]
    return {"k": "life", "t": [*facts, ["u", last, [], [[closes, "end"]] if closes else []]]}


def written(folder: Path, rows: list[dict[str, Any]]) -> list[WrittenTurn]:
    file = folder / "en-x.jsonl"
    file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    return read_dialogues(file)


TWINS = [
    life("I drive a Honda", "I play the bass", last="sold the Honda to a lad in Hull", closes="f0"),
    life("I drive a Honda", "I play the bass", last="sold my old amp to a lad in Hull"),
    life("我养了一只猫", "我吃素", last="猫送给表妹了", closes="f0"),
    life("我养了一只猫", "我吃素", last="猫粮送给表妹了"),
]


def test_of_a_twin_mostly_its_last_message_is_read(tmp_path: Path) -> None:
    long = life(*(f"I have {n} cats" for n in range(19)), last="gave them all away")
    turns = written(tmp_path, [*TWINS * 30, long])
    kept = turns_to_learn(turns, 0)
    last = [said for said in kept if said.text.startswith(("sold", "猫送", "猫粮"))]
    assert len(last) == 120
    earlier = len(kept) - len(last)
    assert 0 < earlier < 240 * 0.4
    assert 4 < sum(said.dialogue == "en-x:121" for said in kept) < 16
    assert turns_to_learn(turns, 0) == kept != turns_to_learn(turns, 1)


@pytest.fixture(scope="module")
def weights() -> Weights:
    return read_weights(SHIPPED)


def test_what_is_trained_is_served_and_learns_what_a_message_speaks_of(
    weights: Weights, tmp_path: Path
) -> None:
    turns = turns_to_learn(written(tmp_path, TWINS), 0)
    config = RelationsConfig(steps=8, batch=8, learning_rate=3e-4, dropout=0.0, warmup=0.0)
    steps: list[tuple[int, float]] = []

    def rows(builder: RowBuilder) -> Examples:
        return Examples(turns, builder, config)

    second = train_second(weights, rows, config, lambda *step: steps.append(step))
    numbers, losses = zip(*steps, strict=True)
    assert numbers == tuple(range(1, 9))
    assert np.mean(losses[-3:]) < np.mean(losses[:3]) / 2

    def odds(model: RelationModel, said: str) -> float:
        facts = ["User drives a Honda.", "User plays the bass."]
        return float(model.closes(said, (), facts)[0])

    before = RelationModel(weights, None, None, second_of(weights))
    after = RelationModel(weights, None, None, second)
    sold, amp = "sold the Honda to a lad in Hull", "sold my old amp to a lad in Hull"
    assert odds(after, sold) - odds(after, amp) > odds(before, sold) - odds(before, amp) + 1
    again = train_second(weights, rows, config)
    assert all(np.array_equal(v, again.vectors[n]) for n, v in second.vectors.items())
    assert set(second.matrices) == set(second_of(weights).matrices)


def test_messages_that_meet_nothing_teach_nothing(weights: Weights, tmp_path: Path) -> None:
    told = {"k": "chat", "t": [["u", "I drive a Honda", [["f0", "I drive a Honda", "A Honda."]]]]}
    turns = written(tmp_path, [told])
    config = RelationsConfig(steps=2, batch=8, talk_share=0.0)
    with pytest.raises(BadInput, match="meets a fact"):
        train_second(weights, lambda builder: Examples(turns, builder, config), config)


def test_weights_without_layers_to_repeat_are_refused(weights: Weights, tmp_path: Path) -> None:
    turns = written(tmp_path, TWINS)
    config = RelationsConfig(steps=2)
    shallow = replace(weights, about=replace(weights.about, layers=8))
    with pytest.raises(BadInput, match="begins behind layer 8, and these weights have 8 layers"):
        train_second(shallow, lambda builder: Examples(turns, builder, config), config)
