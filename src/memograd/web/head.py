"""HEAD for every path that takes GET: what GET would answer, without the body.

FastAPI's routes take the methods that they name and no other, so a monitor, a proxy or a browser
that asks by HEAD whether something is there would be told that the method is wrong. What answers by
a stream (a feed, an export) is stopped once its head is there, since nobody would read the rest.

Invariants: HEAD is answered with the status and the headers of GET, by the same key, and without a
body; where `Allow` names GET, it names HEAD too; a path whose GET changes something takes no HEAD.
"""

from __future__ import annotations

from collections.abc import Collection, MutableMapping
from typing import Any

import anyio
from starlette.datastructures import MutableHeaders

from memograd.web.body_limit import Application, Receive, Scope, Send


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
