"""What is open when a key ends, who sends without one, and requests that two servers read apart."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import pytest
from asked import ADMIN, Serving
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitRequestParams, ElicitResult

from memograd.serve import keys as keys_module
from memograd.serve.mcp import http as mcp_http
from memograd.web.running import running


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A revoked key is looked up again at once, as in another process after two seconds."""
    monkeypatch.setattr(keys_module, "KNOWN_SECONDS", 0.05)
    monkeypatch.setattr(mcp_http, "KNOWN_SECONDS", 0.05)


@pytest.fixture
def address(serving: Serving) -> Iterator[str]:
    with running(serving.app) as address:
        yield address


def revoke_all(serving: Serving) -> None:
    for key in serving.served.keys.list():
        serving.served.keys.revoke(key.id)


def raw(address: str, sent: bytes) -> bytes:
    """All that is answered until the server closes, or falls silent."""
    port = int(address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(sent)
        told = b""
        try:
            while part := connection.recv(65_536):
                told += part
                connection.settimeout(2)  # the first answer of a new server may take longer
        except TimeoutError:
            pass
        return told


@pytest.mark.usefixtures("soon")
def test_a_feed_ends_with_its_key(serving: Serving, address: str) -> None:
    key = {"X-API-Key": serving.key("user:alice", "read")}
    with (
        httpx.Client(base_url=address, trust_env=False, headers=key, timeout=30) as client,
        client.stream("GET", "/operations/feed?after=0") as feed,
    ):
        lines = feed.iter_lines()
        assert next(lines) == ": listening"
        revoke_all(serving)
        serving.memory.add("zqsecret", user_id="alice", infer=False)
        told = list(lines)
    assert ": Give a valid API key of this server." in told
    assert "zqsecret" not in "".join(told)


@pytest.mark.usefixtures("soon")
def test_a_stream_of_mcp_ends_with_its_key(serving: Serving, address: str) -> None:
    secret = serving.key("user:alice")
    headers = {"Authorization": f"Bearer {secret}", "Accept": "application/json, text/event-stream"}
    with httpx.Client(base_url=address, trust_env=False, headers=headers, timeout=30) as client:
        about = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        begun = client.post("/mcp", json=body)
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        with client.stream("GET", "/mcp", headers=session) as stream:
            assert stream.status_code == 200
            threading.Timer(0.2, revoke_all, [serving]).start()
            with pytest.raises(httpx.RemoteProtocolError):  # it is cut, as the key is
                stream.read()
        assert client.post("/mcp", json=body | {"id": 2}, headers=session).status_code == 401


@pytest.mark.usefixtures("soon")
def test_a_yes_that_comes_after_the_key_has_ended_forgets_nothing(
    serving: Serving, address: str
) -> None:
    serving.memory.add("I like tea.", user_id="alice", infer=False)
    secret = serving.key("user:alice")

    async def late(_: Any, params: ElicitRequestParams) -> ElicitResult:
        await asyncio.to_thread(revoke_all, serving)
        await asyncio.sleep(0.5)
        return ElicitResult(action="accept", content={"confirm": True})

    async def ask(mode: Any) -> None:
        web = httpx2.AsyncClient(headers={"X-API-Key": secret}, trust_env=False, timeout=5)
        transport = streamable_http_client(f"{address}/mcp", http_client=web)
        async with web, Client(transport, mode=mode, elicitation_callback=late) as asking:
            await asking.call_tool("delete_all_memories", {}, read_timeout_seconds=3)

    for mode in ("auto", "legacy"):
        with pytest.raises(BaseException):  # noqa: B017 (the client's own, of many kinds)
            asyncio.run(ask(mode))
        assert len(serving.memory.get_all(user_id="alice")["results"]) == 1, mode
        secret = serving.key("user:alice")


def test_a_body_is_read_of_somebody_known(address: str) -> None:
    head = b"POST /memories HTTP/1.1\r\nHost: localhost\r\nX-API-Key: wrong\r\n"
    began = time.monotonic()
    for length in (b"Content-Length: 100000", b"Transfer-Encoding: chunked"):
        told = raw(address, head + length + b"\r\n\r\n")  # the body never comes
        assert told.startswith(b"HTTP/1.1 401")
        assert b"www-authenticate: Bearer" in told
    assert time.monotonic() - began < 20  # the body's own time is 30 s each


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 6\r\n",
        b"Content-Length: 6\r\nContent-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Content-Length: +6\r\n",
    ],
)
def test_a_request_that_can_be_read_in_two_ways_is_one_and_refused(
    address: str, framing: bytes
) -> None:
    head = f"POST /search HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {ADMIN}\r\n".encode()
    hidden = f"GET /users HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {ADMIN}\r\n\r\n".encode()
    told = raw(address, head + framing + b"\r\n0\r\n\r\n" + hidden)
    assert told.startswith((b"HTTP/1.1 400", b"HTTP/1.1 403"))
    assert told.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "path",
    [
        *("/page/static/../view.py", "/page/static/%2e%2e/view.py", "/page/static/..%2fview.py"),
        *("/page/static//etc/passwd", "/page/runs/%2e%2e", "/page/runs/..%2f..", "/page/runs/%00"),
        *("/page/traces/..%2f..", "http://evil.example/users", "/memories/%2e%2e%2fusers"),
    ],
)
def test_paths_lead_nowhere_else(address: str, path: str) -> None:
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {ADMIN}\r\n"
    told = raw(address, f"{head}Connection: close\r\n\r\n".encode())
    assert told.startswith(b"HTTP/1.1 404")
    assert b"import" not in told and b"root:" not in told


def test_what_a_proxy_might_say_widens_nothing(serving: Serving) -> None:
    told = {"X-Forwarded-Host": "localhost", "Forwarded": "host=localhost"}
    foreign = serving.ask("GET", "/users", headers={"Host": "evil.example", **told})
    assert foreign.status_code == 403
    own = serving.ask("GET", "/users", None, headers={"X-Forwarded-For": "127.0.0.1"})
    assert own.status_code == 401


@pytest.mark.parametrize("deep", [20, 300, 450, 900, 5000])
def test_filters_without_end_are_answered_or_refused(serving: Serving, deep: int) -> None:
    filters = '{"AND": [' * deep + '{"kind": "core"}' + "]}" * deep
    for path, query in (("/search", '"query": "tea", '), ("/v3/memories/", "")):
        content = f'{{{query}"user_id": "alice", "filters": {filters}}}'.encode()
        kind = {"Content-Type": "application/json"}
        answer = serving.ask("POST", path, content=content, headers=kind)
        assert answer.status_code in ((200,) if deep == 20 else (200, 400, 422)), answer.text
