"""The nouns of training: `Scenario`, `Turn`, `Rollout`, `Group`.

A *scenario* is one training problem. A *turn* is one observation and one action with its
log-probabilities. A *rollout* is the turns of one attempt. A *group* is the G
rollouts that are compared with each other, because they began in the same state.

Invariant: an action is stored as the token ids that the model emitted, with the log-probability
that the sampler gave each of them. Text is derived from ids, never the other way round (tokens in,
tokens out).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

import numpy as np

from memograd.rollout.allowed_tokens import TokenMasks
from memograd.rollout.versions import VersionSpan


class Message(TypedDict):
    """One chat message, in the form that chat templates take; `name` is a tool's, in its result."""

    role: str
    content: str
    name: NotRequired[str]


@dataclass(frozen=True)
class Scenario:
    """One training problem: the chat messages the policy sees, and what rewards may look at.

    `columns` are the free columns of the field's reward signature (`answer`, `category`, ...).
    `text` is for a prompt that the policy continues as it stands, without a chat template; there
    are no `messages` then.
    """

    id: str
    messages: tuple[Message, ...]
    columns: Mapping[str, object] = field(default_factory=dict)
    text: str | None = None

    @property
    def prompt(self) -> str | list[Message]:
        """What the policy encodes and rewards read: the text, or else the chat."""
        return list(self.messages) if self.text is None else self.text


@dataclass(frozen=True)
class Turn:
    """One observation and one action.

    `observation_ids` and `action_ids` are token ids; `logprobs` [len(action_ids)] are natural logs
    under the distribution that was sampled from (temperature included). `stop_reason` is `"end"`
    (the last action id is the end token, or completes a text that ends an answer) or `"length"`
    (cut at the limit). The turn continues the token row of the turn before it, so that its
    observation is only what is new, unless it `starts_row`: then the observation is everything that
    the model saw. Of what it saw before the action, the first `reused_tokens` were not run for this
    turn, because an earlier turn, or another rollout of the group, had. `allowed` are the tokens
    that each action token could have been, where it was held to a grammar; empty: it was not, and
    the distribution is the policy's own. `versions` are the spans of the versions that drew the
    action (`memograd.rollout.versions`); empty: the weights that learn from it did.
    """

    observation_ids: tuple[int, ...]
    action_ids: tuple[int, ...]
    logprobs: np.ndarray
    stop_reason: str
    starts_row: bool = True
    reused_tokens: int = 0
    allowed: TokenMasks = ()
    versions: tuple[VersionSpan, ...] = ()

    def __post_init__(self) -> None:
        if self.logprobs.shape != (len(self.action_ids),):
            raise ValueError(
                f"a turn of {len(self.action_ids)} action tokens has log-probabilities of shape "
                f"{self.logprobs.shape}"
            )
        if self.allowed and len(self.allowed) != len(self.action_ids):
            raise ValueError(
                f"a turn of {len(self.action_ids)} action tokens says of {len(self.allowed)} what "
                "was allowed"
            )
        if self.versions and sum(span.tokens for span in self.versions) != len(self.action_ids):
            raise ValueError(
                f"a turn of {len(self.action_ids)} action tokens has versions of "
                f"{sum(span.tokens for span in self.versions)}"
            )


@dataclass(frozen=True)
class Rollout:
    """The turns of one attempt, and the text of its last action as a reward function reads it.

    What only an episode of several turns has: `reward`, the episode's own, None if it gives none;
    `stopped_by`, where that was not the last action's end or length (`memograd.rollout.limits`);
    `messages`, the conversation from the first observation to the last action, of which the first
    `opening_length` were there before the policy said anything; and how often
    something went wrong, by kind: `failed_calls` of tools, `mismatches` between the tokens held and
    the conversation as the chat template writes it.
    """

    id: str
    turns: tuple[Turn, ...]
    completion: str
    reward: float | None = None
    stopped_by: str | None = None
    messages: tuple[Message, ...] = ()
    opening_length: int = 0
    failed_calls: Mapping[str, int] = field(default_factory=dict)
    mismatches: Mapping[str, int] = field(default_factory=dict)

    @property
    def stop_reason(self) -> str:
        """Why the rollout ended; one of `memograd.rollout.limits.STOP_REASONS`."""
        return self.stopped_by or self.turns[-1].stop_reason

    @property
    def opening(self) -> tuple[Message, ...]:
        """The messages that the policy was shown before its first action."""
        return self.messages[: self.opening_length]

    @property
    def attempt(self) -> tuple[Message, ...]:
        """The messages from the first action to the last."""
        return self.messages[self.opening_length :]

    @property
    def tokens(self) -> int:
        """Number of action tokens, the ones that training sees."""
        return sum(len(turn.action_ids) for turn in self.turns)


@dataclass(frozen=True)
class Group:
    """G rollouts of one scenario that began in the same state."""

    scenario: Scenario
    rollouts: tuple[Rollout, ...]
