"""What mem0's service has and memograd has not: 501 with its name, to whoever has a key."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter

from memograd.serve.refusals import NotOffered
from memograd.serve.rest.door import REFUSALS
from memograd.serve.served import Asking

ANY: Final = ["GET", "POST", "PUT", "PATCH", "DELETE"]
PATHS: Final = {
    "/configure": "configure: the settings are given at the start",
    "/v1/exports/{rest:path}": "exports by a schema: /export gives everything",
    "/v1/summary/": "summaries: /context gives what a prompt should show",
    "/v1/events/{rest:path}": "events of jobs: adding is done when it is answered",
    "/v2/entities/user/{name}/profile/": "profiles: /context gives what a prompt should show",
    "/v2/profiles/{rest:path}": "profiles: /context gives what a prompt should show",
    "/api/v1/webhooks/{rest:path}": "webhooks: /operations/feed tells of changes",
    "/api/v1/orgs/{rest:path}": "organisations and projects: keys say whose memory is meant",
}


def routes() -> APIRouter:
    """Those paths, by every method."""
    api = APIRouter(tags=["not offered"], responses=REFUSALS, include_in_schema=False)
    for path, name in PATHS.items():
        api.add_api_route(path, _refusing(name), methods=ANY)
    return api


def _refusing(name: str) -> Any:
    async def refuse(_: Asking) -> None:
        raise NotOffered(f"memograd does not offer {name}.")

    return refuse
