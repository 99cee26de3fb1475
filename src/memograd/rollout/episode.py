"""`Episode` and `EpisodeTask`: what a multi-turn environment must offer to be trained on.

An *episode* is one attempt at a scenario: it opens a conversation, answers every action of the
policy with an observation, and says when it is over. It speaks text and chat messages; tokens are
the business of whoever runs it (`memograd.rollout.lockstep`). A *task* gives as many fresh episodes
of a scenario as a group has rollouts.

Invariant: an episode is used once: `reset`, then `step` until `done` or until a limit stops it,
then `finish`, each call in that order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memograd.errors import MemogradError
from memograd.rollout.async_calls import Waiting
from memograd.rollout.types import Message, Scenario

ToolSchema = Mapping[str, Any]
"""A tool as chat templates take it: a function's name, description and JSON schema."""


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
