"""A memory block of LlamaIndex over a memory: `Memory.from_defaults(memory_blocks=[...])`.

LlamaIndex keeps the newest messages itself and hands the older ones, which no longer fit, to its
blocks: this one adds them to one owner's memory. Before each answer it gives what is remembered
about the user's last words. Invariant: **the model sees that marked as data**, also where
LlamaIndex has the block shortened.
"""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemoryBlock
from pydantic import PrivateAttr

from memograd.memory import Memory
from memograd.memory.language import estimate_tokens
from memograd.memory.records.scope import Scope
from memograd.memory.search.context import marked, shortened


class MemogradBlock(BaseMemoryBlock[str]):
    """What one owner's memory knows about what is being said."""

    _memory: Memory = PrivateAttr()
    _ids: dict[str, Any] = PrivateAttr()
    _token_budget: int = PrivateAttr()

    def __init__(
        self,
        memory: Memory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        token_budget: int = 1_000,
        name: str = "memory",
        **given: Any,
    ) -> None:
        """The ids: whose memory it is. token_budget: what may be recalled, without the marks.

        given: `description`, `priority` and `accept_short_term_memory`, as in any block.
        """
        super().__init__(name=name, **given)
        self._memory = memory
        self._ids = dict(Scope(user_id, agent_id, run_id).ids())
        self._token_budget = token_budget

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """As many whole lines as fit when so many tokens go, best first; None: not one."""
        left = estimate_tokens(content) - tokens_to_truncate
        return shortened(content, lambda text: estimate_tokens(text) <= left)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        """What is remembered about the newest message of the user; empty when nothing is."""
        asked = [one for one in messages or () if one.role == MessageRole.USER and one.content]
        if not asked:
            return ""
        context = await asyncio.to_thread(
            self._memory.context,
            asked[-1].content or "",
            **self._ids,
            token_budget=self._token_budget,
        )
        return marked(context.text.splitlines()) if context.text else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Learn from messages; only what the user says becomes a fact about the user."""
        said = [
            {"role": message.role.value, "content": message.content}
            for message in messages
            if (message.content or "").strip()
        ]
        if said:
            await asyncio.to_thread(self._memory.add, said, **self._ids)
