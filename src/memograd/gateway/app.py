"""The gateway as a web application: OpenAI's paths, and the same under every rollout's own address.

    POST /rollout                          a new rollout: id, base_url, api_key
    POST /rollout/{id}/v1/...              what OpenAI's clients call; every chat is captured
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
import json
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from memograd.body_limit import BodyLimit
from memograd.errors import BadInput, MemogradError
from memograd.gateway import responses
from memograd.gateway.backend import Backend
from memograd.gateway.calls import BegunCall, Calls, ReaderGone
from memograd.gateway.keys import KnownKeys, bearer, check_key, unauthorised
from memograd.gateway.limits import GatewayLimits, Place, Places
from memograd.gateway.protocol import (
    ChatRequest,
    EmbeddingRequest,
    ErrorBody,
    FailureRequest,
    NewRolloutRequest,
    Refused,
    RewardRequest,
    error_body,
)
from memograd.gateway.records import RolloutRecord
from memograd.gateway.store import NoSuchRollout, TraceStore, WrongState
from memograd.host_check import HostCheck, checked_host
from memograd.memory.embedders.embedder import Embedder

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 5.0
FIRST_TEXT_SECONDS = 5.0
"""How long a stream waits for its first text before it begins: failures till then have a status."""
GONE = 499
"""Nobody reads this status: the connection is closed."""

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody}
    for status in (400, 401, 404, 405, 409, 413, 422, 429, 500, 502, 503, 504)
}
Authorization = Annotated[str | None, Header()]
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
    gateway = _Gateway(backend, store, key, limits, embedder)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        sweeping = asyncio.ensure_future(gateway.sweep())
        yield
        sweeping.cancel()
        gateway.calls.close()

    app = FastAPI(
        title="memograd gateway",
        lifespan=lifespan,
        responses=ERRORS,
        default_response_class=responses.Json,
        # What it offers is told to those who may ask: `_routes` has both pages.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.include_router(_routes(gateway))
    _explain_errors(app)
    too_large = f"The request has more than {limits.max_body} bytes."
    refusal = error_body(too_large, kind="invalid_request_error", code="too_large")
    app.add_middleware(BodyLimit, limit=limits.max_body, refusal=refusal)
    app.add_middleware(HostCheck, hosts=[*map(checked_host, hosts)], refusal=_foreign)
    return app


class _Gateway:
    """What the paths share."""

    def __init__(
        self,
        backend: Backend,
        store: TraceStore,
        key: str | None,
        limits: GatewayLimits,
        embedder: Embedder | None,
    ) -> None:
        self.backend = backend
        self.calls = Calls(backend, store, limits)
        self.places = Places(limits.max_calls)
        self.store = store
        self.embedder = embedder
        self._key = key
        self._known = KnownKeys()

    def check_own(self, authorization: Authorization = None) -> None:
        """The gateway's key, where it has one."""
        check_key(bearer(authorization), self._key)

    async def rollout(self, rollout_id: str, authorization: Authorization = None) -> str:
        """The id of the rollout in the path, if the key is its own."""
        key = bearer(authorization)
        if self._known.opens(rollout_id, key):
            return rollout_id
        try:
            await self.calls.in_store(self.store.authenticate, rollout_id, key)
        except NoSuchRollout as error:
            raise unauthorised(str(error)) from None
        self._known.remember(rollout_id, key)
        return rollout_id

    async def sweep(self) -> None:
        """End rollouts that have crashed, now and then."""
        while True:
            await asyncio.sleep(min(SWEEP_SECONDS, self.store.idle_seconds / 2))
            try:
                await self.calls.sweep()
            except MemogradError:
                logger.exception("rollouts could not be swept; trying again")

    async def chat(
        self,
        request: Request,
        asked: ChatRequest,
        rollout_id: str | None,
        agent_name: str | None,
    ) -> Response:
        """Answer a chat, whole or as a stream."""
        named = (asked.metadata or {}).get("agent")
        agent = (
            _as_utf8(agent_name)
            or (named if isinstance(named, str) else None)
            or asked.user
            or "agent"
        )
        place = self.places.take()
        try:
            size = len(await request.body())
            begun = await self.calls.begin(asked, rollout_id, agent[:200], size)
            if asked.stream:
                stream = _Stream(self, begun, place)
                place = Place(None)  # the stream's now
                return stream
            answer_id = _answer_id()
            answer = await self.calls.answer(begun, gone=lambda: _gone(request))
            logprobs = bool(asked.logprobs)
            return responses.Json(responses.completion(answer, answer_id, logprobs=logprobs))
        except ReaderGone:
            return Response(status_code=GONE)
        finally:
            place.give_back()

    async def embed(self, asked: EmbeddingRequest) -> responses.Json:
        """The vectors of texts."""
        if self.embedder is None:
            raise Refused(404, "This gateway has no embedder: start it with --embedder NAME.")
        embedder = self.embedder
        if asked.dimensions not in (None, embedder.dimension):
            raise Refused(
                400, f"The embedder makes vectors of {embedder.dimension}.", param="dimensions"
            )
        texts = [asked.input] if isinstance(asked.input, str) else asked.input
        place = self.places.take()
        try:
            vectors = await asyncio.to_thread(embedder.embed, texts)
        finally:
            place.give_back()
        as_base64 = asked.encoding_format == "base64"
        return responses.Json(responses.embeddings(vectors, embedder.name, as_base64=as_base64))

    def models(self) -> dict[str, Any]:
        """What is served."""
        names = [self.backend.model, *([self.embedder.name] if self.embedder else [])]
        return responses.models(names)


class _Stream(StreamingResponse):
    """An answer as server-sent events; its place is free when it ends, however it ends.

    What fails before there is any text, and soon, is refused with its own status, so that a client
    tries again what may be tried again; later, an event says it.
    """

    def __init__(self, gateway: _Gateway, begun: BegunCall, place: Place) -> None:
        self._gateway, self._begun, self._place = gateway, begun, place
        self._texts: asyncio.Queue[tuple[int, str] | None] = asyncio.Queue()
        self._first: asyncio.Future[tuple[int, str] | None] | None = None
        super().__init__(self._events(), media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        self._answering = asyncio.ensure_future(
            self._gateway.calls.answer(
                self._begun, on_text=lambda place, text: self._texts.put_nowait((place, text))
            )
        )
        self._answering.add_done_callback(lambda _: self._texts.put_nowait(None))
        self._first = asyncio.ensure_future(self._texts.get())
        gone = asyncio.ensure_future(_gone(Request(scope, receive)))
        try:
            await asyncio.wait(
                {self._first, gone},
                timeout=FIRST_TEXT_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if gone.done():
                return
            gone.cancel()
            await asyncio.wait({gone})
            failed = self._first.done() and self._first.result() is None
            if failed and (error := self._answering.exception()) is not None:
                status, body = _told(error)
                await responses.Json(body, status_code=status)(scope, receive, send)
                return
            await super().__call__(scope, receive, send)
        finally:
            gone.cancel()
            self._first.cancel()
            self._answering.cancel()
            self._place.give_back()

    async def _events(self) -> AsyncIterator[str]:
        asked, model = self._begun.request, self._gateway.backend.model
        answer_id = _answer_id()
        for place in range(asked.n or 1):
            opening = {"role": "assistant", "content": ""}
            yield responses.piece(answer_id, model, place, opening)
        assert self._first is not None
        said = await self._first
        while said is not None:
            place, text = said
            if text:
                yield responses.piece(answer_id, model, place, {"content": text})
            said = await self._texts.get()
        error = self._answering.exception()
        if error is not None:
            yield responses.event(_told(error)[1])
            return
        options = asked.stream_options
        for event in responses.endings(
            self._answering.result(),
            answer_id,
            logprobs=bool(asked.logprobs),
            with_usage=bool(options and options.include_usage),
        ):
            yield event
        yield responses.DONE


class _StrictRequest(Request):
    """A request whose JSON is JSON: Python's parser takes NaN and Infinity, which no database, no
    other server and no client would."""

    async def json(self) -> Any:
        """The body."""
        if not hasattr(self, "_json"):
            self._json = json.loads(await self.body(), parse_constant=_no_constant)
        return self._json


class _StrictRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return handled


def _no_constant(name: str) -> None:
    raise json.JSONDecodeError(f"{name} is no number", name, 0)


def _routes(gateway: _Gateway) -> APIRouter:
    """All paths; those under a rollout want its own key."""
    routes = APIRouter(route_class=_StrictRoute)
    own = Depends(gateway.check_own)
    owned = Depends(gateway.rollout)

    @routes.get("/health")
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
    async def docs() -> Response:
        return get_swagger_ui_html(openapi_url="/openapi.json", title="memograd gateway")

    @routes.get("/v1/models", dependencies=[own])
    async def models() -> dict[str, Any]:
        return gateway.models()

    @routes.post("/v1/chat/completions", dependencies=[own], response_model=None)
    async def chat(request: Request, asked: ChatRequest, agent: AgentName = None) -> Response:
        return await gateway.chat(request, asked, None, agent)

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

    @routes.post("/rollout/{rollout_id}/v1/chat/completions", response_model=None)
    async def rollout_chat(
        request: Request,
        asked: ChatRequest,
        owned_id: str = owned,
        agent: AgentName = None,
    ) -> Response:
        return await gateway.chat(request, asked, owned_id, agent)

    @routes.post("/rollout/{rollout_id}/v1/embeddings", response_model=None)
    async def rollout_embeddings(asked: EmbeddingRequest, _owned_id: str = owned) -> Response:
        return await gateway.embed(asked)

    return routes


def _explain_errors(app: FastAPI) -> None:
    """Every failure in OpenAI's form."""

    @app.exception_handler(MemogradError)
    async def ours(_: Request, error: MemogradError) -> responses.Json:
        status, body = _body_of(error)
        return responses.Json(body, status_code=status)

    @app.exception_handler(RequestValidationError)
    async def not_understood(_: Request, error: RequestValidationError) -> responses.Json:
        first = error.errors()[0]
        fields = (str(part) for part in first["loc"][1:])  # and, in brackets, kinds of values
        where = ".".join(part for part in fields if part.isalnum() or part.isidentifier())
        message = f"{where or 'The request'}: {first['msg']}."
        if first["type"] == "json_invalid":
            where = ""
            message = f"The request is not JSON: {first['ctx']['error']}."
        elif first["loc"] == ("body",) and first["type"] != "missing":
            message = "The request is no JSON object; is its Content-Type application/json?"
        body = error_body(message, kind="invalid_request_error", param=where or None)
        return responses.Json(body, status_code=400)

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> responses.Json:
        body = error_body(str(error.detail), kind="invalid_request_error")
        return responses.Json(body, status_code=error.status_code, headers=error.headers)

    @app.exception_handler(Exception)
    async def bug(_: Request, error: Exception) -> responses.Json:
        # The traceback is in the log.
        return responses.Json(_bug(), status_code=500)


def _foreign(why: str) -> dict[str, Any]:
    return error_body(why, kind="invalid_request_error", code="foreign_host")


def _bug() -> dict[str, Any]:
    """Nothing of a bug is told to whoever asks."""
    return error_body("The gateway failed; its log says how.", kind="server_error")


def _told(error: BaseException) -> tuple[int, dict[str, Any]]:
    """Status and body of what ended a stream; a bug goes into the log."""
    if isinstance(error, MemogradError):
        return _body_of(error)
    logger.error("a call failed", exc_info=error)
    return 500, _bug()


def _body_of(error: MemogradError) -> tuple[int, dict[str, Any]]:
    if isinstance(error, Refused):
        return error.status, error.body
    if isinstance(error, WrongState):
        return 409, error_body(str(error), kind="invalid_request_error", code="rollout_over")
    if isinstance(error, BadInput):
        return 400, error_body(str(error), kind="invalid_request_error")
    return 500, error_body(str(error), kind="server_error")


def _as_utf8(header: str | None) -> str | None:
    """A header's text: HTTP's own alphabet is Latin-1, what clients send beyond ASCII is UTF-8."""
    try:
        return header and header.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return header


def _shown(record: RolloutRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name != "seed"}


def _answer_id() -> str:
    return f"chatcmpl-{secrets.token_hex(12)}"


async def _gone(request: Request) -> None:
    """Return when the client has closed the connection; its body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
