"""All routes of the REST interface, and what is told without a key: `/healthz`.

The paths that are taken here begin with /memories, /search, /reset, /entities, /context, /purge,
/compact, /sweep, /answers, /operations, /users, /stats, /access, /export, /import, /keys, /v1, /v2,
/v3, /api, /configure, /healthz, /docs and /openapi.json; the page has all others.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html

import memograd
from memograd.serve.rest import feed, mem0_client, mem0_server, not_offered, own
from memograd.serve.served import Asking, Served


def add_to(app: FastAPI, served: Served) -> None:
    """Add the routes."""
    app.include_router(_about(served))
    app.include_router(mem0_server.routes(served))
    app.include_router(mem0_client.routes(served))
    app.include_router(own.routes(served))
    app.include_router(feed.routes(served))
    app.include_router(not_offered.routes())


def _about(served: Served) -> APIRouter:
    routes = APIRouter(tags=["server"])

    @routes.get("/healthz", responses={503: {"description": "The database is away."}})
    def healthz() -> dict[str, Any]:
        """Whether the memory can be reached; needs no key and tells nothing else."""
        served.memory.store.journal.last_seq()
        return {"status": "ok", "version": memograd.__version__}

    @routes.get("/openapi.json", include_in_schema=False)
    async def openapi(request: Request, _: Asking) -> dict[str, Any]:
        app: FastAPI = request.app
        return app.openapi()

    @routes.get("/docs", include_in_schema=False)
    async def docs(_: Asking) -> Response:
        return get_swagger_ui_html(openapi_url="/openapi.json", title="memograd")

    return routes
