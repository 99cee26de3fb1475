"""Limits on request bodies, their size and how long they take, for every server of ours.

The declared length is checked first; a body without one (chunked), or longer than it declared, is
cut off at the limit. A refused client is still sending: were the connection closed at once, what it
sent would be answered by a reset, which may overtake the refusal. So the refusal goes out first,
and what still comes is read and thrown away for a moment (the lingering close of RFC 9112, 9.6).
Who sends a body slowly, or never to its end, holds a connection and what came of the body: never a
thread, and only for so long. Invariants: the application never holds more than `limit` bytes of a
body, and a client that sends on reads the refusal. Pure ASGI.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LINGER_SECONDS = 5.0
"""How long what a refused client still sends is read: nginx's `lingering_timeout`."""


class BodyLimit:
    """ASGI middleware that answers 413, with `refusal` as JSON, to a body of more than `limit`
    bytes."""

    def __init__(self, app: Application, limit: int, refusal: Mapping[str, Any]) -> None:
        self._app = app
        self._limit = limit
        self._refusal = json.dumps(refusal).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the whole body, at most `limit` bytes of it, and pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        declared = headers.get(b"content-length", b"0")
        if not declared.isdigit() or int(declared[:20]) > self._limit:
            await refuse(send, still_sending(scope, receive), 413, self._refusal)
            return
        body, more = bytearray(), True  # grows in place: a body may come byte by byte
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._limit:
                await refuse(send, receive if more else None, 413, self._refusal)
                return
        await self._app(scope, once_more(bytes(body), receive), send)


def once_more(body: bytes, receive: Receive) -> Receive:
    """What gives a body that was read already, and then whatever else comes."""
    given = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def refuse(
    send: Send,
    rest: Receive | None,
    status: int,
    body: bytes,
    more_headers: Mapping[str, str] | None = None,
) -> None:
    """Answer with `status` and `body`, which is JSON; then read `rest` to its end and close."""
    headers = [
        *((name.lower().encode(), value.encode()) for name, value in (more_headers or {}).items()),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    if rest is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while (await rest()).get("more_body", False):
                    pass
    await send({"type": "http.response.body", "body": b""})


def still_sending(scope: Scope, receive: Receive) -> Receive | None:
    """Where the rest of a refused body is read from.

    None for who expects to be told to continue: nothing was sent yet, and reading would tell it to.
    """
    waits = dict(scope["headers"]).get(b"expect", b"").lower() == b"100-continue"
    return None if waits else receive


class SlowBody:
    """ASGI middleware that answers 408, with `refusal` as JSON, to a body that does not arrive
    within some seconds."""

    def __init__(self, app: Application, seconds: float, refusal: Mapping[str, Any]) -> None:
        self._app, self._seconds = app, seconds
        self._refusal = json.dumps(refusal).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what arrives in time."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        deadline = asyncio.get_running_loop().time() + self._seconds
        complete = False

        async def in_time() -> MutableMapping[str, Any]:
            nonlocal complete
            if complete:
                return await receive()
            async with asyncio.timeout_at(deadline):
                message = await receive()
            complete = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        try:
            await self._app(scope, in_time, send)
        except TimeoutError:
            if complete:
                raise
            await refuse(send, None, 408, self._refusal)
