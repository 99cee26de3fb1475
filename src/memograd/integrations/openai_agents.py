"""A `Session` of openai-agents over a memory: `Runner.run(..., session=MemorySession(...))`.

The conversation's items are documents of the run `session_id`. With `user_id` that user's memory
also learns from what is said, as `Memory.add` does. Invariant: beside `SQLiteSession`, the same
calls give the same items.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from agents import SessionSettings, TResponseInputItem

from memograd.integrations.shelf import Document, Name, NewDocument, Shelf
from memograd.memory import Memory
from memograd.memory.records.scope import Scope

SHELF: Final = "openai-agents"
SPEAKERS: Final = frozenset({"user", "assistant"})


class MemorySession:
    """One conversation's history."""

    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        memory: Memory,
        *,
        user_id: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        """user_id: whose memory learns from the conversation; None: it is kept and nothing more."""
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._memory, self._user_id = memory, user_id
        self._shelf = Shelf(memory, Scope(run_id=session_id), SHELF)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest `limit` items (the settings' limit, else all), oldest first."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        known = await asyncio.to_thread(self._shelf.documents)
        values = [known[name].value for name in sorted(known, key=_place)]
        if limit is not None and limit >= 0:
            values = values[len(values) - min(limit, len(values)) :]
        return cast("list[TResponseInputItem]", values)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items behind the others, all of them or none."""
        if not items:
            return
        values: list[dict[str, Any]] = json.loads(json.dumps(items))
        await asyncio.to_thread(self._add, values)

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item away; None if there is none."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Take all items away. What a user's memory has learnt stays."""
        await asyncio.to_thread(self._shelf.change, lambda known: dict.fromkeys(known))

    def _add(self, values: Sequence[Mapping[str, Any]]) -> None:
        def behind(known: Mapping[Name, Document]) -> dict[Name, NewDocument]:
            first = 1 + max(map(_place, known), default=0)
            return {
                (str(place),): NewDocument(value, _text(value), {})
                for place, value in enumerate(values, start=first)
            }

        self._shelf.change(behind)
        said = [
            {"role": value["role"], "content": _text(value)}
            for value in values
            if value.get("role") in SPEAKERS and _text(value).strip()
        ]
        if self._user_id is not None and said:
            self._memory.add(said, user_id=self._user_id)

    def _pop(self) -> TResponseInputItem | None:
        popped: list[Any] = []

        def newest(known: Mapping[Name, Document]) -> dict[Name, None]:
            name = max(known, key=_place, default=None)
            popped[:] = [] if name is None else [known[name].value]
            return {} if name is None else {name: None}

        self._shelf.change(newest)
        return cast("TResponseInputItem", popped[0]) if popped else None


def _place(name: Name) -> int:
    return int(name[0])


def _text(value: Mapping[str, Any]) -> str:
    """What an item says, without its wrapping."""
    content = value.get("content") or value.get("output") or value.get("arguments") or ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):  # one part, such as a screenshot, or no text at all
        content = [content]
    parts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return "\n".join(part for part in parts if isinstance(part, str))
