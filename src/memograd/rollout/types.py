"""The nouns of training: `Scenario`, `Turn`, `Rollout`, `Group`.

A *scenario* is one training problem. A *turn* is one observation and one action with its
log-probabilities. A *rollout* is the turns of one attempt. A *group* is the G
rollouts that are compared with each other, because they began in the same state.

Invariant: an action is stored as the token ids that the model emitted, with the log-probability
that the sampler gave each of them. Text is derived from ids, never the other way round (tokens in,
tokens out). Tested in `tests/rollout/test_types.py`. May import numpy only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np


class Message(TypedDict):
    """One chat message, in the form that chat templates take."""

    role: str
    content: str


@dataclass(frozen=True)
class Scenario:
    """One training problem: the chat messages the policy sees, and what rewards may look at.

    `columns` are the free columns of the field's reward signature (`answer`, `category`, ...).
    """

    id: str
    messages: tuple[Message, ...]
    columns: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """One observation and one action.

    `observation_ids` and `action_ids` are token ids; `logprobs` [len(action_ids)] are natural logs
    under the distribution that was sampled from (temperature included). `stop_reason` is `"end"`
    (the end token is the last action id) or `"length"` (cut at the limit).
    """

    observation_ids: tuple[int, ...]
    action_ids: tuple[int, ...]
    logprobs: np.ndarray
    stop_reason: str

    def __post_init__(self) -> None:
        if self.logprobs.shape != (len(self.action_ids),):
            raise ValueError(
                f"a turn of {len(self.action_ids)} action tokens has log-probabilities of shape "
                f"{self.logprobs.shape}"
            )


@dataclass(frozen=True)
class Rollout:
    """The turns of one attempt, and the text of its last action as a reward function reads it."""

    id: str
    turns: tuple[Turn, ...]
    completion: str

    @property
    def tokens(self) -> int:
        """Number of action tokens, the ones that training sees."""
        return sum(len(turn.action_ids) for turn in self.turns)


@dataclass(frozen=True)
class Group:
    """G rollouts of one scenario that began in the same state."""

    scenario: Scenario
    rollouts: tuple[Rollout, ...]
