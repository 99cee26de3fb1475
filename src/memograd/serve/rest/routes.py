"""All routes of the REST interface, and what is told without a key: `/healthz`.

The paths that are taken here begin with /memories, /search, /reset, /entities, /context, /purge,
/compact, /sweep, /answers, /operations, /users, /stats, /access, /export, /import, /keys, /v1, /v2,
/v3, /api, /configure, /healthz, /docs and /openapi.json; the page has all others.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import RedirectResponse

import memograd
from memograd.serve.refusals import NotOffered
from memograd.serve.rest import feed, mem0, own
from memograd.serve.rest.door import REFUSALS, RefusalBody
from memograd.serve.served import Asking, Served

ANY: Final = ["GET", "POST", "PUT", "PATCH", "DELETE"]
NOT_OFFERED: Final = {
    "/configure": "configure: the settings are given at the start",
    "/v1/exports/{rest:path}": "exports by a schema: /export gives everything",
    "/v1/summary/": "summaries: /context gives what a prompt should show",
    "/v1/events/{rest:path}": "events of jobs: adding is done when it is answered",
    "/v2/entities/user/{name}/profile/": "profiles: /context gives what a prompt should show",
    "/v2/profiles/{rest:path}": "profiles: /context gives what a prompt should show",
    "/api/v1/webhooks/{rest:path}": "webhooks: /operations/feed tells of changes",
    "/api/v1/orgs/{rest:path}": "organisations and projects: keys say whose memory is meant",
}


def add_to(app: FastAPI, served: Served) -> None:
    """Add the routes."""
    for routes in (
        _about(served),
        mem0.server_routes(served),
        mem0.client_routes(served),
        own.routes(served),
        feed.routes(served),
        _not_offered(),
    ):
        app.router.routes.extend(routes.routes)  # `include_router` would build each a second time


def _about(served: Served) -> APIRouter:
    routes = APIRouter(tags=["server"])

    away = {"model": RefusalBody, "description": "The database is away."}

    @routes.get("/healthz", responses={503: away})
    async def healthz() -> dict[str, Any]:
        """Whether the memory can be reached; needs no key and tells nothing else."""
        # In none of the threads that carry out calls: a busy server is a healthy one.
        await asyncio.to_thread(served.memory.store.journal.last_seq)
        return {"status": "ok", "version": memograd.__version__}

    @routes.get("/openapi.json", include_in_schema=False)
    async def openapi(request: Request, _: Asking) -> dict[str, Any]:
        app: FastAPI = request.app
        return app.openapi()

    @routes.get("/docs", include_in_schema=False)
    async def docs(_: Asking) -> Response:
        return RedirectResponse("/page/api", status_code=303)  # where every file is our own

    return routes


def _not_offered() -> APIRouter:
    """What mem0's service has and memograd has not: 501 with its name, to whoever has a key."""
    api = APIRouter(tags=["not offered"], responses=REFUSALS, include_in_schema=False)
    for path, name in NOT_OFFERED.items():
        api.add_api_route(path, _refusing(name), methods=ANY)
    return api


def _refusing(name: str) -> Any:
    async def refuse(_: Asking) -> None:
        raise NotOffered(f"memograd does not offer {name}.")

    return refuse
