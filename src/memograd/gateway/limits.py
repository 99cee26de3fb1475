"""What the gateway takes on at most: bytes of a request, calls at once, seconds of a call.

Invariant: a body over the limit is refused before it is read to its end, whether or not it says its
length; a place among the calls is free again however a call ends
(`tests/gateway/test_gateway_security.py`). May import the room's protocol.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from memograd.gateway.protocol import Refused, error_body

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class GatewayLimits:
    """`max_body` bytes of a request, `max_calls` answered at once, `call_seconds` an answer may
    take, `choices` a call may ask for."""

    max_body: int = 8 * 1024 * 1024
    max_calls: int = 256
    call_seconds: float = 600.0
    max_choices: int = 16


class Places:
    """The calls that are being answered; for one event loop."""

    def __init__(self, count: int) -> None:
        self.free = count

    def take(self) -> Place:
        """Take a place; raises `Refused` (429) if there is none."""
        if self.free <= 0:
            raise Refused(
                429,
                "The gateway answers as many calls as it may: try again.",
                code="rate_limit_exceeded",
                kind="rate_limit_error",
            )
        self.free -= 1
        return Place(self)


class Place:
    """One of the places, to be given back once."""

    def __init__(self, places: Places | None) -> None:
        self._places = places

    def give_back(self) -> None:
        """Free it. Giving back twice is harmless."""
        if self._places is not None:
            self._places.free += 1
            self._places = None


class _TooLarge(Exception):
    """Ends the reading of a body that is longer than it may be."""


class BodyLimit:
    """ASGI middleware that refuses bodies of more than `limit` bytes with 413."""

    def __init__(self, app: AsgiApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, counting its bytes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        seen = int(declared[:20]) if declared.isdigit() else 0
        if seen > self._limit:
            await self._refuse(send)
            return
        seen, started = 0, False

        async def counted() -> MutableMapping[str, Any]:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body") or b"")
            if seen > self._limit:
                raise _TooLarge
            return message

        async def unless_too_large(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            # The app takes the exception for a body that it cannot parse, and would say so.
            if seen <= self._limit:
                started = True
                await send(message)

        with contextlib.suppress(_TooLarge):
            await self._app(scope, counted, unless_too_large)
        if seen > self._limit and not started:
            await self._refuse(send)

    async def _refuse(self, send: Send) -> None:
        message = f"The request has more than {self._limit} bytes."
        body = json.dumps(error_body(message, kind="invalid_request_error", code="too_large"))
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": body.encode()})
