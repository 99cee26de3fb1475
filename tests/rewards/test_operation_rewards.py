"""The guide's reward by hand, its bounds, and what it must never pay for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.memory.records.operations import OpKind
from memograd.rewards.compose import RewardError
from memograd.tasks.memory_ops.rewards import (
    GUIDE_WEIGHTS,
    NEUTRAL_WEIGHTS,
    ChosenOperation,
    OperationTerms,
    OperationWeights,
    RetrievedFact,
    compute_operation_rewards,
    information_gain,
    operation_terms,
    opportunity_cost,
)

ADD, UPDATE, DELETE, NONE = OpKind.ADD, OpKind.UPDATE, OpKind.DELETE, OpKind.NONE
OSLO, ROME = "Ann lives in Oslo", "Ann lives in Rome"


def facts(*found: tuple[str, float], target: int | None = None) -> list[RetrievedFact]:
    return [
        RetrievedFact(f"i{number}", text, similarity, number == target)
        for number, (text, similarity) in enumerate(found)
    ]


@pytest.mark.parametrize(
    ("action", "new_fact", "found", "target", "reward"),
    [
        (ADD, OSLO, [], None, 2.0),  # 1 + gain 1
        (ADD, OSLO, [("Ann has a cat", 0.25)], None, 1.75),
        (ADD, OSLO, [(OSLO, 1.0)], None, 0.0),  # 1 + gain 0 - redundancy 1
        (ADD, OSLO, [(ROME, 0.75)], None, 0.25),  # 1 + gain 0.25 - contradiction 1
        (UPDATE, OSLO, [(ROME, 0.75)], 0, 0.8),  # 0.8 + gain 0.25 - loss 0.25
        (UPDATE, OSLO, [(ROME, 0.75), ("Ann has a cat", 0.25)], 1, -0.7),  # Rome stays, cat goes
        (UPDATE, OSLO, [(OSLO, 1.0)], 0, -0.2),  # nothing changes: redundancy 1
        (DELETE, OSLO, [(ROME, 0.75)], 0, 0.25),  # 0.5 - loss 0.25
        (DELETE, OSLO, [("Ann has a cat", 0.25)], 0, -0.25),
        (NONE, OSLO, [(OSLO, 1.0)], None, 0.1),
        (NONE, OSLO, [(ROME, 0.75)], 0, 0.1),
        (ADD, "小明住在北京", [("小明住在上海", 0.75)], None, 0.25),
        (UPDATE, "小明住在北京", [("小明住在上海", 0.75)], 0, 0.8),
    ],
)
def test_the_guides_reward_by_hand(
    action: OpKind, new_fact: str, found: Any, target: int | None, reward: float
) -> None:
    assert opportunity_cost(action, new_fact, facts(*found, target=target)) == pytest.approx(reward)


def test_weights_are_the_whole_formula() -> None:
    found = facts((ROME, 0.75), ("Ann has a cat", 0.25), target=1)
    assert operation_terms(UPDATE, OSLO, found) == OperationTerms(0.25, 0.75, 1.0, 0.0)
    weights = OperationWeights(1, 2, 3, 4, 10.0, 100.0, 1000.0, 10000.0)
    assert opportunity_cost(UPDATE, OSLO, found, weights=weights) == 2 + 2.5 - 75 - 1000
    for kind, value in ((ADD, 1.0), (UPDATE, 0.8), (DELETE, 0.5), (NONE, 0.1)):
        assert GUIDE_WEIGHTS.of_kind(kind) == value
        assert NEUTRAL_WEIGHTS.of_kind(kind) == 0


TEXTS = st.sampled_from([OSLO, ROME, "Ann likes tea", "Ann does not like tea", "小明住在北京"])
SIMILARITIES = st.floats(-1.0, 1.0001)


@st.composite
def operations(draw: st.DrawFn) -> tuple[OpKind, str, list[RetrievedFact]]:
    found = draw(st.lists(st.tuples(TEXTS, SIMILARITIES), max_size=4))
    kinds = [ADD, NONE, *([UPDATE, DELETE] if found else [])]
    kind = draw(st.sampled_from(kinds))
    target = draw(st.integers(0, len(found) - 1)) if kind in (UPDATE, DELETE) else None
    return kind, draw(TEXTS), facts(*found, target=target)


@given(operations())
def test_terms_are_shares(operation: tuple[OpKind, str, list[RetrievedFact]]) -> None:
    terms = operation_terms(*operation)
    for value in (terms.information_gain, terms.information_loss):
        assert 0 <= value <= 1
    assert {terms.contradiction, terms.redundancy} <= {0.0, 1.0}
    if operation[0] in (DELETE, NONE):
        assert terms.information_gain == terms.contradiction == terms.redundancy == 0


@given(operations())
def test_neutral_weights_pay_for_no_kind(operation: Any) -> None:
    terms = operation_terms(*operation)
    expected = terms.information_gain - terms.information_loss
    expected -= terms.contradiction + terms.redundancy
    assert opportunity_cost(*operation, weights=NEUTRAL_WEIGHTS) == pytest.approx(expected)


@given(st.lists(st.tuples(TEXTS, SIMILARITIES), max_size=3), TEXTS, SIMILARITIES)
def test_writing_what_is_known_pays_less_than_none(
    others: list[tuple[str, float]], text: str, similarity: float
) -> None:
    found = [*others, (text, similarity)]
    for weights in (GUIDE_WEIGHTS, NEUTRAL_WEIGHTS):
        none = opportunity_cost(NONE, text, facts(*found), weights=weights)
        assert opportunity_cost(ADD, text, facts(*found), weights=weights) < none
        for target in range(len(found)):
            chosen = facts(*found, target=target)
            assert opportunity_cost(UPDATE, text, chosen, weights=weights) < none


@given(st.lists(SIMILARITIES, max_size=4), SIMILARITIES)
def test_gain_falls_with_every_further_fact(similarities: list[float], more: float) -> None:
    before = information_gain(facts(*((ROME, s) for s in similarities)))
    after = information_gain(facts(*((ROME, s) for s in [*similarities, more])))
    assert 0 <= after <= before <= 1


@pytest.mark.parametrize(
    ("action", "targets"),
    [(ADD, [0]), (UPDATE, []), (DELETE, []), (UPDATE, [0, 1]), (NONE, [0, 1])],
)
def test_a_target_that_does_not_fit_is_refused(action: OpKind, targets: list[int]) -> None:
    found = [RetrievedFact(f"i{n}", ROME, 0.5, n in targets) for n in range(2)]
    with pytest.raises(BadInput, match=f"{action} takes"):
        opportunity_cost(action, OSLO, found)
    with pytest.raises(BadInput, match=f"{action} takes"):
        ChosenOperation(action, OSLO, tuple(found))


def test_a_similarity_that_is_no_number_is_refused() -> None:
    with pytest.raises(BadInput, match="similarity of the item 'i0' is nan"):
        facts((ROME, math.nan))


# The checked call


CHOSEN = [
    ChosenOperation(ADD, OSLO, ()),
    ChosenOperation(DELETE, OSLO, tuple(facts((ROME, 0.5), target=0))),
]


def test_rewards_in_the_order_of_the_operations() -> None:
    assert compute_operation_rewards(opportunity_cost, CHOSEN, rollout_ids=["a", "b"]) == [2.0, 0.0]


def test_a_function_cannot_change_what_the_next_call_sees() -> None:
    def greedy(action: OpKind, new_fact: str, found: Sequence[RetrievedFact]) -> float:
        count = len(found)
        assert isinstance(found, list)
        found.clear()
        return count

    twice = [CHOSEN[1], CHOSEN[1]]
    assert compute_operation_rewards(greedy, twice, rollout_ids=["a", "b"]) == [1.0, 1.0]


@pytest.mark.parametrize("value", [None, math.nan, math.inf, "1", [1.0]])
def test_what_is_no_finite_number_names_the_rollout(value: Any) -> None:
    with pytest.raises(RewardError, match=r"returned .* for ADD in rollout r7, not a finite") as e:
        compute_operation_rewards(lambda *_: value, CHOSEN[:1], rollout_ids=["r7"])
    assert e.value.rollout_id == "r7"


def test_an_exception_names_function_line_and_rollout() -> None:
    def broken(action: OpKind, new_fact: str, found: Sequence[RetrievedFact]) -> float:
        return 1 / len(found)

    with pytest.raises(RewardError, match=r"broken raised ZeroDivisionError.* line \d+ \(ADD in r"):
        compute_operation_rewards(broken, CHOSEN[:1], rollout_ids=["r7"])


def test_ids_and_operations_go_together() -> None:
    with pytest.raises(BadInput, match="1 rollout ids for 2 operations"):
        compute_operation_rewards(opportunity_cost, CHOSEN, rollout_ids=["a"])
