"""The limit on bodies, over real connections: what is kept, what is refused, and that a client
which is still sending reads the refusal instead of a reset."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from memograd.web import body_limit
from memograd.web.body_limit import BodyLimit

LIMIT = 1000


async def echo(scope, receive, send) -> None:
    """Answer with the number of bytes of the body."""
    message = await receive()
    assert not message["more_body"]
    size = str(len(message["body"])).encode()
    headers = [(b"content-length", str(len(size)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": size})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    app = BodyLimit(echo, LIMIT, {"detail": "too large"})
    config = uvicorn.Config(app, port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


def request(size: int, *, chunked: bool) -> bytes:
    if not chunked:
        return b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size
    head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n" % size + b"x" * size + b"\r\n" if size else b""
    return head + chunk + b"0\r\n\r\n"


def sent(port: int, *parts: bytes) -> bytes:
    """All that is answered, read only after everything was sent: a whole 200, or what comes until
    the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        for part in parts:
            connection.sendall(part)
        answer = b""
        while part := connection.recv(65536):
            answer += part
            if answer.startswith(b"HTTP/1.1 200") and is_whole(answer):
                break
        return answer


def is_whole(answer: bytes) -> bool:
    head, ended, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    return bool(ended) and length is not None and len(body) == int(length[1])


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("size", [0, 1, LIMIT])
def test_a_body_within_the_limit_is_passed_on_whole(port, size: int, chunked: bool) -> None:
    assert sent(port, request(size, chunked=chunked)).endswith(b"\r\n\r\n%d" % size)


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("size", [LIMIT + 1, 3_000_000])
def test_who_sends_too_much_reads_the_refusal(port, size: int, chunked: bool) -> None:
    for _ in range(5):
        answer = sent(port, request(size, chunked=chunked))
        assert answer.startswith(b"HTTP/1.1 413"), answer[:100]
        assert answer.endswith(b'{"detail": "too large"}')


def test_a_declared_length_of_any_size_is_refused(port) -> None:
    head = b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    answer = sent(port, head % 10**18)
    assert answer.startswith(b"HTTP/1.1 413"), "and not by 100 Continue"


def test_who_never_ends_is_left(port, monkeypatch) -> None:
    monkeypatch.setattr(body_limit, "LINGER_SECONDS", 0.1)
    answer = sent(port, request(5000, chunked=False)[:-1])
    assert answer.startswith(b"HTTP/1.1 413"), "and the connection is closed"


def test_a_body_that_comes_byte_by_byte_is_not_copied_each_time() -> None:
    """With a copy of four megabytes for every byte this takes minutes."""
    large, bytes_ = 2**22, 50_000
    parts = iter([b"x" * large, *[b"x"] * bytes_])
    left = bytes_ + 1

    async def receive() -> dict[str, Any]:
        nonlocal left
        left -= 1
        return {"type": "http.request", "body": next(parts), "more_body": left > 0}

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    app = BodyLimit(echo, large + bytes_, {"detail": "too large"})
    asyncio.run(app({"type": "http", "headers": []}, receive, send))
    assert sent[-1]["body"] == str(large + bytes_).encode()
