"""Where the page hangs in the server: an application of its own under `/page`, and `/` leads there.

Its own application, so that its refusals are pages and not JSON. Some are made before it is
reached: Host and Origin, the key before a body, its size and its time are looked at by ASGI
middleware for every door alike, and the way in (`/login`) is a route of the server's; all of these
refuse in JSON. `PageRefusals` tells them as a page and in its language, where a reader would see
that JSON in place of a page.

Invariants: a path that the page does not have is still the server's to refuse, unless it begins
with `/page`; an answer that is no refusal in JSON, or that a program asked for, passes as it is;
what is told of a refusal made outside shows no session and no memory.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from memograd.errors import BadInput, MemogradError
from memograd.serve.identity import Identity
from memograd.serve.page import api, chat, keys, memories, runs, traces, versions
from memograd.serve.page.texts import LANGUAGES
from memograd.serve.page.view import PREFIX, STATIC, YEAR_SECONDS, View
from memograd.serve.refusals import Refused, failure
from memograd.serve.served import Served
from memograd.web.body_limit import Application, Receive, Scope, Send
from memograd.web.headers import allowed

logger = logging.getLogger(__name__)

NUMBERS = ("int_", "greater_", "less_")
"""How pydantic's words for a misfit of a number begin."""


def add_to(app: FastAPI, served: Served) -> None:
    """Mount the page."""
    page = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    page.state.served = served
    page.state.server = app
    page.state.talks = chat.OpenTalks()
    page.mount("/static", _Static(directory=STATIC))
    for part in (memories, chat, runs, versions, traces, keys, api):
        page.router.routes.extend(part.routes.routes)

    @page.get("/")
    def home(request: Request) -> Response:
        return _first_page(request)

    _explain_errors(page, served)
    app.mount(PREFIX, page)

    @app.get("/", include_in_schema=False)
    def root(request: Request) -> Response:
        return _first_page(request)


def _first_page(request: Request) -> Response:
    """The way to the memory, in the language that was asked for."""
    language = request.query_params.get("lang")
    asked = f"?lang={language}" if language in LANGUAGES else ""
    return RedirectResponse(f"{PREFIX}/memory{asked}", status_code=303)


class _Static(StaticFiles):
    """Files whose addresses change with their contents, so that a browser may keep them."""

    def file_response(self, *args: Any, **given: Any) -> Response:
        answer = super().file_response(*args, **given)
        answer.headers["Cache-Control"] = f"public, max-age={YEAR_SECONDS}, immutable"
        return answer


def _explain_errors(page: FastAPI, served: Served) -> None:
    """Tell every failure as a page, or as a sentence in the page that asked."""

    def view(request: Request) -> View:
        identity: Identity | None
        try:
            # A change that was refused is told to who is signed in.
            identity = served.known_at_once(HTTPConnection({**request.scope, "method": "GET"}))
        except Refused:
            identity = None
        return View(request, served, identity)

    def told(request: Request, error: Refused) -> Response:
        answer = view(request).told_refusal(error)
        answer.headers.update(error.headers)
        return answer

    @page.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        return told(request, error)

    @page.exception_handler(HTTPException)
    async def unknown_path(request: Request, error: HTTPException) -> Response:
        nowhere = error.status_code in (404, 405)
        key = "nowhere" if nowhere else "form"  # there is no other but of a body
        shown = view(request)
        answer = shown.refused(error.status_code, shown.say("refused." + key))
        if error.status_code == 405:
            answer.headers["Allow"] = allowed(page.routes, request.scope)
        return answer

    @page.exception_handler(RequestValidationError)
    async def unfitting(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        field = str(first["loc"][-1])
        shown = view(request)
        return shown.refused(422, shown.say("misfit." + _kind(first["type"]), field=field))

    @page.exception_handler(MemogradError)
    async def failed(request: Request, error: MemogradError) -> Response:
        if isinstance(error, BadInput):
            return told(request, Refused(str(error)))
        logger.error("%s", error)
        return told(request, failure(error))

    @page.exception_handler(Exception)
    async def mistake(request: Request, _: Exception) -> Response:
        # A mistake of ours, whose traceback is in the log.
        shown = view(request)
        return shown.refused(500, shown.say("refused.failed"))


def _kind(misfit: str) -> str:
    if misfit == "missing":
        return "missing"
    return "number" if misfit.startswith(NUMBERS) else "other"


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
