"""The second reading of what looks closed: as it is served, and its file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memograd.errors import BadInput
from memograd.memory.manager import RelationManager
from memograd.memory.manager.crowded import EVIDENCE, SECOND, few_evidence
from memograd.memory.records.archives import read_arrays, write_arrays
from memograd.memory.relations import CLOSING, RELATIONS, RelationModel
from memograd.memory.relations.gate import gate_file, read_gate
from memograd.memory.relations.model import SHIPPED
from memograd.memory.relations.second import (
    MOST,
    odds_of,
    read_second,
    second_file,
    second_of,
    write_second,
)
from memograd.memory.relations.weights import Weights, read_weights

ITEMS = ["User lives in Ottawa.", "User has a cat.", "用户的车是本田。"]
BEFORE = [("assistant", "How was the move?")]
CLOSES = [RELATIONS.index(name) for name in CLOSING]


@pytest.fixture(scope="module")
def weights() -> Weights:
    return read_weights(SHIPPED)


@pytest.fixture(scope="module")
def same(weights: Weights) -> RelationModel:
    """A model whose second reading has learnt nothing more."""
    return RelationModel(weights, None, None, second_of(weights))


@pytest.mark.parametrize("said", ["haha, I moved to Montreal", "本田卖了", "long " * 200 + "moved"])
def test_a_second_reading_that_learnt_nothing_says_what_the_first_says(
    same: RelationModel, said: str
) -> None:
    cool = replace(same.about, relation_temperature=1.0)
    first = RelationModel(replace(read_weights(SHIPPED), about=cool))
    for items in (ITEMS, ITEMS[:1], ITEMS * 4):
        sure = np.stack([first.relate(said, BEFORE, items)])[0][:, CLOSES].sum(1)
        odds = np.clip(np.log(sure / (1 - sure)), -MOST, MOST)
        found = same.closes(said, BEFORE, items)
        if len(said) < 100:  # of a long one the first takes the part that speaks of it most
            np.testing.assert_allclose(found, odds, atol=2e-3)
        assert found.shape == odds.shape and (found >= odds - 2e-3).all()


def test_one_way_of_closing_is_asked_for_by_name(same: RelationModel) -> None:
    said = "forget where I live, please"
    odds = {names: same.closes(said, BEFORE, ITEMS, names) for names in (CLOSING, ("retract",))}
    assert (odds[("retract",)] <= odds[CLOSING]).all()
    row = np.zeros((1, len(RELATIONS)))
    row[0, RELATIONS.index("retract")] = 3.0
    assert odds_of(row, ("retract",))[0] == pytest.approx(3.0 - np.log(len(RELATIONS) - 1))


def test_it_is_computed_behind_the_layers_that_the_first_went_through(
    same: RelationModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []
    encoder = same._encoder
    for number, session in enumerate(encoder._sessions):
        run = session.run

        def counted(
            *given: object, number: int = number, run: Callable[..., object] = run
        ) -> object:
            ran.append(number)
            return run(*given)

        monkeypatch.setattr(session, "run", counted)
    same.relate("we moved house in May", BEFORE, ITEMS)
    first, last = len(encoder._sessions) - 1, len(encoder._sessions)
    assert ran == list(range(first))
    same.closes("we moved house in May", BEFORE, ITEMS)
    assert ran[first:] == [last - 1]


def test_its_file_is_read_as_it_was_written(weights: Weights, tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    second = second_of(weights)
    vectors = {n: chance.normal(size=v.shape).astype("f4") for n, v in second.vectors.items()}
    second = replace(second, vectors=vectors, about=replace(second.about, origin={"steps": 3}))
    file = second_file(tmp_path / "relations.npz")
    assert read_second(file, weights) is None
    write_second(second, weights, file)
    again = read_second(file, weights)
    assert again is not None and again.about == second.about
    assert all(np.array_equal(again.vectors[n], v) for n, v in vectors.items())
    assert all(
        np.array_equal(again.matrices[n][0], whole) for n, (whole, _) in second.matrices.items()
    )
    assert not any(name.startswith(("layers.7.", "worths.", "embed")) for name in again.vectors)


@pytest.mark.parametrize(
    ("name", "instead", "wrong"),
    [
        ("of", np.array("0123"), "goes on from other weights"),
        ("origin", None, "origin"),
        ("origin", np.array("no JSON"), "Expecting value"),
        ("layers.9.query.int8", np.zeros((2, 2), np.int8), "other names or sizes"),
        ("layers.9.query.int8", np.zeros((384, 384), np.float32), "not of 8 bits"),
        ("layers.9.query.scales", np.full(384, np.nan, np.float32), "finite"),
        ("relations.outer.bias", np.zeros(3, np.float32), "other names or sizes"),
        ("more", np.zeros(3, np.float32), "other names or sizes"),
    ],
)
def test_any_other_file_is_refused_in_plain_words(
    weights: Weights, tmp_path: Path, name: str, instead: np.ndarray | None, wrong: str
) -> None:
    file = tmp_path / "relations.second.npz"
    write_second(second_of(weights), weights, file)
    arrays = read_arrays(file) | ({name: instead} if instead is not None else {})
    if instead is None:
        del arrays[name]
    write_arrays(file, arrays)
    with pytest.raises(BadInput, match=f"is not the second reading.*{wrong}"):
        read_second(file, weights)


def test_a_file_of_another_kind_is_refused_too(weights: Weights, tmp_path: Path) -> None:
    file = tmp_path / "relations.second.npz"
    file.write_bytes(b"PK")
    with pytest.raises(BadInput, match="is not the second reading"):
        read_second(file, weights)


def test_a_model_without_one_says_so(weights: Weights) -> None:
    model = RelationModel(weights)
    assert not model.reads_twice and few_evidence(model) == EVIDENCE
    with pytest.raises(BadInput, match="has no second reading"):
        model.closes("sold it", (), ITEMS)


def test_a_gate_that_was_fitted_with_one_is_refused_without(weights: Weights) -> None:
    gate = read_gate(gate_file(SHIPPED), weights)
    with pytest.raises(BadInput, match=f"and this version of memograd knows {len(EVIDENCE)}"):
        RelationManager(RelationModel(weights, gate))


def test_how_sure_it_is_stays_within_its_bounds() -> None:
    logits = np.zeros((3, len(RELATIONS)))
    logits[0, CLOSES] = 40.0
    logits[1, CLOSES] = -40.0
    odds = odds_of(logits)
    assert odds[0] == MOST and odds[1] == -MOST
    leaves = len(RELATIONS) - len(CLOSES)
    assert odds[2] == pytest.approx(np.log(len(CLOSES) / leaves))
    assert SECOND and not set(SECOND) & set(EVIDENCE)
