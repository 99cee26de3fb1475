"""The environment's own reward is one among the others, and is there for all rollouts or none."""

from __future__ import annotations

import pytest

from memograd.rewards import RewardError, compute_rewards, environment_column, parse_rewards


def total(spec: str, earned: list[float | None], **given) -> list[float]:
    ids = [f"rollout {number}" for number in range(len(earned))]
    table = compute_rewards(
        parse_rewards(spec),
        rollout_ids=ids,
        prompts=["?"] * len(ids),
        completions=["one two"] * len(ids),
        columns=environment_column(ids, earned),
    )
    return table.total


def test_it_is_weighted_like_any_other() -> None:
    assert total("environment", [1.0, -2.0]) == [1.0, -2.0]
    assert total("environment:0.5,length(low=1, high=9):2", [1.0, 3.0]) == [2.5, 3.5]
    assert total("environment:0,length(low=1, high=9)", [1.0, 3.0]) == [1.0, 1.0]


def test_it_is_not_there_if_no_environment_gives_one() -> None:
    assert environment_column(["a", "b"], [None, None]) == {}
    with pytest.raises(RewardError, match="environment gave none of these 2 rollouts a reward"):
        total("environment", [None, None])


def test_one_without_a_reward_among_others_is_named() -> None:
    with pytest.raises(RewardError, match="rollout 1 no reward") as caught:
        total("length(low=1, high=9)", [0.0, None, 1.0])
    assert caught.value.rollout_id == "rollout 1"


def test_functions_that_read_messages_get_the_whole_conversation(tmp_path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "def turns(completions):\n"
        "    return [sum(m['role'] == 'assistant' for m in c) for c in completions]\n"
    )
    said = {"role": "assistant", "content": "a"}
    conversations = [[said, {"role": "tool", "content": "b"}, said], []]
    table = compute_rewards(
        parse_rewards(f"{file}:turns,exact_match"),
        rollout_ids=["0", "1"],
        prompts=[[{"role": "user", "content": "?"}]] * 2,
        completions=["a", "a"],
        conversations=conversations,
        columns={"answer": ["a", "b"]},
    )
    assert table.by_name == {"turns": [2.0, 1.0], "exact_match": [1.0, 0.0]}
