"""Mem-alpha's rewards by hand, what is neutral under our rules, and what is not under theirs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.memory.records.operations import OpKind
from memograd.rewards.mem_alpha import (
    MEM_ALPHA_ORIGINAL,
    OP_NEUTRAL,
    ChunkRules,
    ToolOutcome,
    compression,
    content_validity,
    mem_alpha_reward,
    qa_accuracy,
    tool_success,
)

INSERT = ToolOutcome(OpKind.ADD, ok=True, valid=True)
AGAIN = ToolOutcome(OpKind.ADD, ok=True, duplicate=True, valid=True)
POOR = ToolOutcome(OpKind.UPDATE, ok=True, valid=False)
LOST = ToolOutcome(OpKind.UPDATE, ok=False, valid=True)  # names an item that is not there
DELETE = ToolOutcome(OpKind.DELETE, ok=True)
UNKNOWN = ToolOutcome(None, ok=False)


@pytest.mark.parametrize(
    ("calls", "r2", "r4", "original_r2", "original_r4"),
    [
        ([], 1, 1, 0, 0),
        ([INSERT], 1, 1, 1, 1),
        ([DELETE], 1, 1, 1, 0),
        ([AGAIN], 1, 1, 0, 1),
        ([INSERT, DELETE], 1, 1, 1, 1 / 2),
        ([INSERT, AGAIN, POOR, DELETE], 1, 2 / 3, 3 / 4, 2 / 4),
        ([LOST, INSERT], 1 / 2, 1, 1 / 2, 1),
        ([UNKNOWN], 0, 1, 0, 0),
    ],
)
def test_calls_by_hand(
    calls: list[ToolOutcome], r2: float, r4: float, original_r2: float, original_r4: float
) -> None:
    assert tool_success(calls) == pytest.approx(r2)
    assert content_validity(calls) == pytest.approx(r4)
    assert tool_success(calls, MEM_ALPHA_ORIGINAL) == pytest.approx(original_r2)
    assert content_validity(calls, MEM_ALPHA_ORIGINAL) == pytest.approx(original_r4)


def test_a_total_by_hand() -> None:
    given = {"qa_scores": [1.0, 0.0, 0.5, 0.5], "memory_tokens": 300, "chunk_tokens": 1000}
    ours = mem_alpha_reward([INSERT, POOR, LOST, DELETE], **given)  # type: ignore[arg-type]
    assert (ours.r1, ours.r2, ours.r3) == pytest.approx((0.5, 0.75, 0.7))
    assert ours.total == pytest.approx(0.5 + 0.75 + 0.05 * 0.7 + 0.1 * 2 / 3)
    # What the published rules take from a chunk in which there is nothing to do.
    quiet = mem_alpha_reward([], **given)  # type: ignore[arg-type]
    theirs = mem_alpha_reward([], rules=MEM_ALPHA_ORIGINAL, **given)  # type: ignore[arg-type]
    assert quiet.total - theirs.total == pytest.approx(1.1)


def test_compression() -> None:
    assert compression(0, 10) == 1
    assert compression(10, 10) == 0
    assert compression(30, 10) == -2


CALLS = st.builds(
    lambda kind, ok, duplicate, valid: ToolOutcome(
        kind,
        ok,
        duplicate and kind is OpKind.ADD,
        valid if kind in (OpKind.ADD, OpKind.UPDATE) else None,
    ),
    st.sampled_from([OpKind.ADD, OpKind.UPDATE, OpKind.DELETE, None]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
RULES = st.builds(ChunkRules, st.floats(0, 1), st.booleans(), st.booleans())


@given(st.lists(CALLS, max_size=6), RULES)
def test_bounds(calls: list[ToolOutcome], rules: ChunkRules) -> None:
    assert 0 <= tool_success(calls, rules) <= 1
    assert 0 <= content_validity(calls, rules) <= 1


GOOD = st.lists(st.sampled_from([INSERT, AGAIN, DELETE, replace(POOR, valid=True)]), max_size=6)


@given(GOOD, GOOD)
def test_our_rules_pay_no_kind_of_operation(
    some: list[ToolOutcome], others: list[ToolOutcome]
) -> None:
    numbers = {"qa_scores": [0.25], "memory_tokens": 1, "chunk_tokens": 4}
    one = mem_alpha_reward(some, **numbers)  # type: ignore[arg-type]
    assert one == mem_alpha_reward(others, **numbers)  # type: ignore[arg-type]


@given(st.lists(CALLS, min_size=1, max_size=6), st.data(), RULES)
def test_more_success_and_validity_never_cost(
    calls: list[ToolOutcome], data: st.DataObject, rules: ChunkRules
) -> None:
    at = data.draw(st.integers(0, len(calls) - 1))
    better = replace(calls[at], ok=True, duplicate=False, valid=True if calls[at].writes else None)
    improved = [*calls[:at], better, *calls[at + 1 :]]
    assert tool_success(improved, rules) >= tool_success(calls, rules)
    assert content_validity(improved, rules) >= content_validity(calls, rules)


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(1, 1000))
def test_a_larger_memory_never_compresses_more(one: int, more: int, chunk: int) -> None:
    assert compression(one + more, chunk) <= compression(one, chunk) <= 1


def test_what_cannot_be_is_refused() -> None:
    for scores in ([], [1.5], [float("nan")]):
        with pytest.raises(BadInput, match="r1 needs"):
            qa_accuracy(scores)
    for memory, chunk in ((-1, 5), (1, 0)):
        with pytest.raises(BadInput, match="r3 needs"):
            compression(memory, chunk)
    with pytest.raises(BadInput, match="r4 needs to know"):
        content_validity([ToolOutcome(OpKind.ADD, ok=True)])
    with pytest.raises(BadInput, match="absence of a tool call"):
        ToolOutcome(OpKind.NONE, ok=True)
    with pytest.raises(BadInput, match="Only an ADD"):
        ToolOutcome(OpKind.UPDATE, ok=True, duplicate=True)
    with pytest.raises(BadInput, match="writes no text"):
        ToolOutcome(OpKind.DELETE, ok=True, valid=False)


def test_the_default_rules_are_neutral() -> None:
    assert mem_alpha_reward([], qa_scores=[1.0], memory_tokens=0, chunk_tokens=1).total == 2.15
    assert OP_NEUTRAL.no_call == 1
