"""How a request is answered: whose call it is, a place among the calls, an answer of its API.

Chats, plain texts and responses differ in how they are read and written; between, a call is a call
(`calls`). An agent's name, for which traces and selective training look, is

    1. the header X-Agent-Name     3. user
    2. metadata.agent              4. the beginning of what it was told to be, and a digest of it

Frameworks (openai-agents, LangGraph, LangChain) send no names of their agents, but the agents of a
program are told different things in their system prompts, so the prompt names them:
"answer-from-what-the-tool-5d41c0". Numbers and white space are left out of the digest, because many
prompts hold today's date. An agent that was told nothing is "agent".

Invariants: a place is free again however a call ends; a name is a function of the request alone,
the same in every rollout and every run.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Annotated, Any, Final

from fastapi import Header, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from memograd.errors import MemogradError
from memograd.gateway import answers, completions_api, responses_kept
from memograd.gateway.admission import (
    CallPlace,
    CallPlaces,
    GatewayLimits,
    KnownKeys,
    bearer,
    check_key,
    unauthorised,
)
from memograd.gateway.answers import AnswerForm, ChatForm, Json, told
from memograd.gateway.backend import Backend
from memograd.gateway.calls import BegunCall, Calls, ReaderGone
from memograd.gateway.completions_api import CompletionForm, CompletionRequest
from memograd.gateway.protocol import CallRefused, ChatRequest, EmbeddingRequest
from memograd.gateway.responses_answer import ResponseForm
from memograd.gateway.responses_kept import KeptResponses
from memograd.gateway.responses_request import ResponseRequest
from memograd.gateway.store import NoSuchRollout, TraceStore
from memograd.memory.embedders.embedder import Embedder

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 5.0
FIRST_TEXT_SECONDS = 5.0
"""How long a stream waits for its first text before it begins: failures till then have a status."""
GONE = 499
"""Nobody reads this status: the connection is closed."""

Authorization = Annotated[str | None, Header()]


class Gateway:
    """What the paths share: who may ask, and how each API is answered."""

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
        self.places = CallPlaces(limits.max_calls)
        self.store = store
        self.embedder = embedder
        self._key = key
        self._known = KnownKeys()
        self.responses = KeptResponses(self.calls)

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
        self, request: Request, asked: ChatRequest, rollout_id: str | None, header: str | None
    ) -> Response:
        """Answer a chat, whole or as a stream."""

        async def begin() -> tuple[BegunCall, AnswerForm]:
            begun = await self._begin(request, asked, rollout_id, header, {"api": "chat"})
            return begun, ChatForm(self.backend.model, asked)

        return await self._answer(request, begin)

    async def complete(
        self, request: Request, asked: CompletionRequest, rollout_id: str | None, header: str | None
    ) -> Response:
        """Go on with a text."""

        async def begin() -> tuple[BegunCall, AnswerForm]:
            api = {"api": completions_api.API}
            begun = await self._begin(request, asked.as_chat(), rollout_id, header, api)
            return begun, CompletionForm(self.backend.model, asked)

        return await self._answer(request, begin)

    async def respond(
        self, request: Request, asked: ResponseRequest, rollout_id: str | None, header: str | None
    ) -> Response:
        """Answer in the words of `/v1/responses`."""

        async def begin() -> tuple[BegunCall, AnswerForm]:
            chat = asked.as_chat(await self.responses.before(asked, rollout_id))
            kept = responses_kept.record_of(asked, chat)
            begun = await self._begin(request, chat, rollout_id, header, kept)
            response_id, hold = self.responses.follow(begun, asked)
            form = ResponseForm(response_id, self.backend.model, asked, begun.began_at, hold)
            return begun, form

        return await self._answer(request, begin)

    def not_kept(self, rest: str) -> CallRefused:
        """Why what else OpenAI has below `/v1/responses/` (to cancel a response, to count or to
        compact its input) is refused; by a status that clients do not try again."""
        return CallRefused(
            404,
            f"/v1/responses/{rest} is not served here: a response can be read, its input items "
            "listed, and it can be deleted; it is complete when it is told, so there is nothing to "
            "cancel.",
            code="not_served",
        )

    async def _begin(
        self,
        request: Request,
        asked: ChatRequest,
        rollout_id: str | None,
        header: str | None,
        kept: Mapping[str, Any],
    ) -> BegunCall:
        size = len(await request.body())
        return await self.calls.begin(asked, rollout_id, agent_name(asked, header), size, kept)

    async def _answer(
        self, request: Request, begin: Callable[[], Awaitable[tuple[BegunCall, AnswerForm]]]
    ) -> Response:
        """Take a place, begin the call, answer it in its API's form."""
        place = self.places.take()
        try:
            begun, form = await begin()
            if begun.request.stream:
                stream = _Stream(self, begun, form, place)
                place = CallPlace(None)  # the stream's now
                return stream
            answer = await self.calls.answer(begun, gone=lambda: _gone(request))
            return Json(form.whole(answer))
        except ReaderGone:
            return Response(status_code=GONE)
        finally:
            place.give_back()

    async def embed(self, asked: EmbeddingRequest) -> Json:
        """The vectors of texts."""
        if self.embedder is None:
            raise CallRefused(404, "This gateway has no embedder: start it with --embedder NAME.")
        embedder = self.embedder
        if asked.dimensions not in (None, embedder.dimension):
            raise CallRefused(
                400, f"The embedder makes vectors of {embedder.dimension}.", param="dimensions"
            )
        texts = [asked.input] if isinstance(asked.input, str) else asked.input
        place = self.places.take()
        try:
            vectors = await asyncio.to_thread(embedder.embed, texts)
        finally:
            place.give_back()
        as_base64 = asked.encoding_format == "base64"
        return Json(answers.embeddings(vectors, embedder.name, as_base64=as_base64))

    def models(self) -> dict[str, Any]:
        """What is served."""
        return answers.models(self._names())

    def one_model(self, name: str) -> dict[str, Any]:
        """One of what is served; `CallRefused` for any other, though each name is answered."""
        if name not in self._names():
            raise CallRefused(
                404,
                f"The model {name!r} is not served here: {', '.join(self._names())} is.",
                code="model_not_found",
                param="model",
            )
        return answers.model(name)

    def _names(self) -> list[str]:
        return [self.backend.model, *([self.embedder.name] if self.embedder else [])]


class _Stream(StreamingResponse):
    """An answer as server-sent events; its place is free when it ends, however it ends.

    What fails before there is any text, and soon, is refused with its own status, so that a client
    tries again what may be tried again; later, an event says it.
    """

    def __init__(
        self, gateway: Gateway, begun: BegunCall, form: AnswerForm, place: CallPlace
    ) -> None:
        self._gateway, self._begun, self._place = gateway, begun, place
        self._form = form
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
                status, body = told(error)
                await Json(body, status_code=status)(scope, receive, send)
                return
            await super().__call__(scope, receive, send)
        finally:
            gone.cancel()
            self._first.cancel()
            self._answering.cancel()
            self._place.give_back()

    async def _events(self) -> AsyncIterator[str]:
        for event in self._form.opening():
            yield event
        assert self._first is not None
        said = await self._first
        while said is not None:
            place, text = said
            if text:
                for event in self._form.more(place, text):
                    yield event
            said = await self._texts.get()
        error = self._answering.exception()
        if error is not None:
            yield self._form.failure(told(error)[1])
            return
        for event in self._form.endings(self._answering.result()):
            yield event


async def _gone(request: Request) -> None:
    """Return when the client has closed the connection; its body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


UNNAMED: Final = "agent"
LONGEST: Final = 200
WORDS, CHARACTERS = 5, 40

_CHANGES: Final = re.compile(r"[\d\s]+")
_WORD: Final = re.compile(r"[^\W\d_]+")


def agent_name(request: ChatRequest, header: str | None) -> str:
    """The name; `header` is X-Agent-Name as it came."""
    named = (request.metadata or {}).get("agent")
    given = as_utf8(header) or (named if isinstance(named, str) else None) or request.user
    return given[:LONGEST] if given else _name_of(_instructions(request))


def _instructions(request: ChatRequest) -> str:
    """The system messages before anything else is said; images and the like are no name."""
    told: list[str] = []
    for message in request.messages:
        if message.role not in ("system", "developer"):
            break
        content = message.content
        parts = [content] if isinstance(content, str) else [part.text for part in content or ()]
        told += [part for part in parts if part]
    return "\n".join(told)


def _name_of(instructions: str) -> str:
    words = _WORD.findall(instructions)[:WORDS]
    if not words:
        return UNNAMED
    digest = hashlib.sha256(_CHANGES.sub("", instructions).encode("utf-8", "surrogatepass"))
    return f"{'-'.join(words).lower()[:CHARACTERS]}-{digest.hexdigest()[:6]}"


def as_utf8(header: str | None) -> str | None:
    """A header's text: HTTP's own alphabet is Latin-1, what clients send beyond ASCII is UTF-8."""
    try:
        return header and header.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return header
