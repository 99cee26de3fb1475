"""From calls to token rows: each drawn token scored once, and nothing trained that must not be."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.gateway.records import CallRecord, Choice, RolloutRecord
from memograd.gateway.traces_to_rollouts import CannotTrain, rollout_of_trace
from memograd.rollout.token_tree import grow_trees

RECORD = RolloutRecord(
    id="r1", state="rewarded", metadata={}, policy_version=0, seed=0, created_at=0.0,
    updated_at=0.0, deadline=None, reward=0.25,
)  # fmt: skip


def choice(*ids: int, reason: str = "stop") -> Choice:
    return Choice("text", reason, token_ids=ids, logprobs=tuple(-0.01 * one for one in ids))


def call(number: int, prompt: tuple[int, ...], *choices: Choice, **given) -> CallRecord:
    fields = {
        "agent": "writer",
        "model": "m",
        "policy_version": 0,
        "messages": ({"role": "user", "content": "hi"},),
        "sampling": {"temperature": 0.8, "top_p": 1.0},
        "logprobs_temperature": 0.8,
    }
    fields |= given
    return CallRecord("r1", number, prompt_ids=prompt, choices=choices, **fields)


def drawn_with(**sampling) -> CallRecord:
    return call(1, (1,), choice(2), sampling={"temperature": 0.8, **sampling})


def test_what_leaves_the_distribution_as_it_is_can_be_trained_on() -> None:
    harmless = {"top_k": -1, "min_p": 0.0, "tool_choice": "auto", "response_format": None}
    assert read(drawn_with(**harmless)).tokens == 1


def read(*calls: CallRecord, record: RolloutRecord = RECORD, **given):
    return rollout_of_trace(record, calls, temperature=0.8, **given)


def test_two_agents_in_turn_are_two_rows() -> None:
    rollout = read(
        call(0, (1, 2), choice(3, 4)),
        call(1, (9,), choice(8), agent="critic"),
        call(2, (1, 2, 3, 4, 5), choice(6, reason="length")),
        call(3, (9, 8, 7), choice(6), agent="critic"),
    )
    rows = [(turn.observation_ids, turn.action_ids, turn.starts_row) for turn in rollout.turns]
    assert rows == [
        ((1, 2), (3, 4), True),
        ((5,), (6,), False),
        ((9,), (8,), True),
        ((7,), (6,), False),
    ]
    assert (rollout.reward, rollout.stop_reason) == (0.25, "end")
    assert rollout.turns[0].logprobs.dtype == np.float32


def test_the_last_turn_is_the_last_answer_whoever_spoke_between() -> None:
    cut = call(2, (1, 2, 3, 4, 5), choice(6, reason="length"), choice(7), choice(8))
    rollout = read(call(0, (1, 2), choice(3, 4)), call(1, (9,), choice(8), agent="critic"), cut)
    assert [turn.action_ids for turn in rollout.turns] == [(8,), (8,), (7,), (3, 4), (6,)]
    assert [turn.starts_row for turn in rollout.turns] == [True, True, True, True, False]
    assert rollout.turns[-1].stop_reason == rollout.stop_reason == "length"


def test_only_the_named_agents_are_trained() -> None:
    calls = [
        call(0, (1, 2), choice(3)),
        call(1, (9,), choice(8), agent="critic"),
        call(2, (1, 2, 3, 5), choice(6, reason="length")),
    ]
    rollout = read(*calls, optimize_agents={"writer"})
    assert [turn.action_ids for turn in rollout.turns] == [(3,), (6,)]
    assert rollout.stop_reason == "length"
    with pytest.raises(CannotTrain, match=r"r1 has no call.*critic, writer called, 写手 is"):
        read(*calls, optimize_agents={"写手"})


@st.composite
def conversations(draw) -> list[CallRecord]:
    """Calls that go on from earlier ones, fork from them or begin anew, with 1 to 3 choices."""
    calls: list[CallRecord] = []
    ids = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
    for number in range(draw(st.integers(1, 6))):
        prompt = draw(ids)
        if calls and draw(st.booleans()):
            before = draw(st.sampled_from(calls))
            chosen = draw(st.sampled_from(before.choices))
            prompt = (*before.prompt_ids, *chosen.token_ids, *prompt)
        calls.append(
            call(number, prompt, *(choice(*draw(ids)) for _ in range(draw(st.integers(1, 3)))))
        )
    return calls


@given(conversations())
def test_every_drawn_token_is_scored_once_with_what_it_followed(calls: list[CallRecord]) -> None:
    rollout = read(*calls)
    grown = grow_trees([[rollout]])
    expected, found = [], []
    for one in calls:
        for drawn in one.choices:
            before = list(one.prompt_ids)
            for token, logprob in zip(drawn.token_ids, drawn.logprobs, strict=True):
                expected.append((tuple(before), token, np.float32(logprob)))
                before.append(token)
    for tree, old in zip(grown.trees, grown.old_logprobs, strict=True):
        for row, logprobs in enumerate(old):
            ids = tree.branch(row)
            for place, scored in enumerate(tree.scored[row]):
                if scored:
                    seen = (*tree.prompt, *ids[:place])
                    found.append((seen, ids[place], logprobs[place]))
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"state": "running", "reward": None}, "r1 is running. It has no reward"),
        ({"state": "failed", "reward": None, "error": "坏了"}, "r1 is failed: 坏了"),
        ({"state": "timed_out", "reward": None}, "no reward"),
    ],
)
def test_a_missing_reward_is_an_error_and_never_0(change, said: str) -> None:
    with pytest.raises(CannotTrain, match=said):
        read(call(0, (1,), choice(2)), record=dataclasses.replace(RECORD, **change))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (call(1, (1,), Choice("text", "stop")), "without token ids"),
        (call(1, (1,), Choice("text", "stop", token_ids=(1,))), "without token ids"),
        (call(1, (), choice(2)), "without token ids"),
        (call(1, (1,), choice(2), logprobs_temperature=1.0), "at temperature 1;"),
        (call(1, (1,), choice(2), sampling={"temperature": 0.7}), "drawn at temperature 0.7"),
        (call(1, (1,), choice(2), sampling={"temperature": 0.8, "top_p": 0.9}), "top_p 0.9"),
        (drawn_with(top_k=20), "top_k=20"),
        (drawn_with(min_tokens=3), "min_tokens=3"),
        (drawn_with(tool_choice={"type": "function"}), "tool_choice="),
        (drawn_with(response_format={"type": "json_object"}), "response_format="),
    ],
)
def test_what_was_drawn_otherwise_is_refused_with_its_call(bad: CallRecord, said: str) -> None:
    with pytest.raises(CannotTrain, match=f"Call 1 of the rollout mine.*{said}"):
        read(call(0, (1,), choice(2)), bad, name="mine")


def test_a_greedy_rollout_is_read_as_such() -> None:
    greedy = call(0, (1,), choice(2), sampling={"temperature": 0.0}, logprobs_temperature=1.0)
    assert rollout_of_trace(RECORD, [greedy], temperature=0.0).tokens == 1


def said(*words: str) -> tuple[dict[str, str], ...]:
    """A conversation in turn, the user's word first."""
    roles = ("user", "assistant")
    return tuple({"role": roles[n % 2], "content": word} for n, word in enumerate(words))


def test_answers_that_nobody_drew_are_no_part_of_what_is_rewarded() -> None:
    """Examples in the prompt, or an earlier chat, are the agent's own words."""
    shown = said("例一", "答一", "问")
    first = call(0, (1,), choice(2), messages=shown)
    second = call(1, (1, 2, 3), choice(4), messages=(*shown, *said("x", "text", "再问")[1:]))
    critic = call(2, (9,), choice(8), messages=said("评"), agent="critic")
    alone = read(first)
    assert [message["content"] for message in alone.attempt] == ["text"]
    both = read(first, second)
    assert [message["content"] for message in both.attempt] == ["text", "再问", "text"]
    assert [message["content"] for message in read(first, critic).attempt] == ["text"]
    rewritten = call(1, (7,), choice(4), messages=said("例一", "答一", "问二"))
    assert read(first, rewritten).opening_length == 1  # it goes on from nothing that is known
