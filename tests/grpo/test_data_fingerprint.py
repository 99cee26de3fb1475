"""A run goes on with the data it began with, or says which rows differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.grpo.resume import check_data, fingerprint
from memograd.grpo.run_folder import RunFolder
from memograd.grpo.trainer import Stage, Trainer
from memograd.rewards import WeightedReward
from memograd.rollout import Message, Scenario


def rows(count: int) -> list[Scenario]:
    return [
        Scenario(f"q{n}", (Message(role="user", content=f"what is {n}?"),), {"answer": n})
        for n in range(count)
    ]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    made = RunFolder.create(tmp_path / "run", "{}")
    check_data(made, rows(6))
    return made


def test_the_same_data_are_taken_again(run: RunFolder) -> None:
    before = (run.path / "data.json").read_bytes()
    check_data(RunFolder.open(run.path), rows(6))
    assert (run.path / "data.json").read_bytes() == before


def other_message(found: list[Scenario]) -> list[Scenario]:
    found[2] = replace(found[2], messages=(Message(role="user", content="what is 2 ?"),))
    return found


def other_column(found: list[Scenario]) -> list[Scenario]:
    found[2] = replace(found[2], columns={"answer": 3})
    return found


def one_column_more(found: list[Scenario]) -> list[Scenario]:
    found[2] = replace(found[2], columns={"answer": 2, "hint": None})
    return found


def as_text(found: list[Scenario]) -> list[Scenario]:
    found[2] = replace(found[2], messages=(), text="what is 2?")
    return found


@pytest.mark.parametrize("change", [other_message, other_column, one_column_more, as_text])
def test_a_changed_row_is_named(run: RunFolder, change) -> None:
    with pytest.raises(BadInput, match=r"row 3, q2, has another prompt or other columns\).*out="):
        check_data(run, change(rows(6)))


def test_another_order_or_number_of_rows_is_said(run: RunFolder) -> None:
    with pytest.raises(
        BadInput, match=r"row 1 is q5 and was q0; row 2 is q4 and was q1; .*; 3 mor"
    ):
        check_data(run, rows(6)[::-1])
    with pytest.raises(BadInput, match=r"\(4 rows now, 6 then\)"):
        check_data(run, rows(4))
    with pytest.raises(BadInput, match=r"\(7 rows now, 6 then\)"):
        check_data(run, rows(7))


@settings(max_examples=20)
@given(st.permutations(range(6)))
def test_every_other_order_is_refused(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    made = RunFolder.create(tmp_path_factory.mktemp("runs") / "run", "{}")
    check_data(made, rows(6))
    shuffled = [rows(6)[place] for place in order]
    if order == sorted(order):
        check_data(made, shuffled)
    else:
        with pytest.raises(BadInput, match="The data changed"):
            check_data(made, shuffled)


def test_the_order_of_columns_does_not_matter() -> None:
    [row] = rows(1)
    one = replace(row, columns={"a": 1, "b": [1.5, "x"]})
    assert fingerprint(one) == fingerprint(replace(row, columns={"b": [1.5, "x"], "a": 1}))


@pytest.mark.parametrize("written", ['{"sha', "[]", "{}", '{"scenarios": [1]}'])
def test_a_damaged_fingerprint_is_one_sentence(run: RunFolder, written: str) -> None:
    (run.path / "data.json").write_text(written)
    with pytest.raises(BadInput, match=r"data\.json is damaged"):
        check_data(run, rows(6))


def test_a_resumed_trainer_refuses_other_data(tmp_path, tiny_policy, tiny_config) -> None:
    """Before anything of the run is changed."""
    folder = RunFolder.create(tmp_path / "run", tiny_config.model_dump_json())
    reward = [WeightedReward("length", lambda completions: [float(len(c)) for c in completions])]
    one_step = tiny_config.model_copy(update={"steps": 1})
    Trainer(tiny_policy, rows(6), reward, one_step, Stage(folder)).train()
    with pytest.raises(BadInput, match="row 3, q2, has"):
        Trainer(tiny_policy, other_column(rows(6)), reward, tiny_config, Stage(folder))
    assert len(folder.read_metrics()) == 1
