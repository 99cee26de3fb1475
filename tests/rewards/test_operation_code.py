"""The user's calculate_reward: loaded by file, name or module, or refused in one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memograd.errors import BadInput
from memograd.memory.records.operations import OpKind
from memograd.tasks.memory_ops.rewards import (
    ChosenOperation,
    RetrievedFact,
    compute_operation_rewards,
    operation_reward,
    opportunity_cost,
)

GUIDE = """
def calculate_reward(action, new_fact, retrieved_facts):
    if action == "UPDATE":
        [target] = [fact for fact in retrieved_facts if fact.is_target]
        return target.similarity
    return {"ADD": 1, "DELETE": 0.5, "NONE": 0.1}[action]

def gentle(action, new_fact, retrieved_facts, strength=2): return strength
async def later(action, new_fact, retrieved_facts): return 1
def two(action, new_fact): return 1
def four(action, new_fact, retrieved_facts, more): return 1
def named(*, action, new_fact, retrieved_facts): return 1
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "我的 rewards.py"
    path.write_text(GUIDE, encoding="utf-8")
    return path


def test_the_guides_function_sees_action_and_target(file: Path) -> None:
    reward = operation_reward(str(file))
    found = (RetrievedFact("i", "小明住在上海", 0.75, is_target=True),)
    chosen = [
        ChosenOperation(OpKind.UPDATE, "小明住在北京", found),
        ChosenOperation(OpKind.ADD, "小明住在北京", ()),
    ]
    assert compute_operation_rewards(reward, chosen, rollout_ids=["a", "b"]) == [0.75, 1.0]


def test_other_names_modules_and_the_built_in(file: Path) -> None:
    assert operation_reward(f"{file}:gentle")(OpKind.ADD, "x", []) == 2
    assert (
        operation_reward("memograd.tasks.memory_ops.rewards:opportunity_cost") is opportunity_cost
    )
    assert operation_reward("opportunity_cost") is opportunity_cost


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("two", r"takes \(action, new_fact\), which does not fit"),
        ("four", "missing a required argument: 'more'"),
        ("named", "too many positional arguments"),
        ("later", "is an async function"),
        ("gentel", 'has no reward function "gentel"; it has gentle'),
    ],
)
def test_what_does_not_fit_is_refused_when_loaded(file: Path, name: str, said: str) -> None:
    with pytest.raises(BadInput, match=said) as refused:
        operation_reward(f"{file}:{name}")
    assert "\n" not in str(refused.value)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no reward file"):
        operation_reward(str(tmp_path / "none.py"))
    with pytest.raises(BadInput, match='no operation reward "cost"; use opportunity_cost'):
        operation_reward("cost")
