"""MCP at `/mcp` of the server (streamable HTTP): the key of each request says whose memory it is.

A key that opens everybody's memory needs the header `X-Memograd-Owner: user:alice`, which belongs
to the settings of a client and is out of the model's reach. Invariants: every message is checked by
its own key, not by the one that began the session; a session answers to the key that began it; what
a key holds open, a question to the user too, is cut within seconds of its end; the sessions of one
owner's key leave most of the room to all others; a body is JSON as every other route takes it, of
as many values.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
from collections import OrderedDict
from collections.abc import Awaitable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from fastapi import FastAPI
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver import Context
from mcp.server.request_state import RequestStateSecurity
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import PARSE_ERROR
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from memograd.errors import BadInput, MemogradError
from memograd.serve.identity import Identity
from memograd.serve.keys import KNOWN_SECONDS, checked_owner
from memograd.serve.limits import SHARES
from memograd.serve.mcp.server import memory_server
from memograd.serve.owned_memory import OwnedMemory
from memograd.serve.refusals import Forbidden, Refused, Unprocessable, shortened
from memograd.serve.served import Served
from memograd.web.body_limit import once_more
from memograd.web.strict_json import checked_body

PATH: Final = "/mcp"
OWNER_HEADER: Final = "x-memograd-owner"
SESSION_HEADER: Final = "mcp-session-id"
_IDENTITY: Final = "memograd.identity"


def add_to(app: FastAPI, served: Served) -> AbstractAsyncContextManager[Any]:
    """Add the endpoint; what is returned runs as long as the server does."""

    def memory_for(asking: Context[Any, Any]) -> OwnedMemory:
        request = asking.request_context.request
        assert isinstance(request, Request)
        return served.memory_of(request.scope[_IDENTITY], via="mcp")

    def turn(asking: Context[Any, Any]) -> AbstractAsyncContextManager[None]:
        return served.turns.taken(memory_for(asking).identity.owner)

    server = memory_server(memory_for, turn=turn, request_state=_request_state(served))
    server.streamable_http_app(
        max_request_body_size=served.settings.limits.max_body,
        max_sessions=served.settings.limits.max_sessions,
        # HostCheck stands before every route.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    sessions = server.session_manager
    app.router.routes.append(Route(PATH, endpoint=_Endpoint(served, sessions)))
    return sessions.run()


class _Endpoint:
    """The ASGI application at `/mcp`: who asks, then the protocol."""

    def __init__(self, served: Served, sessions: StreamableHTTPSessionManager) -> None:
        self._served = served
        self._protocol = AuthContextMiddleware(sessions.handle_request)
        self._of_one = max(1, served.settings.limits.max_sessions // SHARES)
        self._sessions: dict[str, OrderedDict[str, None]] = {}  # of a key, latest used last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; raises `Refused` before anything is sent."""
        request = Request(scope)
        known = await self._served.identify(request)
        identity = within_owner(known, request.headers)
        scope[_IDENTITY] = identity
        token = AccessToken(token="", client_id=identity.key_id, scopes=[], subject=identity.owner)
        scope["user"] = AuthenticatedUser(token)
        # A GET is a stream that is held open; a POST is a call.
        places = self._served.streams if request.method == "GET" else self._served.places
        send = _kept_by_nobody(send)
        with places.taken(known):
            if known.owner is not None:
                send = self._counted(known.key_id, scope, send)
            if request.method == "POST":
                body = await Request(scope, receive).body()
                try:
                    checked_body(body)
                except json.JSONDecodeError as error:
                    await _no_message(error)(scope, receive, send)
                    return
                receive = once_more(body, receive)
            await self._while_known(request, self._protocol(scope, receive, send))

    def _counted(self, key_id: str, scope: Scope, send: Send) -> Send:
        """Note the session that a call begins or uses, and end the key's one that was not used for
        longest where it has more than its share."""

        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start":
                session = Headers(raw=message["headers"]).get(SESSION_HEADER)
                if session is not None:
                    mine = self._sessions.setdefault(key_id, OrderedDict())
                    mine[session] = None
                    mine.move_to_end(session)
                    while len(mine) > self._of_one:
                        await self._end(mine.popitem(last=False)[0], scope)
            await send(message)

        return counting

    async def _end(self, session: str, scope: Scope) -> None:
        """End a session as its own client would; one that has ended already stays so."""

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def to_nobody(_: Message) -> None:
            pass

        headers = [(SESSION_HEADER.encode(), session.encode())]
        asked = {**scope, "method": "DELETE", "headers": headers}
        await self._protocol(asked, nothing, to_nobody)

    async def _while_known(self, request: Request, answering: Awaitable[None]) -> None:
        """Answer, and cut what is still open once its key opens nothing any more."""
        task = asyncio.ensure_future(answering)
        try:
            while not (await asyncio.wait([task], timeout=KNOWN_SECONDS))[0]:
                await self._served.known(request)
        except (Refused, MemogradError):
            pass  # its end, or nobody can say whether it has ended
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        if not task.cancelled():
            task.result()


def _kept_by_nobody(send: Send) -> Send:
    """What sends answers that no cache keeps; the protocol's package lets one keep its streams."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message["headers"]))
            headers["Cache-Control"] = "no-store, no-transform"
            message = {**message, "headers": headers.raw}
        await send(message)

    return sending


def _no_message(error: json.JSONDecodeError) -> JSONResponse:
    """How the protocol tells that a body is no JSON."""
    told = {"code": PARSE_ERROR, "message": shortened(f"The body is no JSON: {error.msg}.")}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": told}, 400)


def within_owner(identity: Identity, headers: Mapping[str, str]) -> Identity:
    """The identity within one owner's memory: the key's, or for a key of all the header's.

    Raises `Forbidden` when both name one and they differ, or when neither does.
    """
    named = headers.get(OWNER_HEADER)
    if named is not None:
        try:
            named = checked_owner(named.encode("latin-1").decode("utf-8"))
        except (BadInput, UnicodeError):
            raise Unprocessable(
                "The header X-Memograd-Owner must be user:NAME, agent:NAME or run:NAME."
            ) from None
    if identity.owner is None and named is None:
        raise Forbidden(
            "This key opens everybody's memory: use one that is bound to a user, or say whose"
            " memory is meant in the header X-Memograd-Owner, as user:NAME."
        )
    if identity.owner is not None and named not in (None, identity.owner):
        raise Forbidden("This key opens the memory of another owner than the header names.")
    return dataclasses.replace(identity, owner=identity.owner or named)


def _request_state(served: Served) -> RequestStateSecurity | None:
    """A key that all processes of the same token share, so that any of them takes the answer."""
    token = served.settings.token
    if token is None:
        return None
    return RequestStateSecurity(keys=[hashlib.sha256(f"mcp:{token}".encode()).digest()])
