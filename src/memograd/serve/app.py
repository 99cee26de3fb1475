"""The web application: what stands before every route, its parts, and how a refusal is told.

Outermost first: the headers of every answer, HEAD as GET without a body (`web/headers.py`), what
makes a page of a refusal where a reader looks at pages (`page/mount.py`), Host and Origin (403), a
key where there is a body (401), the time and the size of the body (408, 413), then the routes of
`PARTS`. Invariants: what is refused has the form `{"detail": SENTENCE}`, and on the page its
language; a failure of the database is 503 with Retry-After, and its own words go to the log, not to
the client.

A memory is folded out of its journal when it is first needed, and a hundred thousand items take
seconds: so the largest are folded behind the start (`warming`), while nobody has asked yet. No
start waits for it, and no call for more than the fold it would have made itself; it folds no more
than stays held, and what goes wrong is told by the call that meets it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

import memograd
from memograd.errors import BadInput, MemogradError
from memograd.memory import Memory
from memograd.memory.state.store import HELD_RECORDS, MemoryStore
from memograd.serve import session
from memograd.serve.limits import KnownFirst
from memograd.serve.mcp import http as mcp
from memograd.serve.page import mount
from memograd.serve.refusals import Refused, failure, misfit, refusal
from memograd.serve.rest import routes
from memograd.serve.served import Served, ServeSettings
from memograd.web.body_limit import BodyLimit, SlowBody
from memograd.web.headers import SAFE, HeadAsGet, SafeHeaders, allowed
from memograd.web.host_check import HostCheck, checked_host

Part = Callable[[FastAPI, Served], AbstractAsyncContextManager[Any] | None]


logger = logging.getLogger(__name__)

LEAST_ITEMS: Final = 1000
"""Smaller memories are left, since their fold is quicker than a page."""
MOST_ITEMS: Final = HELD_RECORDS // 2
"""Of those that are folded behind the start; what was said to each is held too."""


def create_app(memory: Memory, settings: ServeSettings | None = None) -> FastAPI:
    """The application over a memory; whoever opened the memory closes it, after the application.

    Raises BadInput for a host that is none, or when the server's tables cannot be used.
    """
    settings = settings or ServeSettings()
    hosts = [checked_host(host) for host in settings.hosts]
    served = Served(memory, settings)
    running: list[contextlib.AbstractAsyncContextManager[object]] = []

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(served.close)
            await stack.enter_async_context(warming(memory.store))
            for part in running:
                await stack.enter_async_context(part)
            yield

    app = FastAPI(
        title="memograd",
        version=memograd.__version__,
        description="A memory for language-model agents. Give the key as Bearer or X-API-Key.",
        lifespan=lifespan,
        redirect_slashes=False,
        # Told to those who have a key: `rest/routes.py` has both.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.served = served
    app.state.ending = served.ending
    for add_to in PARTS:
        part = add_to(app, served)
        if part is not None:
            running.append(part)
    _explain_errors(app)
    limits = settings.limits
    too_large = refusal(f"The request has more than {limits.max_body} bytes.")
    app.add_middleware(BodyLimit, limit=limits.max_body, refusal=too_large)
    too_slow = refusal(f"The request did not arrive within {limits.body_seconds:g} s.")
    app.add_middleware(SlowBody, seconds=limits.body_seconds, refusal=too_slow)
    app.add_middleware(KnownFirst, known=served.known)
    app.add_middleware(HostCheck, hosts=hosts, refusal=refusal)
    app.add_middleware(mount.PageRefusals, served=served)
    app.add_middleware(HeadAsGet, but=[session.LOGIN])  # a preview of the address uses it up
    app.add_middleware(SafeHeaders)
    return app


@contextlib.asynccontextmanager
async def warming(store: MemoryStore) -> AsyncIterator[None]:
    """Fold within this block, in a thread; the block's end waits for the fold that has begun."""
    ending = threading.Event()
    thread = threading.Thread(
        target=_fold_the_largest, args=(store, ending), name="memograd-warming", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ending.set()
        await asyncio.to_thread(thread.join)


def _fold_the_largest(store: MemoryStore, ending: threading.Event) -> None:
    items: Counter[str] = Counter()
    try:
        for scope, living, _, _ in store.journal.living(None):
            items[scope.owner] += living
        left = MOST_ITEMS
        for owner, count in items.most_common():
            if count < LEAST_ITEMS or ending.is_set():
                return
            if count <= left:
                store.states.current(owner)
                left -= count
    except MemogradError as error:
        logger.warning("No memory was made ready behind the start: %s", error)


def _explain_errors(app: FastAPI) -> None:
    """Give every failure its status and its sentence."""

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> JSONResponse:
        return _told(error)

    @app.exception_handler(HTTPException)
    async def unknown_path(request: Request, error: HTTPException) -> JSONResponse:
        told = str(error.detail)
        if error.status_code in (404, 405):
            asked = f"{request.method} {request.url.path[:200]}"
            told = f"There is no route {asked}: /openapi.json lists those that there are."
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = allowed(app.routes, request.scope)
        return JSONResponse(refusal(told), error.status_code, headers)

    @app.exception_handler(RequestValidationError)
    async def unfitting(_: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse(refusal(misfit(error.errors())), 422)

    @app.exception_handler(MemogradError)
    async def failed(_: Request, error: MemogradError) -> JSONResponse:
        if isinstance(error, BadInput):
            return JSONResponse(refusal(str(error)), 400)
        logger.error("%s", error)
        return _told(failure(error))

    @app.exception_handler(Exception)
    async def mistake(_: Request, __: Exception) -> JSONResponse:
        # A mistake of ours, whose traceback is in the log. It is answered outside of all else.
        return JSONResponse(refusal("The server failed; its log says how."), 500, dict(SAFE))


def _told(error: Refused) -> JSONResponse:
    return JSONResponse(refusal(error.detail), error.status, error.headers)


PARTS: Final[tuple[Part, ...]] = (
    session.add_to,
    routes.add_to,
    mcp.add_to,
    mount.add_to,
)
"""What is mounted, in this order: the paths of an earlier part win, so the page, which answers at
`/`, is the last. A part adds its routes, and returns what has to run as long as the server does, if
anything (MCP's session manager)."""
