"""Runs the episodes of all groups in lockstep, so that every turn is one batch for the model.

    open all episodes          first turn: a group shares its prompt, G actions over one token tree
    repeat:  sample            every live rollout's next action, in one call
             step              each episode takes its action and answers with an observation; what
                               they wait for outside (async tools), they wait for together
             leave             what is over, or at a limit, is out of the next batch

Invariants: an action goes back to the rollout it was drawn for, whichever rollouts finish first;
the turns of a rollout hold exactly the ids that the model saw and drew; rollouts come back in the
order they were given in. The order of a batch depends on the rollouts alone and never on how long
an environment takes, so the same generator draws the same rollouts again (wall-time limits aside).
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import numpy as np

from memograd.errors import RAISED_BY_USERS, BadInput, MemogradError
from memograd.rollout.async_calls import Waiting, run_together
from memograd.rollout.chat_ids import ChatIds, NextTurn
from memograd.rollout.episode import Episode, EpisodeError, Limits, Step
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import Message, Rollout, Turn, VersionSpan, one_or_each

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


class Sampled(Protocol):
    """Answers to one prompt, as `memograd.policy.SampledGroup` holds them."""

    @property
    def tree(self) -> TokenTree: ...
    @property
    def logprobs(self) -> tuple[np.ndarray, ...]: ...
    @property
    def texts(self) -> tuple[str, ...]: ...
    @property
    def stop_reasons(self) -> tuple[str, ...]: ...
    @property
    def reused_tokens(self) -> int: ...
    @property
    def versions(self) -> tuple[tuple[VersionSpan, ...], ...]: ...


class Sampler(Protocol):
    """The part of `memograd.policy.Policy` that draws actions."""

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        num_generations: int | Sequence[int],
        temperature: float,
        max_completion_length: int,
        generator: torch.Generator | None,
    ) -> Sequence[Sampled]:
        """Draw `num_generations` answers to each prompt, or to each its own number of them."""
        ...


def run_in_lockstep(
    sampler: Sampler,
    chat: ChatIds,
    episodes: Sequence[Sequence[Episode]],
    *,
    rollout_ids: Sequence[Sequence[str]],
    limits: Limits,
    temperature: float,
    max_completion_length: int,
    generator: torch.Generator | None,
    clock: Callable[[], float] = time.monotonic,
) -> list[tuple[Rollout, ...]]:
    """Play the episodes of every group to their ends; one tuple of rollouts a group.

    `max_completion_length` bounds one action. Raises `BadInput` for an opening prompt that leaves
    no room for an action under `limits`, and `EpisodeError` naming the rollout for an episode that
    raises or breaks the protocol.
    """
    started = clock()
    groups = [
        [_Live(chat, episode, name) for episode, name in zip(group, names, strict=True)]
        for group, names in zip(episodes, rollout_ids, strict=True)
    ]
    everyone = [rollout for group in groups for rollout in group]
    if not everyone:
        return [() for _ in groups]
    for rollout in everyone:
        seen = len(rollout.next.ids)
        if limits.max_tokens is not None and seen + max_completion_length > limits.max_tokens:
            raise BadInput(
                f"{rollout.id}: the opening prompt has {seen} tokens; with {max_completion_length} "
                f"for an action it exceeds max_tokens={limits.max_tokens}; raise that limit or "
                "shorten the prompt"
            )

    def draw(prompts: Sequence[Sequence[int]], counts: Sequence[int]) -> list[tuple[Sampled, int]]:
        sampled = sampler.sample(
            prompts,
            num_generations=one_or_each(counts),
            temperature=temperature,
            max_completion_length=max_completion_length,
            generator=generator,
        )
        return [
            (answers, row)
            for answers, count in zip(sampled, counts, strict=True)
            for row in range(count)
        ]

    prompts = _shared_prompts(groups)
    drawn = (
        draw([rollout.prompt() for rollout in everyone], [1] * len(everyone))
        if prompts is None
        else draw(prompts, [len(group) for group in groups])
    )
    live = everyone
    while live:
        for rollout, (answers, row) in zip(live, drawn, strict=True):
            rollout.act(answers, row)
        steps = run_together([rollout.step() for rollout in live])
        for rollout, step in zip(live, steps, strict=True):
            rollout.go_on(step, limits)
        seconds = clock() - started
        for rollout in live:
            rollout.stopped_by = rollout.stopped_by or limits.before_turn(
                seconds=seconds,
                row_tokens=len(rollout.prompt()),
                action_tokens=max_completion_length,
            )
        live = [rollout for rollout in live if rollout.stopped_by is None]
        drawn = draw([rollout.prompt() for rollout in live], [1] * len(live)) if live else []
    earned = iter(run_together([rollout.finish() for rollout in everyone]))
    return [tuple(rollout.finished(next(earned)) for rollout in group) for group in groups]


def _shared_prompts(groups: Sequence[Sequence[_Live]]) -> list[tuple[int, ...]] | None:
    """One opening prompt a group, if every group shares its own."""
    shared = all(rollout.next.ids == group[0].next.ids for group in groups for rollout in group)
    return [group[0].next.ids for group in groups] if shared and all(groups) else None


class _Live:
    """One rollout on its way: its conversation, the ids of its current row, and its turns."""

    def __init__(self, chat: ChatIds, episode: Episode, rollout_id: str) -> None:
        self.id = rollout_id
        self.stopped_by: str | None = None
        self._chat = chat
        self._episode = episode
        self._tools = tuple(episode.tools)
        (opening,) = run_together([self._ask("reset", episode.reset)])
        self._messages: list[Message] = list(opening)
        self._opening_length = len(self._messages)
        self._row: tuple[int, ...] = ()
        self._turns: list[Turn] = []
        self._rewards: list[float] = []
        self._completion = ""
        self._failed_calls: Counter[str] = Counter()
        self._failed_turns = 0
        self._mismatches: Counter[str] = Counter()
        self.next: NextTurn = chat.first(self._messages, self._tools)

    def prompt(self) -> tuple[int, ...]:
        """The ids that the next action follows."""
        return self.next.ids if self.next.starts_row else (*self._row, *self.next.ids)

    def act(self, answers: Sampled, row: int) -> None:
        """Take the drawn action."""
        prompt, action_ids = self.prompt(), answers.tree.branch(row)
        if answers.tree.prompt != prompt:
            raise RuntimeError(f"{self.id} was given an action that was drawn for another prompt")
        turn = Turn(
            observation_ids=self.next.ids,
            action_ids=action_ids,
            logprobs=answers.logprobs[row],
            stop_reason=answers.stop_reasons[row],
            starts_row=self.next.starts_row,
            # A prompt of several answers is run for the first of them.
            reused_tokens=len(prompt) if row else answers.reused_tokens,
            versions=answers.versions[row] if answers.versions else (),
        )
        self._turns.append(turn)
        self._row = (*prompt, *action_ids)
        self._completion = answers.texts[row]
        self._mismatches.update([self.next.mismatch] if self.next.mismatch else [])
        said = self._chat.action_text(action_ids)
        self._messages.append(Message(role="assistant", content=said))

    def step(self) -> Waiting[Step]:
        """What the episode makes of the action."""
        action = self._messages[-1]["content"]
        return self._ask("step", lambda: self._episode.step(action))

    def go_on(self, step: Step, limits: Limits) -> None:
        """Take what the action led to, and prepare the next turn if there is one."""
        self._count(step)
        if self._turns[-1].stop_reason == "length":
            self.stopped_by = "length"
        elif step.done:
            self.stopped_by = "end"
        else:
            self.stopped_by = limits.after_turn(
                turns=len(self._turns), failed_turns=self._failed_turns
            )
        if self.stopped_by is None:
            if not step.observation:
                raise EpisodeError(f"{self.id}: the episode goes on, but gave no observation")
            self._messages.extend(step.observation)
            self.next = self._chat.after(self._row, self._messages, self._tools)

    def finish(self) -> Waiting[float | None]:
        """What the episode says that the rollout earned in the end."""
        return self._ask("finish", self._episode.finish)

    def finished(self, reward: float | None) -> Rollout:
        """The finished rollout, which earned `reward` in the end."""
        if reward is not None:
            self._rewards.append(self._finite(reward))
        last_action = max(
            place for place, said in enumerate(self._messages) if said["role"] == "assistant"
        )
        return Rollout(
            id=self.id,
            turns=tuple(self._turns),
            completion=self._completion,
            reward=sum(self._rewards) if self._rewards else None,
            stopped_by=self.stopped_by,
            messages=tuple(self._messages[: last_action + 1]),
            opening_length=self._opening_length,
            failed_calls=dict(self._failed_calls),
            mismatches=dict(self._mismatches),
        )

    def _count(self, step: Step) -> None:
        if step.reward is not None:
            self._rewards.append(self._finite(step.reward))
        self._failed_calls.update(step.failed_calls)
        self._failed_turns = self._failed_turns + 1 if step.failed_calls else 0

    def _finite(self, reward: float) -> float:
        try:
            finite = math.isfinite(reward)
        except (TypeError, OverflowError):
            finite = False
        if not finite:
            raise EpisodeError(f"{self.id}: the episode's reward is {reward!r}, no finite number")
        return float(reward)

    def _ask(self, what: str, call: Callable[[], T | Waiting[T]]) -> Waiting[T]:
        try:
            value = call()
            if isinstance(value, Generator):
                return cast(T, (yield from value))
            return value
        except MemogradError as error:
            raise EpisodeError(f"{self.id}: {error}") from error
        except RAISED_BY_USERS as error:
            raise EpisodeError(
                f"{self.id}: `{what}` of {type(self._episode).__name__} raised "
                f"{type(error).__name__}: {error}"
            ) from error
