"""A chat model that decides by prompt, as memories without training do it: slow, and it may fail.

The prompt is that of the running memory's `ChatManager`: the new fact, the related items under
small numbers, and the four operations, as JSON. What is written is the statement itself, also where
the model words it otherwise, so that all methods are compared on which operation they choose.

Invariant: a decision that could not be had changes nothing and is counted as a failure, never taken
for a NONE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memograd.errors import BadInput, MemogradError
from memograd.memory.chat.chat_model import ChatMessage, ChatModel
from memograd.memory.manager import ChatManager
from memograd.memory.manager.trained.observation import NONE
from memograd.tasks.memory_ops.baselines.deciders import ByManager
from memograd.tasks.memory_ops.walk import Walk


class CountedChat:
    """Passes chats on and counts them. with_schema: whether the model can be held to JSON."""

    def __init__(self, chat: ChatModel, *, with_schema: bool = True) -> None:
        self._chat, self._with_schema = chat, with_schema
        self.name = chat.name
        self.calls = 0

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        schema: Mapping[str, Any] | None = None,
    ) -> str:
        """As of `ChatModel`."""
        self.calls += 1
        return self._chat.complete(
            messages,
            max_tokens=max_tokens,
            temperature=temperature,
            schema=schema if self._with_schema else None,
        )


class ByChat(ByManager):
    """Asks a chat model; the oldest items leave first.

    with_schema: see `CountedChat`; without, the prompt alone asks for JSON. Raises BadInput when
    the model cannot be asked at all.
    """

    def __init__(self, chat: ChatModel, *, with_schema: bool = True) -> None:
        self._chat = CountedChat(chat, with_schema=with_schema)
        super().__init__(ChatManager(self._chat))

    @property
    def calls(self) -> int:  # type: ignore[override]
        """Questions to the model so far; an answer that cannot be used is asked for again."""
        return self._chat.calls

    def decide(self, walk: Walk) -> int:
        """What the model says; nothing where it fails."""
        try:
            return super().decide(walk)
        except BadInput:
            raise
        except MemogradError as error:
            self.failures += 1
            self.failure = str(error)
            return NONE
