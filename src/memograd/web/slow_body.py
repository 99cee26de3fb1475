"""A limit on the time that a body may take to arrive, for every server of ours.

Who sends a body slowly, or never to its end, holds a connection and what came of the body: never a
thread, and only for so long. Pure ASGI.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, MutableMapping
from typing import Any

from memograd.web.body_limit import Application, Receive, Scope, Send, refuse


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
