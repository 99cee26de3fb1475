"""The scoring server: `/score`, `/score-pair`, `/score-batch` and `/health`.

Safe by default: it binds to this machine, and to anything else only with an API key, which every
request but `/health` must then bring as `Authorization: Bearer KEY`. It answers to the names of
this machine, to the address that was connected to and to names that are given, and to pages of no
other site. Bodies, answers of a request and answers that wait are limited.

Concurrent requests share forwards (`JoiningScorer`). They wait in a queue; one worker takes all
that wait (up to `max_batch` answers), scores them together in a thread of its own, and gives every
request its scores. Whoever arrives meanwhile makes the next batch, so nobody waits for a timer, and
the batches grow with the load.

Invariants: the answer is a finite score of exactly what was asked, or an error with a sentence;
every request gets exactly its own scores or the error of its own batch, and a failing request is
scored again alone, so it fails nobody else.
"""

from __future__ import annotations

import asyncio
import hmac
import math
from collections import deque
from collections.abc import AsyncIterator, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memograd.errors import BadInput, MemogradError
from memograd.reward_model import api
from memograd.reward_model.api import Item, Scorer
from memograd.reward_model.length import controlled
from memograd.web.body_limit import BodyLimit
from memograd.web.host_check import HostCheck, checked_host, is_loopback

if TYPE_CHECKING:
    from fastapi import FastAPI


MAX_BODY_BYTES = 4 * 1024 * 1024
REMEMBERED = 1000  # batches; a server runs for months
API_KEY_VARIABLE = "MEMOGRAD_REWARD_MODEL_KEY"
"""Environment variable that holds the key, for the server and for whoever asks it."""


def make_app(
    scorer: Scorer,
    *,
    name: str,
    api_key: str | None = None,
    max_batch: int = 64,
    max_body_bytes: int = MAX_BODY_BYTES,
    hosts: Collection[str] = (),
) -> FastAPI:
    """The server over `scorer` as an ASGI application; `name` is what `/health` calls it.

    hosts: names that it answers to besides those of this machine. Raises BadInput for one that is
    none.
    """
    try:
        from fastapi import Depends, FastAPI, Header, HTTPException, Request
        from fastapi.exceptions import RequestValidationError
        from fastapi.responses import JSONResponse

        from memograd.web.headers import SafeHeaders
    except ModuleNotFoundError as error:
        raise BadInput(
            f"Serving needs the package {error.name}; run pip install 'memograd[gateway]'."
        ) from error

    joining = JoiningScorer(scorer, max_batch=max_batch)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with joining.running():
            yield

    def authorised(authorization: str | None = Header(None)) -> None:
        if api_key is None:
            return
        given = (authorization or "").encode()
        if not hmac.compare_digest(given, f"Bearer {api_key}".encode()):
            raise HTTPException(401, "Give the API key as Authorization: Bearer KEY.")

    app = FastAPI(
        title="memograd reward model",
        lifespan=lifespan,
        # FastAPI's pages load scripts from elsewhere; and whoever has no key is told nothing.
        openapi_url="/openapi.json" if api_key is None else None,
        docs_url=None,
        redoc_url=None,
    )
    refusal = {"detail": f"The body is larger than {max_body_bytes} bytes."}
    app.add_middleware(BodyLimit, limit=max_body_bytes, refusal=refusal)
    app.add_middleware(HostCheck, hosts=[*map(checked_host, hosts)], refusal=_foreign)
    app.add_middleware(SafeHeaders)
    app.state.joining = joining
    guarded: dict[str, Any] = {"dependencies": [Depends(authorised)]}

    async def scores(items: Sequence[Item], length_control: bool) -> list[float]:
        slope = scorer.length_slope() if length_control else 0.0
        found = await joining.score(items)
        return [
            controlled(score, item.answer, slope) for score, item in zip(found, items, strict=True)
        ]

    @app.post("/score", **guarded)
    async def score(asked: api.ScoreRequest) -> api.ScoreResponse:
        [found] = await scores([asked.item(asked.answer)], asked.length_control)
        return api.ScoreResponse(score=found)

    @app.post("/score-pair", **guarded)
    async def score_pair(asked: api.PairRequest) -> api.PairResponse:
        items = [asked.item(asked.first), asked.item(asked.second)]
        return _compared(*await scores(items, asked.length_control))

    @app.post("/score-batch", **guarded)
    async def score_batch(asked: api.BatchRequest) -> api.BatchResponse:
        return api.BatchResponse(scores=await scores(asked.asked(), asked.length_control))

    @app.get("/health")
    async def health() -> api.Health:
        try:
            slope: float | None = scorer.length_slope()
        except BadInput:
            slope = None
        return api.Health(status="ok", model=name, length_slope=slope)

    @app.exception_handler(MemogradError)
    async def explained(_: Request, error: MemogradError) -> JSONResponse:
        status = 503 if isinstance(error, Busy) else 400 if isinstance(error, BadInput) else 500
        return JSONResponse({"detail": str(error)}, status)

    @app.exception_handler(RequestValidationError)
    async def not_understood(_: Request, error: RequestValidationError) -> JSONResponse:
        # Without what was sent, which may be megabytes, or nothing that JSON can hold.
        first = max(error.errors(), key=lambda one: len(one["loc"]))
        fields = (str(part) for part in first["loc"][1:])
        where = ".".join(part for part in fields if part.isalnum() or part.isidentifier())
        if first["type"] == "json_invalid":
            return JSONResponse({"detail": f"The body is not JSON: {first['ctx']['error']}."}, 422)
        if not where:
            said = "The body is no JSON object; is its Content-Type application/json?"
            return JSONResponse({"detail": said}, 422)
        return JSONResponse({"detail": f"{where}: {first['msg']}."}, 422)

    @app.exception_handler(Exception)
    async def bug(_: Request, error: Exception) -> JSONResponse:
        # The traceback is in the log.
        return JSONResponse({"detail": "The server failed; its log says how."}, 500)

    return app


def check_binding(host: str, api_key: str | None) -> None:
    """Refuse to listen beyond this machine without an API key."""
    if not is_loopback(host) and not api_key:
        raise BadInput(
            f"--host {host} can be reached from other machines: set an API key in "
            f"{API_KEY_VARIABLE}, or leave --host out to serve this machine only."
        )


def serve(
    scorer: Scorer,
    *,
    name: str,
    host: str = "127.0.0.1",
    port: int = 8200,
    api_key: str | None = None,
    max_batch: int = 64,
    max_body_bytes: int = MAX_BODY_BYTES,
    hosts: Collection[str] = (),
) -> int | None:
    """Serve until SIGINT or SIGTERM; returns the number of the signal.

    hosts: names that clients call it by, besides `host`. Raises BadInput where it cannot listen.
    """
    check_binding(host, api_key)
    app = make_app(
        scorer,
        name=name,
        api_key=api_key,
        max_batch=max_batch,
        max_body_bytes=max_body_bytes,
        hosts=(host, *hosts),
    )
    from memograd.web.running import listen
    from memograd.web.running import serve as run

    return run(app, listen(host, port))


def _foreign(why: str) -> dict[str, Any]:
    return {"detail": why}


def _compared(first: float, second: float) -> api.PairResponse:
    margin = first - second
    likely = 1 / (1 + math.exp(-abs(margin)))
    return api.PairResponse(
        first=first,
        second=second,
        margin=margin,
        probability=likely if margin >= 0 else 1 - likely,
        better="tie" if margin == 0 else "first" if margin > 0 else "second",
    )


class Busy(MemogradError):
    """More answers wait than the server takes; try again later."""


@dataclass(frozen=True)
class _Waiting:
    items: Sequence[Item]
    scores: asyncio.Future[list[float]]


class JoiningScorer:
    """An asynchronous front of a scorer; use it within `running()`.

    max_batch: answers of one forward, at most (one request is never cut). max_waiting: answers that
    may wait; a request beyond them raises `Busy`. batches: sizes of the last batches scored.
    """

    def __init__(self, scorer: Scorer, *, max_batch: int = 64, max_waiting: int = 4096) -> None:
        self._scorer = scorer
        self._max_batch = max_batch
        self._max_waiting = max_waiting
        self._waiting: list[_Waiting] = []
        self._arrived = asyncio.Event()
        self.batches: deque[int] = deque(maxlen=REMEMBERED)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Scores requests within this block; those that still wait at its end are cancelled."""
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="reward-model") as thread:
            worker = asyncio.create_task(self._work(thread))
            try:
                yield
            finally:
                worker.cancel()
                with suppress(asyncio.CancelledError):
                    await worker
                for one in self._waiting:
                    one.scores.cancel()

    async def score(self, items: Sequence[Item]) -> list[float]:
        """One score per item; raises what the scorer raises, or `Busy`."""
        if sum(len(one.items) for one in self._waiting) + len(items) > self._max_waiting:
            raise Busy("Too many answers are waiting to be scored; try again later.")
        one = _Waiting(items, asyncio.get_running_loop().create_future())
        self._waiting.append(one)
        self._arrived.set()
        try:
            return await one.scores
        finally:
            if one in self._waiting:  # whoever asked went away
                self._waiting.remove(one)

    async def _work(self, thread: ThreadPoolExecutor) -> None:
        while True:
            await self._arrived.wait()
            batch = self._next_batch()
            if not self._waiting:
                self._arrived.clear()
            if batch:
                await self._score_batch(batch, thread)

    def _next_batch(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        size = 0
        while self._waiting and (
            not batch or size + len(self._waiting[0].items) <= self._max_batch
        ):
            one = self._waiting.pop(0)
            batch.append(one)
            size += len(one.items)
        return batch

    async def _score_batch(self, batch: list[_Waiting], thread: ThreadPoolExecutor) -> None:
        items = [item for one in batch for item in one.items]
        self.batches.append(len(items))
        loop = asyncio.get_running_loop()
        try:
            scores = await loop.run_in_executor(thread, self._scorer.score, items)
        except asyncio.CancelledError:
            for one in batch:
                one.scores.cancel()
            raise
        except Exception as error:
            if len(batch) == 1:
                if not batch[0].scores.done():
                    batch[0].scores.set_exception(error)
                return
            for one in batch:
                await self._score_batch([one], thread)
            return
        start = 0
        for one in batch:
            end = start + len(one.items)
            if not one.scores.done():
                one.scores.set_result(scores[start:end])
            start = end
