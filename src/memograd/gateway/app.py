"""The gateway as a web application: OpenAI's paths, and the same under every rollout's own address.

    POST /rollout                          a new rollout: id, base_url, api_key
    POST /rollout/{id}/v1/...              what OpenAI's clients call: chats, responses, texts; each
                                           is captured
    POST /rollout/{id}/reward, /failure    how it ended
    GET  /rollout/{id}                     its state
    POST /v1/...                           the same model, nothing captured
    GET  /docs, /openapi.json              what can be asked, for whoever has the gateway's key

Whatever model an agent names, it gets the one that is served. Invariants: every refusal has
OpenAI's error form; what a rollout's key opens is that rollout alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request, Response
from fastapi.responses import HTMLResponse

from memograd.gateway.admission import GatewayLimits
from memograd.gateway.answering import Gateway
from memograd.gateway.answers import Json, explain_errors
from memograd.gateway.backend import Backend
from memograd.gateway.completions_api import CompletionRequest
from memograd.gateway.protocol import (
    ChatRequest,
    EmbeddingRequest,
    ErrorBody,
    FailureRequest,
    NewRolloutRequest,
    RewardRequest,
    error_body,
)
from memograd.gateway.records import RolloutRecord
from memograd.gateway.responses_kept import InputItemsQuery, ResponseQuery
from memograd.gateway.responses_request import ResponseRequest
from memograd.gateway.store import TraceStore
from memograd.memory.embedders.embedder import Embedder
from memograd.web.body_limit import BodyLimit, SlowBody
from memograd.web.headers import SafeHeaders
from memograd.web.host_check import HostCheck, checked_host
from memograd.web.strict_json import StrictRoute

# By name: given the model itself, FastAPI makes a validator a route and status. `/health` gives it.
_ERROR = {"$ref": f"#/components/schemas/{ErrorBody.__name__}"}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"content": {"application/json": {"schema": _ERROR}}}
    for status in (400, 401, 404, 405, 408, 409, 413, 422, 429, 500, 502, 503, 504)
}
NOT_KEPT: Mapping[str, Any] = {
    "methods": ["GET", "POST", "DELETE"],
    "response_model": None,
    "include_in_schema": False,
}
"""Paths that are known and always refused: OpenAI's clients offer more below a response."""
ReadQuery = Annotated[ResponseQuery, Query()]
ItemsQuery = Annotated[InputItemsQuery, Query()]
AgentName = Annotated[str | None, Header(alias="X-Agent-Name", max_length=200)]


def create_app(
    backend: Backend,
    store: TraceStore,
    *,
    key: str | None = None,
    limits: GatewayLimits | None = None,
    embedder: Embedder | None = None,
    hosts: Collection[str] = (),
) -> FastAPI:
    """The application. `key`: the gateway's own API key; `embedder`: what `/v1/embeddings` uses;
    `hosts`: names that it answers to besides those of this machine.

    Whoever made backend and store closes them. Raises BadInput for a host that is none.
    """
    limits = limits or GatewayLimits()
    gateway = Gateway(backend, store, key, limits, embedder)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        sweeping = asyncio.ensure_future(gateway.sweep())
        yield
        sweeping.cancel()
        gateway.calls.close()

    app = FastAPI(
        title="memograd gateway",
        lifespan=lifespan,
        # What it offers is told to those who may ask: `_routes` has both pages.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.router.routes.extend(_routes(gateway).routes)  # `include_router` would build each again
    explain_errors(app)
    too_large = f"The request has more than {limits.max_body} bytes."
    refusal = error_body(too_large, kind="invalid_request_error", code="too_large")
    app.add_middleware(BodyLimit, limit=limits.max_body, refusal=refusal)
    too_slow = f"The request did not arrive within {limits.body_seconds:g} s."
    refusal = error_body(too_slow, kind="invalid_request_error", code="too_slow")
    app.add_middleware(SlowBody, seconds=limits.body_seconds, refusal=refusal)
    app.add_middleware(HostCheck, hosts=[*map(checked_host, hosts)], refusal=_foreign)
    app.add_middleware(SafeHeaders)
    return app


def _page_of_paths(description: Mapping[str, Any]) -> str:
    """All paths as a page without scripts: FastAPI's own loads some from a foreign host."""
    rows = "".join(
        f"<tr><td>{method.upper()}</td><td><code>{html.escape(path)}</code></td>"
        f"<td>{html.escape(told.get('description') or told.get('summary', ''))}</td></tr>"
        for path, methods in description["paths"].items()
        for method, told in methods.items()
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>memograd gateway</title>'
        '<h1>memograd gateway</h1><p><a href="/openapi.json">openapi.json</a></p>'
        f"<table>{rows}</table>"
    )


def _routes(gateway: Gateway) -> APIRouter:
    """All paths; those under a rollout want its own key."""
    routes = APIRouter(route_class=StrictRoute, responses=ERRORS, default_response_class=Json)
    own = Depends(gateway.check_own)
    owned = Depends(gateway.rollout)

    @routes.get("/health", responses={500: {"model": ErrorBody}})
    async def health() -> dict[str, Any]:
        return {
            "status": "ok",
            "model": gateway.backend.model,
            "policy_version": gateway.backend.policy_version,
        }

    @routes.get("/openapi.json", dependencies=[own], include_in_schema=False)
    async def openapi(request: Request) -> dict[str, Any]:
        app: FastAPI = request.app
        return app.openapi()

    @routes.get("/docs", dependencies=[own], include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        app: FastAPI = request.app
        return HTMLResponse(_page_of_paths(app.openapi()))

    @routes.get("/v1/models", dependencies=[own])
    async def models() -> dict[str, Any]:
        return gateway.models()

    @routes.get("/v1/models/{name:path}", dependencies=[own])
    async def one_model(name: str) -> dict[str, Any]:
        return gateway.one_model(name)

    @routes.post("/v1/chat/completions", dependencies=[own], response_model=None)
    async def chat(request: Request, asked: ChatRequest, agent: AgentName = None) -> Response:
        return await gateway.chat(request, asked, None, agent)

    @routes.post("/v1/completions", dependencies=[own], response_model=None)
    async def complete(
        request: Request, asked: CompletionRequest, agent: AgentName = None
    ) -> Response:
        return await gateway.complete(request, asked, None, agent)

    @routes.post("/v1/responses", dependencies=[own], response_model=None)
    async def respond(
        request: Request, asked: ResponseRequest, agent: AgentName = None
    ) -> Response:
        return await gateway.respond(request, asked, None, agent)

    @routes.get("/v1/responses/{response_id}", dependencies=[own])
    async def kept(response_id: str, query: ReadQuery) -> dict[str, Any]:
        query.check()
        return await gateway.responses.told(response_id, None)

    @routes.delete("/v1/responses/{response_id}", dependencies=[own])
    async def delete_kept(response_id: str) -> dict[str, Any]:
        return await gateway.responses.delete(response_id, None)

    @routes.get("/v1/responses/{response_id}/input_items", dependencies=[own])
    async def kept_items(response_id: str, query: ItemsQuery) -> dict[str, Any]:
        return await gateway.responses.input_items(response_id, None, query)

    @routes.api_route("/v1/responses/{rest:path}", dependencies=[own], **NOT_KEPT)
    async def kept_response(rest: str) -> Response:
        raise gateway.not_kept(rest)

    @routes.post("/v1/embeddings", dependencies=[own], response_model=None)
    async def embeddings(asked: EmbeddingRequest) -> Response:
        return await gateway.embed(asked)

    @routes.post("/rollout", dependencies=[own])
    async def new_rollout(request: Request, asked: NewRolloutRequest) -> dict[str, Any]:
        made = await gateway.calls.in_store(
            lambda: gateway.store.create(
                metadata=asked.metadata,
                seconds=asked.seconds,
                seed=asked.seed,
                policy_version=gateway.backend.policy_version,
            )
        )
        base_url = f"{str(request.base_url).rstrip('/')}/rollout/{made.record.id}/v1"
        return {"id": made.record.id, "base_url": base_url, "api_key": made.api_key}

    @routes.get("/rollout/{rollout_id}")
    async def rollout(owned_id: str = owned) -> dict[str, Any]:
        return await gateway.calls.in_store(lambda: _shown(gateway.store.rollout(owned_id)))

    @routes.post("/rollout/{rollout_id}/reward")
    async def reward(asked: RewardRequest, owned_id: str = owned) -> dict[str, Any]:
        return _shown(await gateway.calls.in_store(gateway.store.reward, owned_id, asked.reward))

    @routes.post("/rollout/{rollout_id}/failure")
    async def failure(asked: FailureRequest, owned_id: str = owned) -> dict[str, Any]:
        return _shown(await gateway.calls.in_store(gateway.store.fail, owned_id, asked.error))

    @routes.get("/rollout/{rollout_id}/v1/models")
    async def rollout_models(_owned_id: str = owned) -> dict[str, Any]:
        return gateway.models()

    @routes.get("/rollout/{rollout_id}/v1/models/{name:path}")
    async def rollout_model(name: str, _owned_id: str = owned) -> dict[str, Any]:
        return gateway.one_model(name)

    @routes.post("/rollout/{rollout_id}/v1/chat/completions", response_model=None)
    async def rollout_chat(
        request: Request,
        asked: ChatRequest,
        owned_id: str = owned,
        agent: AgentName = None,
    ) -> Response:
        return await gateway.chat(request, asked, owned_id, agent)

    @routes.post("/rollout/{rollout_id}/v1/completions", response_model=None)
    async def rollout_complete(
        request: Request,
        asked: CompletionRequest,
        owned_id: str = owned,
        agent: AgentName = None,
    ) -> Response:
        return await gateway.complete(request, asked, owned_id, agent)

    @routes.post("/rollout/{rollout_id}/v1/responses", response_model=None)
    async def rollout_respond(
        request: Request,
        asked: ResponseRequest,
        owned_id: str = owned,
        agent: AgentName = None,
    ) -> Response:
        return await gateway.respond(request, asked, owned_id, agent)

    @routes.get("/rollout/{rollout_id}/v1/responses/{response_id}")
    async def rollout_kept(
        response_id: str, query: ReadQuery, owned_id: str = owned
    ) -> dict[str, Any]:
        query.check()
        return await gateway.responses.told(response_id, owned_id)

    @routes.delete("/rollout/{rollout_id}/v1/responses/{response_id}")
    async def rollout_delete_kept(response_id: str, owned_id: str = owned) -> dict[str, Any]:
        return await gateway.responses.delete(response_id, owned_id)

    @routes.get("/rollout/{rollout_id}/v1/responses/{response_id}/input_items")
    async def rollout_kept_items(
        response_id: str, query: ItemsQuery, owned_id: str = owned
    ) -> dict[str, Any]:
        return await gateway.responses.input_items(response_id, owned_id, query)

    @routes.api_route("/rollout/{rollout_id}/v1/responses/{rest:path}", **NOT_KEPT)
    async def rollout_kept_response(rest: str, _owned_id: str = owned) -> Response:
        raise gateway.not_kept(rest)

    @routes.post("/rollout/{rollout_id}/v1/embeddings", response_model=None)
    async def rollout_embeddings(asked: EmbeddingRequest, _owned_id: str = owned) -> Response:
        return await gateway.embed(asked)

    return routes


def _foreign(why: str) -> dict[str, Any]:
    return error_body(why, kind="invalid_request_error", code="foreign_host")


def _shown(record: RolloutRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name != "seed"}
