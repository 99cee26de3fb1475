"""The log shows every rollout with its own numbers and exactly the tokens that the model saw."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memograd.grpo.rollout_files import group_records, render_records
from memograd.grpo.run_folder import plain_json
from memograd.rewards import RewardTable
from memograd.rollout import Group, Message, Rollout, Scenario, Turn


def texts(ids) -> list[str]:
    return [f"<{token}>" for token in ids]


def turn(observation: list[int], action: list[int], starts_row: bool = True) -> Turn:
    logprobs = -np.arange(1.0, len(action) + 1)
    return Turn(tuple(observation), tuple(action), logprobs, "end", starts_row)


def group(name: str, *rollouts: tuple[Turn, ...]) -> Group:
    scenario = Scenario(name, (Message(role="user", content=f"ask {name}"),), {"answer": "x"})
    made = [
        Rollout(f"{name}, rollout {place}", turns, completion=f"says {place}")
        for place, turns in enumerate(rollouts)
    ]
    return Group(scenario, tuple(made))


TWO = [
    group("q0", (turn([1, 2], [3]),), (turn([1, 2], [4, 5]),)),
    group("q1", (turn([7], [8]),), (turn([7], [9]),)),
]


def test_every_rollout_has_its_own_numbers() -> None:
    table = RewardTable([0.0, 1.0, 2.0, 3.0], {"rank": [0.0, 1.0, 2.0, None]})
    records = group_records(3, TWO, texts, table, np.array([-1.0, 1.0, -0.5, 0.5]))
    text = render_records(records)
    assert text.startswith("step 3: 2 groups")
    first, second = text.split("=== q1 ===")
    assert "[user] ask q0" in first and "answer: x" in first
    assert "0: advantage -1.00  rank 0.000  (1 tokens, end)  'says 0'" in first
    assert "1: advantage +1.00  rank 1.000  (2 tokens, end)  'says 1'" in first
    assert "1: advantage +0.50  rank -  (1 tokens, end)  'says 1'" in second
    assert [r["reward"] for record in records for r in record["rollouts"]] == [0.0, 1.0, 2.0, 3.0]
    assert json.loads(plain_json(records)) == records


def test_before_rewards_there_are_dashes() -> None:
    assert "0: advantage -    (1 tokens, end)  'says 0'" in render_records(
        group_records(1, TWO, texts)
    )


def test_numbers_that_are_not_finite_are_readable() -> None:
    bad = Turn((1,), (2,), np.array([np.nan]), "end")
    table = RewardTable([np.inf, 0.0], {"f": [np.inf, 0.0]})
    records = group_records(1, [group("q", (bad,), (bad,))], texts, table)
    assert records[0]["rollouts"][0]["rows"][0]["logprobs"] == ["nan"]
    assert "f inf" in render_records(records)


def test_what_was_heard_between_two_actions_is_not_scored() -> None:
    turns = (turn([1, 2], [3]), turn([10, 11], [4, 5], starts_row=False))
    [record] = group_records(1, [group("q", turns, (turn([1, 2], [3]),))], texts)
    [row] = record["rollouts"][0]["rows"]
    assert row == {
        "prompt_ids": None,
        "ids": [3, 10, 11, 4, 5],
        "texts": ["<3>", "<10>", "<11>", "<4>", "<5>"],
        "scored": [True, False, False, True, True],
        "logprobs": [-1.0, None, None, -1.0, -2.0],
    }


IDS = st.lists(st.integers(0, 9), min_size=1, max_size=4)


@given(st.lists(st.tuples(IDS, IDS, st.booleans()), min_size=1, max_size=5))
def test_rows_are_exactly_what_the_model_saw(given_turns) -> None:
    turns = tuple(
        turn(heard, said, starts_row=fresh or place == 0)
        for place, (heard, said, fresh) in enumerate(given_turns)
    )
    [record] = group_records(1, [group("q", turns)], texts)
    rows = record["rollouts"][0]["rows"]
    seen: list[list[int]] = []
    for one in turns:
        before = [] if one.starts_row else seen.pop()
        seen.append([*before, *one.observation_ids, *one.action_ids])
    prompt = record["prompt_ids"]
    assert [(row["prompt_ids"] or prompt) + row["ids"] for row in rows] == seen
    scored = [i for row in rows for i, s in zip(row["ids"], row["scored"], strict=True) if s]
    assert scored == [token for one in turns for token in one.action_ids]


def test_what_reset_added_to_the_prompt_is_shown() -> None:
    def episode(place: int, added: str) -> Rollout:
        asked = Message(role="user", content=f"ask q0{added}")
        said = Message(role="assistant", content="x")
        turns = (turn([1, 2], [3]),)
        return Rollout(f"r{place}", turns, "x", messages=(asked, said), opening_length=1)

    scenario = group("q0").scenario
    played = Group(scenario, (episode(0, " in 9"), episode(1, " in 9"), episode(2, " in 7")))
    (record,) = group_records(1, [played], texts)
    assert record["prompt"] == [{"role": "user", "content": "ask q0 in 9"}]
    assert ["prompt" in rollout for rollout in record["rollouts"]] == [False, False, True]
    text = render_records([record])
    assert text.count("[user] ask q0 in 9") == 1 and text.count("[user] ask q0 in 7") == 1
