"""Episodes whose turns keep their keys and values draw what they would draw without."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.config import LoraConfig
from memograd.policy.language_model import LanguageModel
from memograd.rollout import Message, Rollout
from memograd.rollout.chat_ids import ChatIds
from memograd.rollout.episode import Limits, Step, prefill_metrics
from memograd.rollout.lockstep import Sampler, run_in_lockstep

END_IDS = frozenset(range(60))
"""One token of 258 rarely ends a random model's action; sixty of them do."""


class Told:
    """Answers an action with a tool's result of any length, for so many turns."""

    tools = ()

    def __init__(self, opening: str, turns: int, seed: int) -> None:
        self._opening, self._left, self._random = opening, turns, random.Random(seed)

    def reset(self) -> list[Message]:
        return [Message(role="user", content=self._opening)]

    def step(self, action: str) -> Step:
        self._left -= 1
        result = "".join(self._random.choices("0123456789 ", k=self._random.randrange(1, 40)))
        return Step((Message(role="tool", content=result),), done=self._left == 0)

    def finish(self) -> float | None:
        return 0.0


def load(folder: Path) -> LanguageModel:
    """The tiny model with an adapter that does something."""
    policy = LanguageModel.load(str(folder), lora=LoraConfig(r=4), device="cpu")
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) * 0.2)
    return policy


@pytest.fixture(scope="module")
def policy(tiny_model_folder) -> Iterator[LanguageModel]:
    """In float64, so that rounding cannot turn a draw into another."""
    policy = load(tiny_model_folder)
    policy.peft_model.double()
    policy._checked_length = 10**6  # its own check runs rows beside, which are counted here
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LanguageModel, "end_ids", property(lambda self: END_IDS))
        yield policy


def play(
    sampler: Sampler, policy: LanguageModel, groups: list[list[int]], *, seed: int = 0, longest=6
) -> list[Rollout]:
    """One episode of so many turns for each number; a group opens alike."""
    # Only the template's own end token is left out of what an action said: others stay in its row.
    chat = ChatIds(policy.tokenizer, end_ids=frozenset({0}))
    played = run_in_lockstep(
        sampler,
        chat,
        [
            [Told("go on " * (b + 1), turns, seed=10 * b + g) for g, turns in enumerate(group)]
            for b, group in enumerate(groups)
        ],
        rollout_ids=[[f"{b}/{g}" for g in range(len(group))] for b, group in enumerate(groups)],
        limits=Limits(),
        temperature=1.0,
        max_completion_length=longest,
        generator=torch.Generator().manual_seed(seed),
    )
    return [rollout for group in played for rollout in group]


def check_equal(ours: list[Rollout], theirs: list[Rollout]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert one.messages == other.messages
        for turn, expected in zip(one.turns, other.turns, strict=True):
            assert turn.observation_ids == expected.observation_ids
            assert turn.action_ids == expected.action_ids
            np.testing.assert_allclose(turn.logprobs, expected.logprobs, atol=1e-5)


GROUPS = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=3)


@settings(max_examples=30, deadline=None)
@given(GROUPS, st.integers(0, 10_000), st.sampled_from([0, 90, 300, 100_000]))
def test_the_same_is_drawn_with_and_without_what_turns_left(
    policy: LanguageModel, groups: list[list[int]], seed: int, room: int
) -> None:
    """Groups of any sizes, episodes of any number of turns, new rows among them, any room."""
    sampler = policy.in_turns(room)
    ours = play(sampler, policy, groups, seed=seed)
    theirs = play(policy, policy, groups, seed=seed)
    check_equal(ours, theirs)
    assert sampler.kept_tokens <= room
    counts, plain = prefill_metrics(ours), prefill_metrics(theirs)
    assert plain["prefilled_tokens"] == plain["prefilled_tokens_anew"]
    assert counts["prefilled_tokens_anew"] == plain["prefilled_tokens"]
    assert counts["prefilled_tokens"] <= plain["prefilled_tokens"]
    if room == 0:
        assert counts["prefilled_tokens"] == plain["prefilled_tokens"]
    if room == 100_000:
        assert counts["turns_prefilled_anew"] == 0


def test_a_turn_runs_what_is_new_and_nothing_else(policy: LanguageModel) -> None:
    """Counted where tokens enter the first layer."""
    for seed in range(20):
        (rollout,) = play(policy.in_turns(), policy, [[4]], seed=seed, longest=40)
        if sum(not turn.starts_row for turn in rollout.turns) == 3:
            break
    layer = policy.model.get_decoder().layers[0]
    run: list[int] = []
    hook = layer.register_forward_pre_hook(lambda _, given: run.append(given[0].shape[1]))
    (again,) = play(policy.in_turns(), policy, [[4]], seed=seed, longest=40)
    hook.remove()
    assert len(again.turns) == 4
    decoded = sum(len(turn.action_ids) - 1 for turn in again.turns)
    prefilled = prefill_metrics([again])["prefilled_tokens"]
    assert sum(run) == prefilled + decoded
    first, *later = again.turns
    assert first.reused_tokens == 0
    # The drawn token that ended the action before is run with the observation.
    assert prefilled == len(first.observation_ids) + sum(
        len(turn.observation_ids) + 1 for turn in later
    )


def test_a_group_runs_its_first_prompt_once(policy: LanguageModel) -> None:
    rollouts = play(policy.in_turns(), policy, [[1, 1, 1], [1]])
    opening = [len(rollout.turns[0].observation_ids) for rollout in rollouts]
    reused = [rollout.turns[0].reused_tokens for rollout in rollouts]
    assert reused == [0, opening[1], opening[2], 0]
    assert prefill_metrics(rollouts)["prefilled_tokens"] == opening[0] + opening[3]


def draw(sampler: Sampler, prompts: list[tuple[int, ...]]):
    return sampler.sample(
        prompts,
        num_generations=1,
        temperature=1.0,
        max_completion_length=30,
        generator=torch.Generator().manual_seed(3),
    )


def begun(policy: LanguageModel) -> tuple[Sampler, list[tuple[int, ...]]]:
    """Two episodes after a first turn, and their next prompts."""
    sampler = policy.in_turns()
    prompts = [tuple(range(100, 120)), tuple(range(140, 165))]
    answers = draw(sampler, prompts)
    assert {reason for answer in answers for reason in answer.stop_reasons} == {"end"}
    assert sampler.kept_tokens == sum(len(a.tree.prompt) + len(a.logprobs[0]) - 1 for a in answers)
    return sampler, [(*a.tree.prompt, *a.tree.branch(0), 70, 71) for a in answers]


def test_what_is_over_is_given_up_at_the_next_turn(policy: LanguageModel) -> None:
    sampler, (first, second) = begun(policy)
    (answer,) = draw(sampler, [second])
    assert answer.reused_tokens == len(second) - 3
    assert sampler.kept_tokens == len(second) + len(answer.logprobs[0]) - 1
    (late,) = draw(sampler, [first])
    assert late.reused_tokens == 0


def test_weights_that_moved_are_noticed(tiny_model_folder, policy: LanguageModel) -> None:
    moving = load(tiny_model_folder)
    sampler, prompts = begun(moving)
    optimizer = torch.optim.AdamW(moving.parameters(), lr=0.1)
    for weight in moving.parameters():
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    answers = draw(sampler, prompts)
    assert [answer.reused_tokens for answer in answers] == [0, 0]
    for ours, theirs in zip(answers, draw(moving, prompts), strict=True):
        assert ours.tree.branch(0) == theirs.tree.branch(0)


def test_row_by_row_nothing_is_kept(tiny_model_folder, policy: LanguageModel) -> None:
    sampler, prompts = begun(policy)
    policy.forward = "rows"
    try:
        answers = draw(sampler, prompts)
    finally:
        policy.forward = "auto"
    assert [answer.reused_tokens for answer in answers] == [0, 0]
    assert sampler.kept_tokens == 0
