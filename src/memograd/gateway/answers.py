"""Answers in OpenAI's form: one JSON object, the events of a stream, or a failure.

Each API of OpenAI's has a form of its own: chats here, plain texts in `completions_api`, responses
in `responses_answer`; a failure is a status and OpenAI's error form, whatever went wrong.

Invariants: the pieces of a stream, put together, are the object's message; nothing of a bug is told
to whoever asks, and its traceback is in the log.
"""

from __future__ import annotations

import base64
import logging
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from memograd.errors import BadInput, MemogradError
from memograd.gateway.backend import BackendAnswer
from memograd.gateway.conversation import answer_message
from memograd.gateway.database import dump
from memograd.gateway.protocol import CallRefused, ChatRequest, error_body, field_error
from memograd.gateway.store import WrongState
from memograd.web.headers import allowed

if TYPE_CHECKING:
    import numpy as np


DONE = "data: [DONE]\n\n"


class Json(JSONResponse):
    """JSON of anything that was said, half a surrogate pair included, which is escaped."""

    def render(self, content: Any) -> bytes:
        """The bytes to send."""
        return dump(content).encode("utf-8")


class AnswerForm(Protocol):
    """How one API writes an answer, whole or as the events of a stream."""

    def whole(self, answer: BackendAnswer) -> dict[str, Any]:
        """The answer as one object."""
        ...

    def opening(self) -> Iterator[str]:
        """The events before any text."""
        ...

    def more(self, place: int, text: str) -> Iterator[str]:
        """The events of more text of a choice."""
        ...

    def endings(self, answer: BackendAnswer) -> Iterator[str]:
        """The events after the last text."""
        ...

    def failure(self, body: dict[str, Any]) -> str:
        """The event of a stream that breaks off; `body` is OpenAI's error form."""
        ...


class ChatForm:
    """`/v1/chat/completions`: a `chat.completion`, or its chunks."""

    def __init__(self, model: str, asked: ChatRequest) -> None:
        self._id = f"chatcmpl-{secrets.token_hex(12)}"
        self._model = model
        self._asked = asked

    def whole(self, answer: BackendAnswer) -> dict[str, Any]:
        """A `chat.completion`."""
        return {
            **head("chat.completion", self._id, answer.model),
            "choices": [
                {
                    "index": place,
                    "message": {**answer_message(choice), "refusal": None},
                    "finish_reason": choice.finish_reason,
                    "logprobs": self._logprobs(answer, place),
                }
                for place, choice in enumerate(answer.choices)
            ],
            "usage": usage(answer),
        }

    def opening(self) -> Iterator[str]:
        """Every choice is an assistant's message."""
        for place in range(self._asked.n or 1):
            yield self._piece(place, {"role": "assistant", "content": ""})

    def more(self, place: int, text: str) -> Iterator[str]:
        """A chunk with more of a choice's message."""
        yield self._piece(place, {"content": text})

    def endings(self, answer: BackendAnswer) -> Iterator[str]:
        """Tool calls, reasons, usage."""
        chunk = head("chat.completion.chunk", self._id, answer.model)
        for place, choice in enumerate(answer.choices):
            delta: dict[str, Any] = {}
            if choice.tool_calls:
                calls = [{"index": n, **call} for n, call in enumerate(choice.tool_calls)]
                delta = {"tool_calls": calls}
            ended = {
                "index": place,
                "delta": delta,
                "finish_reason": choice.finish_reason,
                "logprobs": self._logprobs(answer, place),
            }
            yield event({**chunk, "choices": [ended]})
        if self._asked.stream_options and self._asked.stream_options.include_usage:
            yield event({**chunk, "choices": [], "usage": usage(answer)})
        yield DONE

    def failure(self, body: dict[str, Any]) -> str:
        """The error as an event."""
        return event(body)

    def _piece(self, place: int, delta: dict[str, Any]) -> str:
        choice = {"index": place, "delta": delta, "finish_reason": None, "logprobs": None}
        chunk = head("chat.completion.chunk", self._id, self._model)
        return event({**chunk, "choices": [choice]})

    def _logprobs(self, answer: BackendAnswer, place: int) -> dict[str, Any] | None:
        tokens = token_logprobs(answer, place) if self._asked.logprobs else None
        return None if tokens is None else {"content": tokens, "refusal": None}


def event(body: dict[str, Any]) -> str:
    """A server-sent event."""
    return f"data: {dump(body)}\n\n"


def usage(answer: BackendAnswer) -> dict[str, int]:
    """Tokens in and out."""
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }


def embeddings(vectors: np.ndarray, model: str, *, as_base64: bool) -> dict[str, Any]:
    """A list of `vectors` [n, d]. Embedders do not count tokens, so usage says 0."""
    return {
        "object": "list",
        "model": model,
        "data": [
            {
                "object": "embedding",
                "index": place,
                "embedding": (
                    base64.b64encode(vector.astype("<f4").tobytes()).decode()
                    if as_base64
                    else vector.tolist()
                ),
            }
            for place, vector in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": 0, "total_tokens": 0},
    }


def models(names: Sequence[str]) -> dict[str, Any]:
    """The list of models."""
    return {"object": "list", "data": [model(name) for name in names]}


def model(name: str) -> dict[str, Any]:
    """One of them."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "memograd"}


def head(kind: str, answer_id: str, model_name: str) -> dict[str, Any]:
    """What an object or a chunk begins with."""
    return {"id": answer_id, "object": kind, "created": int(time.time()), "model": model_name}


def token_logprobs(answer: BackendAnswer, place: int) -> list[dict[str, Any]] | None:
    """A choice's tokens with their log-probabilities and alternatives; None where none are
    known."""
    values = answer.choices[place].logprobs
    if values is None:
        return None
    texts = answer.token_texts[place]
    tops = answer.tops[place] or [[]] * len(values)
    return [
        {
            **_token(text, value),
            "top_logprobs": [_token(other, logprob) for other, logprob in alternatives],
        }
        for text, value, alternatives in zip(texts, values, tops, strict=True)
    ]


def _token(text: str, logprob: float) -> dict[str, Any]:
    # JSON has no infinity; OpenAI's servers write -9999 for a token that cannot be.
    shown = max(logprob, -9999.0)
    return {"token": text, "logprob": shown, "bytes": list(text.encode("utf-8", "replace"))}


logger = logging.getLogger(__name__)


def explain_errors(app: FastAPI) -> None:
    """Every failure in OpenAI's form."""

    @app.exception_handler(MemogradError)
    async def ours(_: Request, error: MemogradError) -> Json:
        status, body = _body_of(error)
        return Json(body, status_code=status)

    @app.exception_handler(RequestValidationError)
    async def not_understood(_: Request, error: RequestValidationError) -> Json:
        first = error.errors()[0]
        where, message = field_error(error.errors())
        if first["type"] == "json_invalid":
            where = ""
            message = f"The request is not JSON: {first['ctx']['error']}."
        elif first["loc"] == ("body",):
            message = "The request is no JSON object; is its Content-Type application/json?"
            if first["type"] == "missing":
                message = "The request has no body: send a JSON object."
        body = error_body(message, kind="invalid_request_error", param=where or None)
        return Json(body, status_code=400)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Json:
        path = request.url.path[:200]
        message, headers = str(error.detail), dict(error.headers or {})
        if error.status_code == 404:
            message = f"There is no path {path} here: GET /docs lists those that there are."
            if "v1" not in path.split("/"):
                message = f"There is no path {path} here: the base URL of a client ends in /v1."
        elif error.status_code == 405:
            headers["Allow"] = allowed(app.routes, request.scope)
            message = f"{path} does not take {request.method}, but {headers['Allow']}."
        body = error_body(message, kind="invalid_request_error")
        return Json(body, status_code=error.status_code, headers=headers)

    @app.exception_handler(Exception)
    async def bug(_: Request, error: Exception) -> Json:
        return Json(_bug(), status_code=500)


def told(error: BaseException) -> tuple[int, dict[str, Any]]:
    """Status and body of what ended a stream; a bug goes into the log."""
    if isinstance(error, MemogradError):
        return _body_of(error)
    logger.error("a call failed", exc_info=error)
    return 500, _bug()


def _bug() -> dict[str, Any]:
    """Nothing of a bug is told to whoever asks."""
    return error_body("The gateway failed; its log says how.", kind="server_error")


def _body_of(error: MemogradError) -> tuple[int, dict[str, Any]]:
    if isinstance(error, CallRefused):
        return error.status, error.body
    if isinstance(error, WrongState):
        return 409, error_body(str(error), kind="invalid_request_error", code="rollout_over")
    if isinstance(error, BadInput):
        return 400, error_body(str(error), kind="invalid_request_error")
    return 500, error_body(str(error), kind="server_error")
