"""The head of answers: what keeps a browser's copy to itself, HEAD for GET, and `Allow`.

What is answered may be somebody's memory or conversation, and what was remembered may be anything.
So a browser shall run nothing that it holds, load nothing for it from elsewhere, show it in no
frame of another page, give it to no other site, and keep no copy.

A refusal of a method (405) says which ones a path takes. Starlette answers with those of the first
route of a path, and a path may have several routes.

FastAPI's routes take no HEAD, so a monitor, a proxy or a browser that asks by HEAD whether
something is there would be told that the method is wrong. What answers by a stream (a feed, an
export) is stopped once its head is there, since nobody would read the rest.

Invariants: every answer has all of `SAFE`, refusals and streams too, and what a route says itself
about caching stands; what `Allow` names is taken there, and what it does not name is not; HEAD is
answered with the status and the headers of GET, by the same key, without a body, but for a path
whose GET changes something.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, MutableMapping
from typing import Any, Final

import anyio
from starlette.datastructures import MutableHeaders
from starlette.routing import Match, Route

from memograd.web.body_limit import Application, Receive, Scope, Send

SAFE: Final = {
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self';"
        " frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SafeHeaders:
    """ASGI middleware that adds `SAFE`, and `no-store` where a route says nothing of caching."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and add to what is answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def safely(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message.get("headers", ())))
                headers.update(SAFE)
                headers.setdefault("Cache-Control", "no-store")
                message = {**message, "headers": headers.raw}
            await send(message)

        await self._app(scope, receive, safely)


def allowed(routes: Iterable[Any], scope: MutableMapping[str, Any]) -> str:
    """The methods of all routes of the path, as the header `Allow` has them."""
    found: set[str] = set()
    for route in routes:
        if isinstance(route, Route) and route.matches(scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return ", ".join(sorted(found))


class HeadAsGet:
    """ASGI middleware that asks the application by GET and sends the head of its answer."""

    def __init__(self, app: Application, but: Collection[str] = ()) -> None:
        """but: paths whose GET changes something."""
        self._app, self._but = app, but

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, by another method where it is HEAD."""
        if scope["type"] != "http" or scope["path"] in self._but:
            await self._app(scope, receive, send)
            return
        asked = scope["method"] == "HEAD"
        with anyio.CancelScope() as answering:

            async def sending(message: MutableMapping[str, Any]) -> None:
                if message["type"] == "http.response.start":
                    headers = MutableHeaders(raw=list(message.get("headers", ())))
                    message = {**message, "headers": _named(headers).raw}
                    await send(message)
                    if asked:
                        await send({"type": "http.response.body", "body": b""})
                        if "content-length" not in headers:  # a stream
                            answering.cancel()
                elif not asked:
                    await send(message)

            await self._app({**scope, "method": "GET"} if asked else scope, receive, sending)


def _named(headers: MutableHeaders) -> MutableHeaders:
    methods = [one.strip() for one in headers.get("allow", "").split(",")]
    if "GET" in methods and "HEAD" not in methods:
        headers["allow"] = ", ".join(sorted([*methods, "HEAD"]))
    return headers
