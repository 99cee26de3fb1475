"""A `BaseMemoryService` of Google's ADK over a memory: `Runner(..., memory_service=...)`.

What a user says in a session is added under the user and the application: `user_id`, and `app_name`
as `agent_id`. Each event is one named call of `Memory.add`, so **a session that is added again adds
nothing again**, and what was deleted since does not come back. What the model said is heard too,
but only what people say in their own words becomes a fact about them. Events without text (calls of
tools, pictures) are left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from memograd.memory import Memory
from memograd.memory.records.scope import Scope
from memograd.memory.write.calls import NameTaken

USER: Final = "user"


class MemoryService(BaseMemoryService):
    """The memories of all users of ADK applications; each call sees one user of one application."""

    def __init__(self, memory: Memory, *, infer: bool = True, top_k: int = 10) -> None:
        """infer: keep the facts that are read from what is said; False keeps every event's words.

        top_k: how many memories a search gives at most.
        """
        self._memory, self._infer, self._top_k = memory, infer, top_k

    async def add_session_to_memory(self, session: Session) -> None:
        """Add the events of a session that were not added before."""
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add the events that were not added before; custom_metadata goes to what they add."""
        for event in events:
            text = _text(event.content)
            if not text.strip():
                continue
            role = USER if event.author == USER else "assistant"
            await self._add_once(
                [{"role": role, "content": text}],
                user_id=user_id,
                agent_id=app_name,
                metadata={
                    **(custom_metadata or {}),
                    "author": event.author,
                    "session_id": session_id,
                },
                infer=self._infer,
                timestamp=event.timestamp,
                request_id=_call(app_name, session_id, event.id),
            )

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add memories word for word; one with an id is added once."""
        for entry in memories:
            text = _text(entry.content)
            if not text.strip():
                continue
            await self._add_once(
                text,
                user_id=user_id,
                agent_id=app_name,
                metadata={
                    **entry.custom_metadata,
                    **(custom_metadata or {}),
                    "author": entry.author,
                },
                infer=False,
                timestamp=entry.timestamp,
                request_id=None if entry.id is None else _call(app_name, None, entry.id),
            )

    async def _add_once(self, said: Any, **given: Any) -> None:
        """Add what was not added before under its name, whatever comes with it now."""
        with contextlib.suppress(NameTaken):
            await asyncio.to_thread(self._memory.add, said, **given)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """The memories that answer the query best, best first."""
        found = await asyncio.to_thread(
            self._memory.search, query, user_id=user_id, agent_id=app_name, top_k=self._top_k
        )
        return SearchMemoryResponse(memories=[_entry(hit) for hit in found["results"]])

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Forget a memory that `search_memory` found; an id of nobody's or of others does nothing.

        Its history stays: `Memory.purge` erases it for good.
        """
        if memory_id:
            await asyncio.to_thread(self._delete, Scope(user_id, app_name), memory_id)

    def _delete(self, scope: Scope, memory_id: str) -> None:
        item = self._memory.store.item(memory_id)
        if item is not None and scope.ids().items() <= item.scope.ids().items():
            self._memory.delete(memory_id)


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content is not None else None) or []
    return " ".join(part.text for part in parts if part.text and not part.thought)


def _call(app_name: str, session_id: str | None, event_id: str) -> str:
    """The name of the call that adds an event: of a fixed length, whatever the ids are."""
    whole = json.dumps([app_name, session_id, event_id])
    return f"google-adk:{hashlib.sha256(whole.encode()).hexdigest()}"


def _entry(hit: Mapping[str, Any]) -> MemoryEntry:
    labels = dict(hit["metadata"] or {})
    author = labels.pop("author", None)
    role = USER if author == USER else "model"
    since = hit["valid_from"] or hit["created_at"]
    return MemoryEntry(
        content=types.Content(role=role, parts=[types.Part(text=hit["memory"])]),
        custom_metadata=labels,
        id=hit["id"],
        author=author,
        # The form in which ADK's own services tell a time to the model: this machine's.
        timestamp=datetime.fromisoformat(since).astimezone().replace(tzinfo=None).isoformat(),
    )
