"""What a server is told, and what its parts share: the memory, the keys, the access log, who asks.

`Served` stands at `app.state.served`. REST, MCP and page reach the memory by `memory_of(identity)`
and in no other way. A route takes `asking` (or `Asking`, the annotated parameter) as a dependency;
what is mounted as an application of its own calls `Served.identify` with the request's headers.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from memograd.gateway.store import TraceReader
from memograd.memory import Memory
from memograd.serve.access import KEPT_DAYS, AccessLog
from memograd.serve.database import ServeDatabase
from memograd.serve.identity import Identities, Identity
from memograd.serve.keys import Keys
from memograd.serve.limits import Places, Rates, Turns
from memograd.serve.owned_memory import OwnedMemory


@dataclass(frozen=True)
class ServeLimits:
    """`max_body` bytes of a request, sent within `body_seconds`; `max_calls` answered at once,
    `max_streams` feeds and `max_sessions` of MCP held open by the process, a quarter of each for a
    key with an owner; `calls_per_minute` of one key; `max_batch` elements of a list."""

    max_body: int = 8 * 1024 * 1024
    body_seconds: float = 30.0
    max_calls: int = 256
    max_streams: int = 64
    max_sessions: int = 4096
    calls_per_minute: int = 6000
    max_batch: int = 1000


@dataclass(frozen=True)
class ServeSettings:
    """hosts: names that the server answers to besides those of this machine. token: an admin key
    that is kept nowhere (`MEMOGRAD_SERVE_TOKEN`). runs: the folder of training runs that the page
    shows. traces: the URL of a gateway's trace store that the page shows, which nothing changes.
    access_days: how long a line of the access log is kept; 0: for ever."""

    hosts: tuple[str, ...] = ()
    token: str | None = field(default=None, repr=False)
    limits: ServeLimits = ServeLimits()
    runs: Path = Path("runs")
    traces: str | None = None
    access_days: float = KEPT_DAYS


class Served:
    """One memory that is being served."""

    def __init__(self, memory: Memory, settings: ServeSettings) -> None:
        """Open the server's own tables beside the memory's journal; raises BadInput where there are
        no traces in the place that the settings name."""
        self.memory, self.settings = memory, settings
        self.traces = None if settings.traces is None else TraceReader(settings.traces)
        self.database = ServeDatabase.beside(memory.store.settings)
        self.keys = Keys(self.database)
        self.access = AccessLog(self.database, days=settings.access_days)
        self.identities = Identities(self.keys, settings.token)
        self.places = Places(settings.limits.max_calls, "calls")
        self.streams = Places(settings.limits.max_streams, "streams")
        self.turns = Turns()
        self.rates = Rates(settings.limits.calls_per_minute)
        self.ending = threading.Event()
        """Set when the server is asked to end: what streams for long stops then."""

    def close(self) -> None:
        """Let go of the server's own tables; the memory is whoever opened it's to close."""
        self.access.close()
        self.database.close()
        if self.traces is not None:
            self.traces.close()

    async def identify(self, headers: Mapping[str, str], method: str) -> Identity:
        """Who asks; counts against the rate of the key. headers: by names in small letters."""
        identity = self.identities.at_once(headers, method)
        if identity is None:
            identity = await asyncio.to_thread(self.identities.of, headers, method)
        self.rates.take(identity.key_id)
        return identity

    async def check_known(self, headers: Mapping[str, str], method: str) -> None:
        """Raise `Refused` unless the key still opens something; counts against no rate."""
        if self.identities.at_once(headers, method) is None:
            await asyncio.to_thread(self.identities.of, headers, method)

    def memory_of(self, identity: Identity, *, via: str) -> OwnedMemory:
        """The memory as this key may see it. via: rest, mcp or page, for the access log."""
        return OwnedMemory(self.memory, identity, self.access, via=via)


async def asking(request: Request) -> AsyncIterator[Identity]:
    """Who asks, with one of the places for calls, and a turn of the key's owner, until the answer
    is made."""
    served: Served = request.app.state.served
    identity = await served.identify(request.headers, request.method)
    with served.places.taken(identity):
        async with served.turns.taken(identity.owner):
            yield identity


Asking = Annotated[Identity, Depends(asking)]
"""A route's parameter: who asks."""
