"""What is written down of an agent's work: a rollout, its calls, the choices of a call.

A *rollout* is one attempt of an agent, as everywhere in memograd; a *call* is one request that the
agent made of the model; a *choice* is one of the answers it got. Invariant: a record that is stored
comes back equal, log-probabilities to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from memograd.rollout.types import TokenMasks

VALID_TRANSITIONS: Final[Mapping[str, frozenset[str]]] = {
    "open": frozenset({"running", "rewarded", "failed", "timed_out"}),
    "running": frozenset({"rewarded", "finished", "failed", "timed_out"}),
    "rewarded": frozenset(),
    "finished": frozenset(),
    "failed": frozenset(),
    "timed_out": frozenset(),
}
"""The life of a rollout: made, called for the first time, and one of four ends. It is `rewarded`
once and with a finite number; `finished` is one whose reward is computed from its trace, with what
cut it short, if anything did, in `error`; `failed` says why in `error`; `timed_out` is one whose
deadline has passed, or of which nothing was heard for too long."""

STATES: Final = tuple(VALID_TRANSITIONS)
LIVE: Final = frozenset(state for state, following in VALID_TRANSITIONS.items() if following)
"""States in which calls are taken."""


@dataclass(frozen=True)
class RolloutRecord:
    """One attempt of an agent. Times are seconds since 1970; `calls` counts those begun."""

    id: str
    state: str
    metadata: Mapping[str, Any]
    policy_version: int
    seed: int
    created_at: float
    updated_at: float
    deadline: float | None
    calls: int = 0
    reward: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class Choice:
    """One answer. `token_ids` and `logprobs` are None where the backend gave none.

    `allowed` are the tokens that each could have been, where the answer was held to a grammar; the
    log-probabilities are then those of the distribution over these. None: it was not.
    `text` is what the agent read, `tool_calls` in OpenAI's form; `finish_reason` is `stop`,
    `length` or `tool_calls`, or what another server calls it.
    """

    text: str
    finish_reason: str
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    allowed: TokenMasks | None = None


@dataclass(frozen=True)
class CallRecord:
    """One request and its choices.

    `number` counts the rollout's calls in the order they began, from 0. `sampling` holds what the
    choices were drawn with (`temperature`, `top_p`, `seed`, `max_tokens`, `stop`, `n`);
    `asked` what else its reader needs of the request: `api` (chat, responses or completions),
    `instructions` where the first message is this request's own and no part of the conversation,
    `request` what a response repeats, `deleted` where the agent deleted its response;
    `logprobs_temperature` is the temperature of the distribution that the log-probabilities are of.
    `mismatch` says how the conversation differed from the tokens held of the calls before it
    (`memograd.rollout.chat_ids.MISMATCHES`), None where it did not. `latency` is in seconds.
    """

    rollout_id: str
    number: int
    agent: str
    model: str
    policy_version: int
    messages: tuple[Mapping[str, Any], ...]
    choices: tuple[Choice, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict)
    prompt_ids: tuple[int, ...] | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    logprobs_temperature: float | None = None
    mismatch: str | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)
    began_at: float = 0.0
    latency: float = 0.0
