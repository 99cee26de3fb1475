"""Servers of ours over real connections: who sends or reads too slowly is cut, and nobody else."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from memograd.web import running as module
from memograd.web.running import running

HEAD = b"GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(module, "STALLED_SECONDS", 0.3)


def application(ended: threading.Event | None = None) -> FastAPI:
    app = FastAPI()

    @app.get("/hello")
    def hello() -> str:
        return "hello"

    @app.get("/said/{word}")
    def said(word: str, again: str) -> list[str]:
        return [word, again]

    @app.get("/endless")
    def endless() -> StreamingResponse:
        def parts() -> Iterator[bytes]:
            try:
                while True:
                    yield b"x" * 65_536
            finally:
                if ended is not None:
                    ended.set()

        return StreamingResponse(parts())

    return app


def connected(address: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=30)


def answered(connection: socket.socket) -> bytes:
    """One whole answer."""
    told = b""
    while not told.endswith(b'"hello"'):
        part = connection.recv(1000)
        assert part
        told += part
    return told


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("sent", [b"", HEAD[:-2], b"GET /hello HTTP/1.1\r\nX-A: " + b"a" * 5000])
def test_a_head_that_does_not_come_ends_the_connection(sent: bytes) -> None:
    with running(application()) as address, connected(address) as slow:
        slow.sendall(sent)
        assert slow.recv(1000) == b""


@pytest.mark.usefixtures("impatient")
def test_the_second_head_of_a_connection_is_waited_for_no_longer() -> None:
    with running(application()) as address, connected(address) as slow:
        slow.sendall(HEAD)
        assert answered(slow).startswith(b"HTTP/1.1 200")
        time.sleep(0.5)  # idle between requests for longer than a head may take
        slow.sendall(HEAD[:9])
        time.sleep(0.05)
        slow.sendall(HEAD[9:])
        assert answered(slow).startswith(b"HTTP/1.1 200")
        slow.sendall(HEAD[:9])
        assert slow.recv(1000) == b""


@pytest.mark.usefixtures("impatient")
def test_who_takes_nothing_of_an_answer_is_cut() -> None:
    with running(application()) as address, connected(address) as stalled:
        stalled.sendall(HEAD.replace(b"hello", b"endless"))
        time.sleep(2)
        taken = 0
        with contextlib.suppress(ConnectionResetError):
            while part := stalled.recv(1_000_000):
                taken += len(part)
                assert taken < 100_000_000  # it ends, instead of more and more


@pytest.mark.usefixtures("impatient")
def test_who_reads_slowly_is_not_cut() -> None:
    ended = threading.Event()
    with running(application(ended)) as address, connected(address) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        slow.sendall(HEAD.replace(b"hello", b"endless"))
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            assert slow.recv(1_000_000)
            time.sleep(0.01)
        assert not ended.is_set()


def test_heads_without_end_and_sockets_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    with running(application()) as address:
        with connected(address) as endless:
            endless.sendall(b"GET /hello HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 100_000)
            assert endless.recv(1000).startswith(b"HTTP/1.1 400")
        with connected(address) as upgrading:
            asked = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\n\r\n"
            upgrading.sendall(HEAD[:-2] + asked)
            assert upgrading.recv(1000).startswith(b"HTTP/1.1 200")  # answered as HTTP
        assert "WebSocket" not in caplog.text  # nobody needs to install anything for it
        answer = httpx.get(f"{address}/hello", trust_env=False)
        assert (answer.status_code, "server" in answer.headers) == (200, False)


def test_an_address_may_be_written_in_any_script() -> None:
    line, head = "GET /said/小红?again=é HTTP/1.1\r\n".encode(), b"Host: localhost\r\n\r\n"
    told = '["小红","é"]'.encode()
    with running(application()) as address, connected(address) as connection:
        for parts in ((line + head,), (line[:11], line[11:] + head), (line, head)):
            answer = b""
            for part in parts:  # also cut within a character, and twice on one connection
                connection.sendall(part)
                time.sleep(0.02)
            while not answer.endswith(told):
                part = connection.recv(1000)
                assert part, answer
                answer += part
        connection.sendall(line + "X-A: 小\r\n".encode() + head)  # its headers may hold bytes
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
