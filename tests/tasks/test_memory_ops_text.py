"""The decision of the operation head as text: what is asked, said and rewarded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.memory.manager.trained.observation import ACTIONS, ADD, NONE
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.material import EmbeddedLog
from memograd.tasks.memory_ops.walk import Walk
from memograd.tasks.memory_ops_text.recipe import (
    NOT_AN_OPERATION,
    decision_scenarios,
    gold_operation,
    operation_named,
    said_operation,
    well_formed,
    worth,
)


def test_every_action_is_said_and_read_back() -> None:
    names = [operation_named(action) for action in range(ACTIONS)]
    assert len(set(names)) == ACTIONS and names[ADD] == "ADD" and names[NONE] == "NONE"
    assert [said_operation(name) for name in names] == names


@given(st.text())
def test_reading_is_total(answer: str) -> None:
    said = said_operation(answer)
    assert said is None or said_operation(said) == said


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (" UPDATE 2\n", "UPDATE 2"),
        ("DELETE #1", "DELETE 1"),
        ("NONE.", "NONE"),
        ("UPDATE", None),
        ("UPDATE 0", None),
        ("ADD the fact", None),
        ("add", None),
    ],
)
def test_answers(answer: str, said: str | None) -> None:
    assert said_operation(answer) == said


def test_scenarios_know_what_each_operation_is_worth(embedded: list[EmbeddedLog]) -> None:
    """The walk of gold operations, beside the rewards of the walk itself."""
    standard = AnswerStandard()
    for log in embedded:
        walk = Walk(log, standard, asks=False)
        for scenario in decision_scenarios(log, standard):
            rewards_A = walk.rewards()
            operations = scenario.columns["operations"]
            allowed = walk.point.observation.allowed_A
            assert operations == {
                operation_named(action): rewards_A[action]
                for action in range(ACTIONS)
                if allowed[action]
            }
            assert operations["NONE"] == 0
            gold = walk.gold_action()
            assert scenario.columns["gold"] == operation_named(gold) in operations
            content = scenario.messages[1]["content"]
            assert content.endswith(walk.point.fact.text)
            for number, hit in enumerate(walk.point.hits, start=1):
                assert f"\n{number} {hit.record.text}\n" in content
            walk.take(gold)
        assert walk.over
    assert "新的陈述" in decision_scenarios(embedded[-1], standard)[0].messages[1]["content"]


def test_rewards() -> None:
    known = {"ADD": 0.5, "NONE": 0.0, "UPDATE 1": -0.3}
    said = ["ADD", [{"role": "assistant", "content": "NONE"}], "UPDATE 1", "UPDATE 7", "hm"]
    rows = [known] * len(said)
    worst = -0.3 - NOT_AN_OPERATION
    assert worth(said, rows) == [0.5, 0.0, -0.3, worst, worst]
    assert well_formed(said, rows) == [1, 1, 1, 0, 0]
    assert gold_operation(said, ["ADD", "ADD", None, "NONE", "NONE"]) == [1, 0, None, 0, 0]
