"""`Episode` and `EpisodeTask`: what a multi-turn environment must offer to be trained on.

An *episode* is one attempt at a scenario: it opens a conversation, answers every action of the
policy with an observation, and says when it is over. It speaks text and chat messages; tokens are
the business of whoever runs it (`memograd.rollout.lockstep`). A *task* gives as many fresh episodes
of a scenario as a group has rollouts. `Limits` stop an episode that does not end by itself. Every
rollout ends with one of `STOP_REASONS`, which the metrics count, so that a policy that learns to
run into a limit is seen. `episode_metrics` and `prefill_metrics` say what a step's rollouts were
like, and what their prompts cost and would have cost without what earlier turns left in the layers.

Invariants: an episode is used once: `reset`, then `step` until `done` or until a limit stops it,
then `finish`, each call in that order; no limit cuts an action short, since a turn begins only
where a whole action still fits; every rollout is counted under exactly one stop reason, and no
prompt token twice, so `prefilled_tokens` is the number of those that the model ran.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Protocol

from memograd.errors import BadInput, MemogradError
from memograd.rollout.async_calls import Waiting
from memograd.rollout.types import Message, Rollout, Scenario

ToolSchema = Mapping[str, Any]
"""A tool as chat templates take it: a function's name, description and JSON schema."""

STOP_REASONS = ("end", "length", "max_turns", "max_tokens", "time", "error")
"""The episode was over; an action was cut at `max_completion_length`; one of the `Limits`, in their
order: turns, tokens, seconds, turns with failed calls in a row."""


class EpisodeError(MemogradError):
    """An episode raised, or broke the protocol; the message names the rollout."""


@dataclass(frozen=True)
class Step:
    """What an action led to.

    `observation`: the messages that the policy sees next; must not be empty unless `done`.
    `reward`: earned by this action, None if none is given here. `failed_calls`: one kind
    (`"malformed"`, `"unknown_tool"`, ...) for every tool call of the action that came to nothing.
    """

    observation: tuple[Message, ...] = ()
    reward: float | None = None
    done: bool = False
    failed_calls: tuple[str, ...] = ()


class Episode(Protocol):
    """One attempt at a scenario. Single use."""

    @property
    def tools(self) -> Sequence[ToolSchema]:
        """The tools that the chat template shows to the policy; none if empty."""
        ...

    def reset(self) -> Sequence[Message]:
        """The messages that the conversation opens with."""
        ...

    def step(self, action: str) -> Step | Waiting[Step]:
        """Take the text of one action, without its end token.

        A cut action is stepped like any other; the rollout ends with it. Where it has to wait for
        something outside, a `Waiting` lets the other episodes of the batch wait at the same time.
        """
        ...

    def finish(self) -> float | Waiting[float | None] | None:
        """Called once when the rollout is over, for whatever reason; what it earned beside the
        rewards of its steps, None if nothing is given here. It may wait as `step` may."""
        ...


class EpisodeTask(Protocol):
    """Gives fresh episodes."""

    def episodes(self, scenario: Scenario, count: int) -> Sequence[Episode]:
        """`count` episodes of `scenario` that all begin in the same state."""
        ...


@dataclass(frozen=True)
class Limits:
    """What one rollout may use.

    `max_turns` actions. `max_tokens` in the longest row that the model sees: prompt, actions and
    observations. `max_seconds` of wall time since the rollouts of the batch began, looked at
    between turns; a run with this limit is not repeatable to the bit. `max_failed_turns` in a row
    whose tool calls failed. None: no limit.
    """

    max_turns: int = 8
    max_tokens: int | None = None
    max_seconds: float | None = None
    max_failed_turns: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_turns", "max_tokens", "max_seconds", "max_failed_turns"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise BadInput(f"{name}={value} would stop every rollout; give a positive number")

    def within(self, tokens: int) -> Limits:
        """The same, with rows of at most `tokens` tokens."""
        return replace(self, max_tokens=min(tokens, self.max_tokens or tokens))

    def after_turn(self, *, turns: int, failed_turns: int) -> str | None:
        """Why no further turn follows this one, if none does."""
        if turns >= self.max_turns:
            return "max_turns"
        if self.max_failed_turns is not None and failed_turns >= self.max_failed_turns:
            return "error"
        return None

    def before_turn(self, *, seconds: float, row_tokens: int, action_tokens: int) -> str | None:
        """Why a turn on a row of `row_tokens` may not begin, if it may not.

        `action_tokens`: the longest action that could be drawn.
        """
        if self.max_tokens is not None and row_tokens + action_tokens > self.max_tokens:
            return "max_tokens"
        if self.max_seconds is not None and seconds >= self.max_seconds:
            return "time"
        return None


def episode_metrics(rollouts: Sequence[Rollout]) -> dict[str, Any]:
    """What a step's rollouts of several turns were like, for one line of `metrics.jsonl`.

    `stop_reasons`: how many rollouts ended for each reason. `turns_mean`, `rows_mean`: a rollout's
    turns and token rows. `observation_tokens`: tokens between actions. `failed_calls`,
    `mismatches`: counts by kind.
    """
    between = [
        len(turn.observation_ids)
        for rollout in rollouts
        for turn in rollout.turns
        if not turn.starts_row
    ]
    rows = [sum(turn.starts_row for turn in rollout.turns) for rollout in rollouts]
    reasons = Counter(rollout.stop_reason for rollout in rollouts)
    return {
        "stop_reasons": {reason: reasons[reason] for reason in STOP_REASONS},
        "turns_mean": fmean(len(rollout.turns) for rollout in rollouts),
        "rows_mean": fmean(rows),
        "observation_tokens": sum(between),
        "failed_calls": _total([rollout.failed_calls for rollout in rollouts]),
        "mismatches": _total([rollout.mismatches for rollout in rollouts]),
    }


def prefill_metrics(rollouts: Sequence[Rollout]) -> dict[str, int]:
    """Three counts for one line of `metrics.jsonl`.

    `prefilled_tokens`: prompt tokens that were run. `prefilled_tokens_anew`: as many as it would
    have been, had each turn's prompt been run whole (the first one of a group once).
    `turns_prefilled_anew`: turns that went on from the turn before, of which less was at hand than
    there had been, for want of room.
    """
    run = anew = turns_anew = 0
    for rollout in rollouts:
        length = 0
        for place, turn in enumerate(rollout.turns):
            length = len(turn.observation_ids) + (0 if turn.starts_row else length)
            run += length - turn.reused_tokens
            anew += length if place else length - turn.reused_tokens
            # All but the observation and the last action token, which was drawn and never run.
            at_hand = length - len(turn.observation_ids) - 1
            turns_anew += not turn.starts_row and turn.reused_tokens < at_hand
            length += len(turn.action_ids)
    return {
        "prefilled_tokens": run,
        "prefilled_tokens_anew": anew,
        "turns_prefilled_anew": turns_anew,
    }


def _total(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(sorted(total.items()))
