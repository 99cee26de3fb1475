"""A `ContextProvider` of Microsoft's agent framework: `Agent(..., context_providers=[...])`.

Before a run the provider adds what one owner's memory knows about the message; after it, the
memory learns from what was said. Invariants: **the model sees what is remembered marked as data**,
as a message of its own; what other providers added to a run (recalled memories too) is not heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from agent_framework import AgentSession, ContextProvider, Message, SessionContext, SupportsAgentRun

from memograd.memory import Memory
from memograd.memory.records.scope import Scope
from memograd.memory.search.context import marked

SPEAKERS: Final = frozenset({"user", "assistant"})


class MemoryContextProvider(ContextProvider):
    """One owner's memory, recalled and taught by an agent's runs."""

    def __init__(
        self,
        memory: Memory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        token_budget: int = 1_000,
        source_id: str = "memograd",
    ) -> None:
        """The ids: whose memory it is. token_budget: what may be recalled, without the marks."""
        super().__init__(source_id)
        self._memory = memory
        self._ids: dict[str, Any] = dict(Scope(user_id, agent_id, run_id).ids())
        self._token_budget = token_budget

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Add what is remembered about the newest message of the user, if anything is."""
        asked = [
            said["content"] for said in _said(context.input_messages) if said["role"] == "user"
        ]
        if not asked:
            return
        known = await asyncio.to_thread(
            self._memory.context, asked[-1], **self._ids, token_budget=self._token_budget
        )
        if known.text:
            context.extend_messages(self, [Message("user", [marked(known.text.splitlines())])])

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Learn from the run's input and its answer."""
        answer = context.response.messages if context.response is not None else []
        said = [*_said(context.input_messages), *_said(answer)]
        if said:
            await asyncio.to_thread(self._memory.add, said, **self._ids)


def _said(messages: Iterable[Message]) -> list[dict[str, str]]:
    """What people and models said, without calls of tools and their results."""
    return [
        {"role": str(message.role), "content": message.text}
        for message in messages
        if message.role in SPEAKERS and message.text.strip()
    ]
