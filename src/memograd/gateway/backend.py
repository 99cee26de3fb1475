"""What answers behind the gateway: the local policy, or another server.

A backend takes a request apart in `prepare`, where whatever is wrong with it is refused before an
answer begins, and answers in `run`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from memograd.gateway.conversation import TracedConversation
from memograd.gateway.protocol import ChatRequest
from memograd.gateway.records import CallRecord, Choice

OnText = Callable[[int, str], None]
"""Told the number of a choice and more of its text; called in the event loop."""


@dataclass(frozen=True)
class BackendAnswer:
    """What a backend gives for one request.

    `token_texts[i]` and `tops[i]` are for the log-probabilities that the agent asked for: the text
    that each token adds, and its alternatives as (text, log-probability).
    """

    choices: tuple[Choice, ...]
    model: str
    prompt_tokens: int
    completion_tokens: int
    sampling: dict[str, Any]
    prompt_ids: tuple[int, ...] | None = None
    logprobs_temperature: float | None = None
    mismatch: str | None = None
    token_texts: tuple[list[str], ...] = ()
    tops: tuple[list[list[tuple[str, float]]], ...] = ()


class Prepared(Protocol):
    """A request that was understood."""

    async def run(self, seed: int, on_text: OnText | None = None) -> BackendAnswer:
        """Answer it; `seed` is for one that names none. Raises `CallRefused` or `MemogradError`.
        Cancelling frees what it uses."""
        ...


class Backend(Protocol):
    """Something that answers chats."""

    model: str
    """Its name, as `/v1/models` says it."""

    @property
    def policy_version(self) -> int:
        """How often the weights behind it have changed."""
        ...

    def prepare(self, request: ChatRequest, conversation: TracedConversation) -> Prepared:
        """Check a request. Raises `CallRefused` or `BadInput`."""
        ...

    def recall(self, call: CallRecord, conversation: TracedConversation) -> None:
        """Let later calls of the rollout go on from this one."""
        ...

    def close(self) -> None:
        """Free what it holds."""
        ...
