"""Every answer tells the browser to keep it to itself, whoever asks and however it is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI, Response
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient

from memograd.web.headers import SAFE, SafeHeaders


@pytest.fixture(scope="module")
def web() -> TestClient:
    app = FastAPI()

    @app.get("/kept")
    def kept() -> Response:
        headers = {"Cache-Control": "max-age=60", "X-Frame-Options": "SAMEORIGIN"}
        return Response("kept", headers=headers)

    @app.get("/stream")
    def stream() -> Response:
        async def parts() -> AsyncIterator[str]:
            yield "a"
            await asyncio.sleep(0)
            yield "b"

        return StreamingResponse(parts())

    app.add_middleware(SafeHeaders)
    return TestClient(app)


@pytest.mark.parametrize("path", ["/stream", "/nowhere", "/openapi.json"])
def test_all_answers_have_them(web: TestClient, path: str) -> None:
    headers = web.get(path).headers
    assert {name: headers.get(name) for name in SAFE} == dict(SAFE)
    assert headers["Cache-Control"] == "no-store"


def test_a_route_says_itself_what_may_be_kept_and_nothing_else(web: TestClient) -> None:
    answer = web.get("/kept")
    assert answer.text == "kept"
    assert answer.headers["Cache-Control"] == "max-age=60"
    assert answer.headers.get_list("X-Frame-Options") == ["DENY"]


def test_the_life_of_the_application_is_let_through() -> None:
    seen: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(SafeHeaders(application)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan"]
