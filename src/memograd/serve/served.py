"""What a server is told, and what its parts share: the memory, the keys, the access log, who asks.

`Served` stands at `app.state.served`. REST, MCP and page reach the memory by `memory_of(identity)`
and in no other way. A route takes `asking` (or `Asking`, the annotated parameter) as a dependency;
what is mounted as an application of its own calls `Served.identify` with the request's headers.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from memograd.gateway.store import TraceReader
from memograd.memory import Memory
from memograd.serve.access import KEPT_DAYS, AccessLog
from memograd.serve.database import ServeDatabase
from memograd.serve.identity import Identities, Identity, secret_of
from memograd.serve.keys import Keys
from memograd.serve.limits import Places, Rates, Turns
from memograd.serve.owned_memory import OwnedMemory
from memograd.serve.refusals import TooMany, Unauthorised
from memograd.serve.wrong_keys import WrongKeys, address_of


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
        self.wrong_keys = WrongKeys()
        self.ending = threading.Event()
        """Set when the server is asked to end: what streams for long stops then."""

    def close(self) -> None:
        """Let go of the server's own tables; the memory is whoever opened it's to close."""
        self.access.close()
        self.database.close()
        if self.traces is not None:
            self.traces.close()

    async def identify(self, asked: HTTPConnection) -> Identity:
        """Who asks; counts against the rate of the key."""
        identity = await self.known(asked)
        if seconds := self.rates.take(identity.key_id):
            raise TooMany(f"This key asks too often: try again in {seconds} s.", seconds)
        return identity

    async def known(self, asked: HTTPConnection) -> Identity:
        """Who asks; counts against no rate but that of wrong keys. Raises `Refused` for nobody we
        know."""
        headers, method = asked.headers, asked.scope["method"]
        try:
            identity = self.known_at_once(asked)
            if identity is None:
                identity = await asyncio.to_thread(self.identities.of, headers, method)
        except Unauthorised:
            if secret_of(headers)[0] is not None:
                self.wrong_keys.note(address_of(asked.client))
            raise
        return identity

    def known_at_once(self, asked: HTTPConnection) -> Identity | None:
        """`known`, if it can be told without waiting for the database."""
        secret, _ = secret_of(asked.headers)
        if secret is not None:
            self.wrong_keys.check(address_of(asked.client), secret)
        return self.identities.at_once(asked.headers, asked.scope["method"])

    def memory_of(self, identity: Identity, *, via: str) -> OwnedMemory:
        """The memory as this key may see it. via: rest, mcp or page, for the access log."""
        return OwnedMemory(self.memory, identity, self.access, via=via)


async def asking(request: Request) -> AsyncIterator[Identity]:
    """Who asks, with one of the places for calls, and a turn of the key's owner, until the answer
    is made."""
    served: Served = request.app.state.served
    identity = await served.identify(request)
    with served.places.taken(identity):
        async with served.turns.taken(identity.owner):
            yield identity


Asking = Annotated[Identity, Depends(asking)]
"""A route's parameter: who asks."""
