"""Failures as the gateway tells them: a status and OpenAI's error form, whatever went wrong.

Invariant: nothing of a bug is told to whoever asks; its traceback is in the log.
"""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from memograd.errors import BadInput, MemogradError
from memograd.gateway.answers import Json
from memograd.gateway.protocol import Refused, error_body
from memograd.gateway.store import WrongState

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
        fields = (str(part) for part in first["loc"][1:])  # and, in brackets, kinds of values
        where = ".".join(part for part in fields if part.isalnum() or part.isidentifier())
        message = f"{where or 'The request'}: {first['msg']}."
        if first["type"] == "json_invalid":
            where = ""
            message = f"The request is not JSON: {first['ctx']['error']}."
        elif first["loc"] == ("body",) and first["type"] != "missing":
            message = "The request is no JSON object; is its Content-Type application/json?"
        body = error_body(message, kind="invalid_request_error", param=where or None)
        return Json(body, status_code=400)

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> Json:
        body = error_body(str(error.detail), kind="invalid_request_error")
        return Json(body, status_code=error.status_code, headers=error.headers)

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
    if isinstance(error, Refused):
        return error.status, error.body
    if isinstance(error, WrongState):
        return 409, error_body(str(error), kind="invalid_request_error", code="rollout_over")
    if isinstance(error, BadInput):
        return 400, error_body(str(error), kind="invalid_request_error")
    return 500, error_body(str(error), kind="server_error")
