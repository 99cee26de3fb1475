"""The nouns of training: `Scenario`, `Turn`, `Rollout`, `Group`.

A *scenario* is one training problem. A *turn* is one observation and one action with its
log-probabilities. A *rollout* is the turns of one attempt. A *group* is the G
rollouts that are compared with each other, because they began in the same state.

A *version* is a number that training gives to the weights: how many steps they have learnt. A
server may exchange the weights while a turn is drawn, so a turn carries *spans*: so many tokens
under this version, then so many under that one. Of an answer that was held to a grammar, a turn
also keeps which tokens were allowed, one mask a token (None where everything was), since its
log-probabilities are those of the distribution over these alone; so learning needs neither the
grammar nor the library that read it. How often prompts are answered (`num_generations`) is one
number for all of them, or each its own.

Invariants: an action is stored as the token ids that the model emitted, with the log-probability
that the sampler gave each of them; text is derived from ids, never the other way round (tokens in,
tokens out). The spans of a turn have as many tokens as the turn, or there are none, and then the
weights that are about to learn drew it. `unpacked(packed(masks)) == masks`; `each` undoes
`one_or_each`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NotRequired, TypeAlias, TypedDict, TypeVar, cast

import numpy as np

T = TypeVar("T")

UNSAID = -1
"""In arrays of versions: the weights that are about to learn drew the token, or nobody did."""

TokenMask: TypeAlias = bytes
"""Bit `id` (the least significant first) says whether that token could be drawn."""

TokenMasks: TypeAlias = tuple[TokenMask | None, ...]
"""Of the tokens of an answer, in order; None: all."""


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
    action (`memograd.rollout.types`); empty: the weights that learn from it did.
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
    `stopped_by`, where that was not the last action's end or length (`memograd.rollout.episode`);
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
        """Why the rollout ended; one of `memograd.rollout.episode.STOP_REASONS`."""
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


@dataclass(frozen=True)
class VersionSpan:
    """`tokens` neighbouring tokens that one version drew."""

    version: int
    tokens: int


def one_span(version: int, tokens: int) -> tuple[VersionSpan, ...]:
    """The spans of `tokens` tokens that one version drew; none of none."""
    return (VersionSpan(version, tokens),) if tokens else ()


def spans_of(versions: Sequence[int]) -> tuple[VersionSpan, ...]:
    """The spans of tokens of these versions, one for each token."""
    spans: list[VersionSpan] = []
    for version in versions:
        if spans and spans[-1].version == version:
            spans[-1] = VersionSpan(version, spans[-1].tokens + 1)
        else:
            spans.append(VersionSpan(version, 1))
    return tuple(spans)


def versions_of(spans: Sequence[VersionSpan], tokens: int) -> np.ndarray:
    """The version of each of `tokens` tokens [C] int64; `UNSAID` where there are no spans.

    Raises `ValueError` if the spans have another number of tokens.
    """
    if not spans:
        return np.full(tokens, UNSAID, dtype=np.int64)
    if sum(span.tokens for span in spans) != tokens:
        raise ValueError(f"spans {spans} are not of {tokens} tokens")
    return np.repeat(
        np.array([span.version for span in spans], dtype=np.int64),
        [span.tokens for span in spans],
    )


def packed(masks: Sequence[TokenMask | None]) -> bytes:
    """A short form: an answer has many equal masks, and masks have many equal bytes."""
    distinct = list(dict.fromkeys(mask for mask in masks if mask is not None))
    place = {mask: number for number, mask in enumerate(distinct)}
    which = [-1 if mask is None else place[mask] for mask in masks]
    head = np.asarray([len(which), len(distinct), *which], dtype="<i4").tobytes()
    return zlib.compress(head + b"".join(distinct))


def unpacked(data: bytes) -> TokenMasks:
    """The masks that `data` was made of."""
    plain = zlib.decompress(data)
    count, kinds = np.frombuffer(plain[:8], dtype="<i4").tolist()
    which = np.frombuffer(plain[8 : 8 + 4 * count], dtype="<i4").tolist()
    body = plain[8 + 4 * count :]
    size = len(body) // kinds if kinds else 0
    distinct = [body[size * number : size * (number + 1)] for number in range(kinds)]
    return tuple(None if number < 0 else distinct[number] for number in which)


def own_copy(value: T) -> T:
    """`value` with the lists and dictionaries in it copied all the way down: whoever edits them
    changes nobody else's. The rest is as it was."""
    held: Any = value
    if type(held) is dict:
        held = {name: own_copy(one) for name, one in held.items()}
    elif type(held) is list or type(held) is tuple:
        held = type(held)(own_copy(one) for one in held)
    return cast(T, held)


def is_finite_number(value: object) -> bool:
    """Whether it can be a reward: neither NaN nor infinite, nor a whole number that no float holds,
    nor anything that is no number."""
    try:
        return isinstance(value, Real) and math.isfinite(value)
    except OverflowError:
        return False


def one_or_each(counts: Sequence[int]) -> int | list[int]:
    """The one number that all `counts` are, or the counts; what a policy's `sample` takes.

    A policy that knows one number only can so be trained with groups of one size.
    """
    return counts[0] if len(set(counts)) == 1 else list(counts)


def each(num_generations: int | Sequence[int], prompts: int) -> list[int]:
    """How often each of so many `prompts` is answered.

    Raises `ValueError` if the numbers are not as many as the prompts.
    """
    if isinstance(num_generations, int):
        return [num_generations] * prompts
    if len(num_generations) != prompts:
        raise ValueError(f"{len(num_generations)} counts were given for {prompts} prompts")
    return list(num_generations)
