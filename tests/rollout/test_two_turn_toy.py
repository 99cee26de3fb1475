"""A game of two turns that is learnt with the right mask and, in the same time, not without it.

In each turn the policy says one byte; a visible ASCII character earns a point. Whoever earns the
first point is shown a chat in which an assistant says a blank, over and over. Rollouts that did
well thus hold many tokens that show how to do badly: a learner that took them for actions would be
taught the opposite of the game.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest
import torch
from tests.quick import quick

from memograd.policy.language_model import LanguageModel
from memograd.rollout import Message
from memograd.rollout.chat_ids import ChatIds
from memograd.rollout.episode import Limits, Step
from memograd.rollout.lockstep import run_in_lockstep
from memograd.rollout.token_tree import Branches, grow_trees

ROLLOUTS, STEPS, LEARNING_RATE = 16, 20, 5e-3


class Game:
    """One attempt; two turns."""

    tools = ()

    def __init__(self) -> None:
        self.turns = 0

    def reset(self) -> list[Message]:
        return [Message(role="user", content="say")]

    def step(self, action: str) -> Step:
        self.turns += 1
        good = len(action) == 1 and "!" <= action <= "~"
        shown = "<|end|><|start|>assistant\n " * 12 if good else "again"
        observation = Message(role="user", content=shown)
        return Step((observation,), reward=float(good), done=self.turns == 2)

    def finish(self) -> None:
        return None


def everything_scored(branches: Branches) -> Branches:
    """What a learner without a mask would see."""
    trees = tuple(replace(tree, scored=()) for tree in branches.trees)
    return replace(branches, trees=trees)


def points_by_step(policy: LanguageModel, chat: ChatIds, *, masked: bool) -> list[float]:
    """Mean points of a rollout at each step of plain policy-gradient training."""
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(policy.parameters(), lr=LEARNING_RATE)
    points: list[float] = []
    for _ in range(STEPS):
        groups = run_in_lockstep(
            policy,
            chat,
            [[Game() for _ in range(ROLLOUTS)]],
            rollout_ids=[[str(number) for number in range(ROLLOUTS)]],
            limits=Limits(max_turns=2),
            temperature=1.0,
            max_completion_length=2,
            generator=generator,
        )
        rewards_R = torch.tensor([rollout.reward for rollout in groups[0]])
        points.append(float(rewards_R.mean()))
        advantages_R = (rewards_R - rewards_R.mean()) / (rewards_R.std() + 1e-4)
        branches = grow_trees(groups) if masked else everything_scored(grow_trees(groups))
        scores = policy.logprobs(branches.trees, temperature=1.0)
        rollouts = [number for tree in branches.rollouts_of_tree for number in tree]
        loss = -(scores.logprobs_RT.sum(1) * advantages_R[rollouts]).sum() / ROLLOUTS
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
    return points


@pytest.mark.parametrize("masked", quick([True, False], (0,)))
def test_only_the_right_mask_can_learn(tiny_policy, chat_of, monkeypatch, masked: bool) -> None:
    # Every token ends an action, so that an action is one byte.
    monkeypatch.setattr(LanguageModel, "end_ids", property(lambda self: frozenset(range(258))))
    points = points_by_step(tiny_policy, chat_of(tiny_policy.tokenizer), masked=masked)
    # An untrained policy earns about 0.7 of 2. Over the last five steps, the generator's seeds 0, 1
    # and 2 gave 1.5, 1.9 and 1.7 with the mask, 1.1, 0.8 and 0.7 without.
    last = fmean(points[-5:])
    assert last > 1.7 if masked else last < 1.1
