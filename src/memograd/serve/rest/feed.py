"""The feed of operations: what was added, updated, deleted, declined or purged, as it happens.

`/operations` gives a page behind a place of the journal, `/operations/feed` the same as server-sent
events for as long as the client listens; the id of an event is its place, so a client that lost the
connection goes on where it was (`Last-Event-ID`). Invariants: a client that goes on from the last
id that it saw misses nothing, whichever process it asks; a revoked key is told nothing more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from memograd.errors import MemogradError
from memograd.memory.records.events import Event
from memograd.serve.identity import Identity
from memograd.serve.owned_memory import OwnedMemory
from memograd.serve.refusals import Refused, Unavailable
from memograd.serve.rest.door import Door, Limit, check_address, router
from memograd.serve.served import Served
from memograd.web.json_text import json_line

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.25
ALIVE_SECONDS: Final = 15.0
"""How often a silent feed says that it lives, so that a half-open connection is noticed."""
BATCH: Final = 500

LAST_PLACE: Final = 2**62
"""More than a journal has; databases count to 2**63 - 1."""

Place = Annotated[int | None, Query(ge=0, le=LAST_PLACE)]


def routes(served: Served) -> APIRouter:
    """`/operations` and its feed."""
    api = router("operations")

    @api.get("/operations")
    def operations(memory: Door, after: Place = None, limit: Limit = 100) -> Any:
        """Operations behind a place of the journal, oldest first."""
        found = memory.operations(after=after or 0, limit=limit)
        following = found[-1].seq if len(found) == limit else None
        return {"results": [operation_json(event) for event in found], "next_after": following}

    @api.get(
        "/operations/feed",
        response_class=Response,
        responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
    )
    async def feed(
        request: Request,
        after: Place = None,
        last_event_id: Annotated[str | None, Header(max_length=20)] = None,
    ) -> Response:
        """Operations as they happen, as server-sent events; from now on unless `after` is given."""
        identity = await served.identify(request)
        check_address(request)
        memory = served.memory_of(identity, via="rest")
        seen = last_event_id or ""
        place = min(int(seen), LAST_PLACE) if seen.isdecimal() else after
        if place is None:
            place = await asyncio.to_thread(memory.last_operation)
        else:
            await asyncio.to_thread(memory.last_operation)  # may it read at all?
        known = partial(served.known, request)
        return _Held(served, identity, _events(served, memory, place, known))

    return api


class _Held(StreamingResponse):
    """A stream that holds one of the places for streams, which it takes before anything is sent:
    of many that are asked for at once, those that find none are refused."""

    def __init__(self, served: Served, identity: Identity, events: AsyncIterator[str]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._place = served.streams.taken(identity)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, within its place; raises `TooMany`."""
        with self._place:
            await super().__call__(scope, receive, send)


async def _events(
    served: Served, memory: OwnedMemory, place: int, check_known: Callable[[], Awaitable[Identity]]
) -> AsyncIterator[str]:
    """The events behind a place, for as long as somebody reads, the key opens and the server runs.

    The feed ends where the database is away; the client comes back with the last id that it saw.
    """
    silent = 0.0
    yield ": listening\n\n"
    while not served.ending.is_set():
        try:
            found, place = await asyncio.to_thread(
                memory.operations_until, after=place, limit=BATCH
            )
            await check_known()  # last: a key may be revoked while they are read
        except Refused as error:
            yield f": {error.detail}\n\n"
            return
        except MemogradError as error:
            logger.error("%s", error)
            yield f": {Unavailable().detail}\n\n"
            return
        for event in found:
            data = json_line(operation_json(event))
            yield f"id: {event.seq}\nevent: {event.kind.value}\ndata: {data}\n\n"
        if found:
            silent = 0.0
            continue
        await asyncio.sleep(POLL_SECONDS)
        silent += POLL_SECONDS
        if silent >= ALIVE_SECONDS:
            silent = 0.0
            yield ": still here\n\n"


def operation_json(event: Event) -> dict[str, Any]:
    """An operation as the feed tells it; of a purged one, that it was."""
    before, after = event.before or {}, event.after or {}
    return {
        "seq": event.seq,
        "uid": event.uid,
        "event": event.kind.value,
        "memory_id": event.subject,
        "old_memory": before.get("text"),
        "new_memory": after.get("text"),
        "actor": event.actor,
        "reason": event.reason,
        "recorded_at": event.recorded_at.isoformat(),
        "erased": event.erased,
        **event.scope.ids(),
    }
