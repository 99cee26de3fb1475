"""How a browser comes in: the one-time address that becomes a cookie, and the way out.

    GET  /login?token=...   spends the token, sets the session's cookie, goes to the page
    POST /logout            ends the session

The cookie is `HttpOnly` and `SameSite=Strict`. Invariant: a token begins one session at most.
"""

from __future__ import annotations

import asyncio
from typing import Final

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import RedirectResponse

from memograd.serve.identity import COOKIE
from memograd.serve.keys import DAY_SECONDS, SESSION_DAYS
from memograd.serve.refusals import Unauthorised
from memograd.serve.served import Asking, Served

LOGIN: Final = "/login"


def login_path(token: str) -> str:
    """The path that begins a session."""
    return f"{LOGIN}?token={token}"


def add_to(app: FastAPI, served: Served) -> None:
    """Add the two routes."""
    routes = APIRouter(include_in_schema=False)

    @routes.get(LOGIN)
    async def login(request: Request, token: str) -> Response:
        begun = await asyncio.to_thread(served.keys.begin_session, token)
        if begun is None:
            raise Unauthorised(
                "This address was used already or is too old: ask for another by"
                " memograd serve login."
            )
        answer = RedirectResponse("/", status_code=303, headers={"Cache-Control": "no-store"})
        answer.set_cookie(
            COOKIE,
            begun.secret,
            max_age=SESSION_DAYS * DAY_SECONDS,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    @routes.post("/logout")
    async def logout(identity: Asking) -> Response:
        if identity.page_token is not None:
            await asyncio.to_thread(served.keys.revoke, identity.key_id)
        answer = Response(status_code=204)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    app.router.routes.extend(routes.routes)
