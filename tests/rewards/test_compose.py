"""House rule 8: a reward that cannot be computed is an error with the rollout's id, never a 0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput, MemogradError
from memograd.rewards import (
    REWARDS,
    RewardError,
    RewardTable,
    WeightedReward,
    compute_rewards,
    get_reward,
    locomo_f1,
    parse_rewards,
)


def compute(function: Any, size: int = 3, **columns: list[Any]) -> RewardTable:
    return compute_rewards(
        [WeightedReward("custom", function)],
        rollout_ids=[f"s{index}/r{index}" for index in range(size)],
        prompts=["q"] * size,
        completions=["a"] * size,
        columns=columns,
    )


def returning(values: Any) -> Any:
    return lambda prompts, completions, **columns: values


def test_registry() -> None:
    assert set(REWARDS) == {"locomo_f1", "mem0_f1", "mem0_bleu1", "environment"}
    assert get_reward("locomo_f1") is locomo_f1


def test_unknown_reward_suggests_the_nearest() -> None:
    with pytest.raises(BadInput, match='no reward "locomo-f1"; did you mean locomo_f1'):
        get_reward("locomo-f1")
    with pytest.raises(BadInput, match="known are locomo_f1, mem0_f1, mem0_bleu1"):
        get_reward("回答")


def test_parse() -> None:
    assert [(r.name, r.weight) for r in parse_rewards("locomo_f1")] == [("locomo_f1", 1.0)]
    rewards = parse_rewards(" locomo_f1:1.0, mem0_bleu1 : -0.2 ")
    assert [(r.name, r.weight) for r in rewards] == [("locomo_f1", 1.0), ("mem0_bleu1", -0.2)]
    assert rewards[0].function is locomo_f1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "empty entry"),
        ("locomo_f1,", "empty entry"),
        (":1", "empty entry"),
        ("locomo_f1:", '"" in reward "locomo_f1:" is not a finite number'),
        ("locomo_f1:half", '"half" in reward'),
        ("locomo_f1:nan", "not a finite number"),
        ("locomo_f1:inf", "not a finite number"),
        ("locomo_f1,locomo_f1:2", "names locomo_f1 twice"),
        ("locomo_f1:0", "every function weight 0"),
        ("f1", "no reward"),
    ],
)
def test_parse_refuses(spec: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_rewards(spec)


def test_weighted_sum_of_real_rewards() -> None:
    table = compute_rewards(
        parse_rewards("locomo_f1:1.0,mem0_bleu1:0.5"),
        rollout_ids=["r0", "r1"],
        prompts=["q", "q"],
        completions=["a red car", "cat"],
        columns={"answer": ["the red car", "dog"], "category": ["single-hop", "temporal"]},
    )
    assert table.by_name["locomo_f1"] == pytest.approx([1.0, 0.0])
    assert table.by_name["mem0_bleu1"] == pytest.approx([2 / 3, 0.0])
    assert table.total == pytest.approx([1 + 0.5 * 2 / 3, 0.0])


@given(
    st.lists(
        st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.integers(-5, 5)),
        min_size=1,
        max_size=5,
    )
)
def test_total_is_the_weighted_sum(rows: list[tuple[float, float, int]]) -> None:
    names = ["one", "two", "three"]
    columns_ = list(zip(*rows, strict=True))
    table = compute_rewards(
        [
            WeightedReward(name, returning(list(values)), weight)
            for name, values, weight in zip(names, columns_, (1.0, 0.5, -2.0), strict=True)
        ],
        rollout_ids=[str(index) for index in range(len(rows))],
        prompts=[""] * len(rows),
        completions=[""] * len(rows),
        columns={},
    )
    assert table.total == pytest.approx([a + 0.5 * b - 2 * c for a, b, c in rows])
    assert table.by_name == {n: [float(v) for v in c] for n, c in zip(names, columns_, strict=True)}


@given(
    values=st.lists(st.floats(-10, 10), min_size=1, max_size=6),
    bad=st.sampled_from([math.nan, math.inf, -math.inf, None, "0.5", [0.5], 1j, 10**400]),
    data=st.data(),
)
def test_one_bad_value_is_an_error_that_names_its_rollout(
    values: list[Any], bad: Any, data: st.DataObject
) -> None:
    row = data.draw(st.integers(0, len(values) - 1))
    values[row] = bad
    with pytest.raises(RewardError) as caught:
        compute(returning(values), size=len(values))
    assert f"Reward custom returned {bad!r} for rollout s{row}/r{row}," in str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0], "returned 1 values for 3 completions (batch of rollouts s0/r0, s1/r1, s2/r2)"),
        ([], "returned 0 values for 3 completions (batch of rollouts s0/r0"),
        ([1.0] * 4, "returned 4 values for 3"),
        (None, "returned NoneType, not a list"),
        (0.5, "returned float, not a list"),
        ("abc", "returned str, not a list"),
        (np.ones(3), "returned ndarray, not a list"),
        ({0: 1.0}, "returned dict, not a list"),
    ],
)
def test_anything_but_one_number_each_is_an_error(values: Any, message: str) -> None:
    with pytest.raises(RewardError) as caught:
        compute(returning(values))
    assert message in str(caught.value)
    assert isinstance(caught.value, MemogradError)


def test_numpy_and_integer_scalars_are_numbers() -> None:
    table = compute(returning([np.float32(0.5), np.int64(2), True]))
    assert table.total == [0.5, 2.0, 1.0]
    assert all(type(value) is float for value in table.total)


def test_an_exception_names_function_cause_and_rollouts() -> None:
    def broken(prompts: list[str], completions: list[str], **columns: Any) -> list[float | None]:
        raise KeyError("score")

    with pytest.raises(RewardError, match=r"custom raised KeyError: 'score' .*s0/r0, s1") as caught:
        compute(broken)
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(RewardError, match=r"locomo_f1 raised TypeError.*'category'"):
        compute_rewards(
            parse_rewards("locomo_f1"),
            rollout_ids=["r0"],
            prompts=["q"],
            completions=["a"],
            columns={"answer": ["a"]},
        )


def test_what_numpy_calls_true_is_a_number_as_true_is() -> None:
    values = [np.bool_(True), np.int64(2), np.float32(0.5), True]
    assert compute(returning(values), size=4).total == [1.0, 2.0, 0.5, 1.0]


def test_a_long_batch_is_not_listed_in_full() -> None:
    with pytest.raises(RewardError, match="s2/r2 and 17 more"):
        compute(returning([]), size=20)


def test_a_total_that_overflows_is_an_error() -> None:
    with pytest.raises(RewardError, match="total returned inf for rollout r0"):
        compute_rewards(
            [WeightedReward("huge", returning([1e308]), 10.0)],
            rollout_ids=["r0"],
            prompts=["q"],
            completions=["a"],
            columns={},
        )


def test_rows_are_safe_from_edits_all_the_way_down() -> None:
    def empties(prompts: list[Any], completions: list[str], answer: list[Any]) -> list[float]:
        prompts[0][0]["content"] = ""
        return [float(one.pop()) for one in answer]

    prompt, answer = [{"role": "user", "content": "q"}], [1, 2]
    for _ in range(2):  # the rows are asked again in a later step
        table = compute_rewards(
            [WeightedReward("empties", empties)],
            rollout_ids=["a", "b"],
            prompts=[prompt, prompt],
            completions=["x", "y"],
            columns={"answer": [answer, answer]},
        )
        assert table.total == [2.0, 2.0]
    assert (prompt, answer) == ([{"role": "user", "content": "q"}], [1, 2])


def test_columns_may_have_any_name_and_are_safe_from_edits() -> None:
    seen: list[list[Any]] = []

    def edits(prompts: list[str], completions: list[str], **columns: Any) -> list[float | None]:
        seen.append(list(columns["size"]))
        columns["size"].clear()
        return [1.0, 1.0]

    sizes = [7, 8]
    compute_rewards(
        [WeightedReward("first", edits), WeightedReward("second", edits)],
        rollout_ids=["r0", "r1"],
        prompts=["q", "q"],
        completions=["a", "b"],
        columns={"size": sizes},
    )
    assert seen == [[7, 8], [7, 8]]
    assert sizes == [7, 8]


def test_a_column_of_another_length_is_refused() -> None:
    with pytest.raises(BadInput, match="`answer` has 2 entries for 3 rollouts"):
        compute(returning([1.0] * 3), answer=["x", "y"])


def test_none_is_left_out_of_the_total_and_of_the_mean() -> None:
    table = compute_rewards(
        [
            WeightedReward("some", returning([1.0, None, 3.0]), 2.0),
            WeightedReward("all", returning([10, 20, 30])),
            WeightedReward("nowhere", returning([None] * 3)),
        ],
        rollout_ids=["r0", "r1", "r2"],
        prompts=["q"] * 3,
        completions=["a"] * 3,
        columns={},
    )
    assert table.total == [12.0, 20.0, 36.0]
    assert table.by_name["some"] == [1.0, None, 3.0]
    assert table.applied("some") == [1.0, 3.0]
    assert table.means() == {"some": 2.0, "all": 20.0, "nowhere": None}


@pytest.mark.parametrize("weight", [1.0, 0.0])
def test_a_rollout_that_nothing_scores_is_an_error(weight: float) -> None:
    """Not a 0; and a reward of weight 0 is only watched, it scores nothing."""
    rewards = [
        WeightedReward("one", returning([1.0, None])),
        WeightedReward("two", returning([1.0, 1.0 if weight == 0 else None]), weight),
    ]
    with pytest.raises(RewardError, match="returned None for rollout r1, so nothing") as caught:
        compute_rewards(
            rewards,
            rollout_ids=["r0", "r1"],
            prompts=["q"] * 2,
            completions=["a"] * 2,
            columns={},
        )
    assert caught.value.rollout_id == "r1"


def test_an_error_says_the_line_of_the_function() -> None:
    def broken(completions: list[str]) -> list[float]:
        return [1 / (len(completion) - 1) for completion in completions]

    line = broken.__code__.co_firstlineno + 1
    with pytest.raises(RewardError, match=rf"ZeroDivisionError: .* in {__file__} line {line} "):
        compute(broken)


def test_no_rewards_and_doubled_names_are_refused() -> None:
    one = WeightedReward("one", returning([1.0]))
    for rewards in ([], [one, one]):
        with pytest.raises(BadInput, match="At least one reward is needed, and each name once"):
            compute_rewards(
                rewards, rollout_ids=["r"], prompts=["q"], completions=["a"], columns={}
            )


def test_an_empty_batch_has_empty_rewards() -> None:
    assert compute(returning([]), size=0) == RewardTable([], {"custom": []})
