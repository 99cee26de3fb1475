"""mem0's routes: those of its own server, and those that its `MemoryClient(host=...)` calls.

The server's have what is ours beside them as further fields. Lists come in pages (`limit`,
`cursor`); `Idempotency-Key` names a call that adds, so that it can be made again after a lost
answer. The client's are paths of mem0's service, with their versions and last slash.

Invariants: what mem0's server answers is part of what is answered; the client of mem0ai 2.2 works
unchanged, sync and async (`test_mem0_client.py`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request

from memograd.errors import BadInput
from memograd.memory.records.scope import SCOPE_FIELDS
from memograd.memory.results import item_result
from memograd.serve.mem0_filters import in_an_address
from memograd.serve.refusals import NotOffered
from memograd.serve.rest.bodies import (
    Changes,
    ItemChange,
    ItemFeedback,
    Listing,
    NewMemories,
    Search,
    SeveralIds,
    at_most,
)
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
from memograd.serve.served import Asking, Served

EntityType = Literal["user", "agent", "run", "app"]
NO_APPS = "app_id is not offered: use agent_id."
FIRST_PAGE = 100
PROJECT = "memograd"


def server_routes(served: Served) -> APIRouter:
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

    @api.delete("/entities/{entity_type}/{entity_id:any_text}")
    def delete_entity(entity_type: EntityType, entity_id: str, memory: Door) -> Any:
        """Forget all memories of a user, an agent or a run; their history stays."""
        return {
            **memory.delete_all(ids=_all_of(entity_type, entity_id)),
            "message": "Entity deleted",
        }

    return api


def client_routes(served: Served) -> APIRouter:
    """`/v1/...`, `/v2/...`, `/v3/...`."""
    api = router("mem0 client")
    most = served.settings.limits.max_batch

    @api.get("/v1/ping/")
    async def ping(_: Asking) -> Any:
        """Whether the key is valid. There is one project, for the client wants to hear of one."""
        return {"status": "ok", "org_id": PROJECT, "project_id": PROJECT, "user_email": None}

    @api.post("/v3/memories/add/")
    async def add(asked: NewMemories, memory: Door, idempotency_key: IdempotencyKey = None) -> Any:
        """Remember what matters in chat messages."""
        return await add_in_turn(served, memory, asked, idempotency_key)

    @api.post("/v3/memories/search/")
    def search(asked: Search, memory: Door) -> Any:
        """The memories that answer a query best."""
        ids, filters = asked.ids(), asked.conditions()
        found = memory.search(asked.query, ids=ids, filters=filters, **asked.given())
        return told(asked.shown(found))

    @api.post("/v3/memories/")
    def get_all(
        request: Request,
        memory: Door,
        asked: Listing | None = None,
        page: Annotated[int, Query(ge=1, le=10**9)] = 1,
        page_size: Annotated[int, Query(ge=1, le=PAGE)] = FIRST_PAGE,
    ) -> Any:
        """A numbered page of what matches."""
        asked = asked or Listing()
        ids, filters = asked.ids(), asked.conditions()
        expired = bool(asked.show_expired)
        items = memory.items(ids=ids, filters=filters, as_of=asked.as_of, show_expired=expired)
        start = (page - 1) * page_size
        shown = items[start : start + page_size]
        memory.shown(shown, ids=ids, filters=filters)

        def at(number: int) -> str:
            return f"{request.url.path}?{urlencode({'page': number, 'page_size': page_size})}"

        return {
            "count": len(items),
            "next": at(page + 1) if start + page_size < len(items) else None,
            "previous": at(page - 1) if page > 1 else None,
            "results": [item_result(item) for item in shown],
        }

    @api.delete("/v1/memories/")
    def delete_all(
        memory: Door,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        filters: str | None = None,
    ) -> Any:
        """Forget all memories of somebody, or those that `filters`, a JSON object, lets through."""
        if app_id is not None:
            raise NotOffered(NO_APPS)
        ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        return memory.delete_all(
            ids=ids, filters=None if filters is None else in_an_address(filters)
        )

    @api.get("/v1/memories/{memory_id}/")
    def get(memory_id: str, memory: Door) -> Any:
        """One memory."""
        return told(memory.get(memory_id))

    @api.put("/v1/memories/{memory_id}/")
    def update(memory_id: str, asked: ItemChange, memory: Door) -> Any:
        """Let a memory say something else from now on, or give it other metadata."""
        return memory.update(memory_id, asked.new_text(), asked.metadata, **asked.ends())

    @api.delete("/v1/memories/{memory_id}/")
    def delete(memory_id: str, memory: Door, delete_linked: bool | None = None) -> Any:
        """Forget a memory, and with it what it said before: versions are one memory here, so
        `delete_linked` says nothing new."""
        return memory.delete(memory_id)

    @api.get("/v1/memories/{memory_id}/history/")
    def history(memory_id: str, memory: Door) -> Any:
        """Everything that happened to a memory, oldest first."""
        return memory.history(memory_id)

    @api.get("/v1/entities/")
    def entities(memory: Door) -> Any:
        """Users, agents and runs with how many memories they have."""
        found = memory.counts()
        return {"results": found, "count": len(found), "next": None, "previous": None}

    @api.delete("/v2/entities/{entity_type}/{name:any_text}/")
    def delete_entity(entity_type: EntityType, name: str, memory: Door) -> Any:
        """Forget all memories of a user, an agent or a run."""
        deleted = memory.delete_all(ids=_all_of(entity_type, name))
        return {**deleted, "message": "Entity deleted successfully!"}

    @api.put("/v1/batch/")
    def update_several(asked: Changes, memory: Door) -> Any:
        """Change several memories. All are looked up before the first is changed."""
        at_most(asked.memories, most, "memories")
        changes = [
            (one.memory_id, one.new_text(), one.metadata, one.ends()) for one in asked.memories
        ]
        for memory_id, text, metadata, ends in changes:
            if text is None and metadata is None and not ends:
                raise BadInput(f"The memory {memory_id!r} is given no text and no metadata.")
            memory.check(memory_id)
        for memory_id, text, metadata, ends in changes:
            memory.update(memory_id, text, metadata, **ends)
        return {"message": f"Successfully updated {len(changes)} memories"}

    @api.delete("/v1/batch/")
    def delete_several(asked: SeveralIds, memory: Door) -> Any:
        """Forget several memories. All are looked up before the first is forgotten."""
        at_most(asked.memories, most, "memories")
        ids = list(dict.fromkeys(one.memory_id for one in asked.memories))
        for memory_id in ids:
            memory.check(memory_id)
        for memory_id in ids:
            memory.delete(memory_id)
        return {"message": f"Successfully deleted {len(ids)} memories"}

    @api.post("/v1/feedback/")
    def feedback(asked: ItemFeedback, memory: Door) -> Any:
        """Say what one thinks of a memory. It is kept as metadata, and in the history."""
        said = {"feedback": asked.feedback, "feedback_reason": asked.feedback_reason}
        memory.update(asked.memory_id, None, said)
        return {"id": asked.memory_id, **said}

    return api


def _all_of(entity_type: EntityType, name: str) -> dict[str, str | None]:
    """The ids that an entity of mem0's names. Raises `NotOffered` for an app, which no memory
    has."""
    if entity_type == "app":
        raise NotOffered(NO_APPS)
    return {**dict.fromkeys(SCOPE_FIELDS), f"{entity_type}_id": name}
