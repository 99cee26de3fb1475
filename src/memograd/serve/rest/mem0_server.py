"""The routes of mem0's own server, with what is ours beside them as further fields.

Lists come in pages (`limit`, `cursor`); `Idempotency-Key` names a call that adds, so that it can be
made again after a lost answer. Invariant: what mem0's server answers is part of what is answered.
"""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter

from memograd.memory.records.scope import SCOPE_FIELDS
from memograd.serve.rest.bodies import ItemChange, Listing, NewMemories, Search
from memograd.serve.rest.door import (
    PAGE,
    Door,
    IdempotencyKey,
    Limit,
    add_in_turn,
    listed,
    router,
    told,
)
from memograd.serve.served import Served

EntityType = Literal["user", "agent", "run"]


def routes(served: Served) -> APIRouter:
    """`/memories`, `/search`, `/reset`, `/entities`."""
    api = router("memories")

    @api.post("/memories")
    async def add(asked: NewMemories, memory: Door, idempotency_key: IdempotencyKey = None) -> Any:
        """Remember what matters in a text or in chat messages."""
        return await add_in_turn(served, memory, asked, idempotency_key)

    @api.get("/memories")
    def get_all(
        memory: Door,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: str | None = None,
        show_expired: bool = False,
        limit: Limit = PAGE,
        cursor: str | None = None,
    ) -> Any:
        """All memories of somebody, in the order they were learnt."""
        asked = Listing(
            user_id=user_id,
            agent_id=agent_id,
            run_id=run_id,
            as_of=as_of,
            show_expired=show_expired,
        )
        return told(listed(memory, asked, cursor=cursor, limit=limit))

    @api.delete("/memories")
    def delete_all(
        memory: Door,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> Any:
        """Forget all memories of somebody; their history stays."""
        return memory.delete_all(ids={"user_id": user_id, "agent_id": agent_id, "run_id": run_id})

    @api.get("/memories/{memory_id}")
    def get(memory_id: str, memory: Door) -> Any:
        """One memory."""
        return told(memory.get(memory_id))

    @api.put("/memories/{memory_id}")
    def update(memory_id: str, asked: ItemChange, memory: Door) -> Any:
        """Let a memory say something else from now on, or give it other metadata."""
        item = memory.update(memory_id, asked.new_text(), asked.metadata, **asked.ends())
        return {"message": "Memory updated successfully!", **item}

    @api.delete("/memories/{memory_id}")
    def delete(memory_id: str, memory: Door) -> Any:
        """Forget a memory; its history stays."""
        return memory.delete(memory_id)

    @api.get("/memories/{memory_id}/history")
    def history(memory_id: str, memory: Door) -> Any:
        """Everything that happened to a memory, oldest first."""
        return memory.history(memory_id)

    @api.post("/search")
    def search(asked: Search, memory: Door) -> Any:
        """The memories that answer a query best; `explain` says of each why it was found."""
        ids, filters = asked.ids(), asked.conditions()
        found = memory.search(asked.query, ids=ids, filters=filters, **asked.given())
        return told(asked.shown(found))

    @api.post("/reset")
    def reset(memory: Door) -> Any:
        """Erase everything for good: of everybody by an admin key, else of the key's owner."""
        return {"message": "All memories reset", **memory.reset()}

    @api.get("/entities")
    def entities(memory: Door) -> Any:
        """Users, agents and runs with how many memories they have."""
        return memory.counts()

    @api.delete("/entities/{entity_type}/{entity_id:path}")
    def delete_entity(entity_type: EntityType, entity_id: str, memory: Door) -> Any:
        """Forget all memories of a user, an agent or a run; their history stays."""
        ids = dict.fromkeys(SCOPE_FIELDS) | {f"{entity_type}_id": entity_id}
        return {**memory.delete_all(ids=ids), "message": "Entity deleted"}

    return api
