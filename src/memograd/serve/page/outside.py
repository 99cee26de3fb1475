"""Refusals that are made before the page is reached, told as a page and in its language.

Host and Origin, the key before a body, its size and its time are looked at by ASGI middleware for
every door alike, and the way in (`/login`) is a route of the server's; all of them refuse in JSON.
A reader would see that JSON in place of a page. Invariant: an answer that is no refusal in JSON, or
that a program asked for, passes as it is; what is told shows no session and no memory.
"""

from __future__ import annotations

import json
from typing import Any, Final

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders

from memograd.serve.page.view import PREFIX, View
from memograd.serve.refusals import Refused
from memograd.serve.served import Served
from memograd.web.body_limit import Application, Receive, Scope, Send

# Where a browser goes and a program may: who wants a page says so by Accept.
OPEN_TO_BOTH: Final = ("/", "/login", "/logout")


class PageRefusals:
    """ASGI middleware that tells refusals as pages where pages are asked for."""

    def __init__(self, app: Application, served: Served) -> None:
        self._app, self._served = app, served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and look at the answer."""
        if scope["type"] != "http" or not _is_of_a_reader(scope):
            await self._app(scope, receive, send)
            return
        begun: Any = None  # the head of a refusal, whose sentence is still to come

        async def telling(message: Any) -> None:
            nonlocal begun
            if message["type"] == "http.response.start" and _is_json_refusal(message):
                begun = message
                return
            if begun is not None:
                head, begun = begun, None
                page = self._page(scope, head, message)
                if page is None:
                    await send(head)
                else:
                    await send(page[0])
                    message = page[1]
            await send(message)

        await self._app(scope, receive, telling)

    def _page(self, scope: Scope, head: Any, body: Any) -> tuple[Any, Any] | None:
        """Head and body of the page in place of a refusal; None where it is none of ours."""
        try:
            error = Refused(str(json.loads(body["body"])["detail"]))
        except (ValueError, KeyError, TypeError):
            return None
        error.status = head["status"]
        answer = View(Request(scope), self._served, None).told_refusal(error)
        headers = MutableHeaders(raw=list(head["headers"]))
        for name, value in answer.headers.items():
            headers[name] = value
        return {**head, "headers": headers.raw}, {**body, "body": bytes(answer.body)}


def _is_of_a_reader(scope: Scope) -> bool:
    path = scope["path"]
    if path == PREFIX or path.startswith(f"{PREFIX}/"):
        return True
    return path in OPEN_TO_BOTH and "text/html" in Headers(scope=scope).get("accept", "")


def _is_json_refusal(message: Any) -> bool:
    kind = Headers(raw=message["headers"]).get("content-type", "")
    return message["status"] >= 400 and kind.startswith("application/json")
