"""Hosts and origins: what is this machine, what was allowed, and what only looks like it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.web.host_check import HostCheck, checked_host


def asked(
    *headers: tuple[str, str], hosts: tuple[str, ...] = (), server: str = "127.0.0.1"
) -> tuple[int, Any]:
    """The status that a request with these headers gets, and the body."""
    sent: list[dict[str, Any]] = []

    async def app(scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"null"})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message) -> None:
        sent.append(message)

    check = HostCheck(app, [checked_host(host) for host in hosts], lambda why: {"error": why})
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    scope = {"type": "http", "headers": raw, "server": (server, 8321)}
    asyncio.run(check(scope, receive, send))
    return sent[0]["status"], json.loads(b"".join(part.get("body", b"") for part in sent))


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:8321", "localhost.", "127.0.0.1", "127.0.0.1:80", "127.8.9.1"),
        *("[::1]", "[::1]:8321"),
    ],
)
def test_this_machine_is_answered(host: str) -> None:
    assert asked(("Host", host))[0] == 200
    assert asked(("Host", host), ("Origin", f"http://{host}"))[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil-localhost"),
        *("192.168.0.7", "0.0.0.0", "[::]", "[fe80::1]", "169.254.169.254", "::1", "[::1"),
        *("", " ", ":", ":8321", "localhost:x", "localhost:99999999", "localhost/evil"),
        *("evil@localhost", "localhost@evil", "localhost,evil", "localhost evil", "127.1"),
        *("2130706433", "0x7f.1", "localhost?", "localhost#x", "l\xf6calhost", "//localhost"),
    ],
)
def test_everything_else_is_refused(host: str) -> None:
    status, body = asked(("Host", host))
    assert status == 403
    assert "does not answer for the host" in body["error"]
    status, body = asked(("Host", "localhost"), ("Origin", f"http://{host}"))
    assert status == 403
    assert "may not ask this server" in body["error"]


@pytest.mark.parametrize(
    "origin",
    [
        *("null", "", "file://", "localhost", "ftp://localhost", "http:localhost", "http:///"),
        *("http://localhost/path", "https://a.example http://localhost", "javascript://localhost"),
    ],
)
def test_origins_that_are_no_page_of_ours(origin: str) -> None:
    assert asked(("Host", "localhost"), ("Origin", origin))[0] == 403


def test_one_host_and_at_most_one_origin() -> None:
    assert asked()[0] == 403
    assert asked(("Host", "localhost"), ("Host", "localhost"))[0] == 403
    local = ("Origin", "http://localhost")
    assert asked(("Host", "localhost"), local, local)[0] == 403
    assert asked(("Host", "localhost"), ("Origin", "https://localhost:3000"))[0] == 200


@pytest.mark.parametrize(
    "name",
    [
        *("Authorization", "X-Api-Key", "X-Memograd-Token", "X-Memograd-Owner"),
        *("Idempotency-Key", "Last-Event-Id"),
    ],
)
def test_who_asks_and_what_for_is_said_once(name: str) -> None:
    once = [("Host", "localhost"), (name, "a")]
    assert asked(*once)[0] == 200
    for second in ("a", "b", ""):
        told = (403, {"error": f"A request has one {name} header at most."})
        assert asked(*once, (name.lower(), second)) == told


def test_the_address_that_was_connected_to_is_answered_and_its_neighbour_is_not() -> None:
    assert asked(("Host", "10.0.0.7:8321"), server="10.0.0.7")[0] == 200
    assert asked(("Host", "[fd00::7]"), server="fd00::7")[0] == 200
    assert asked(("Host", "10.0.0.8"), server="10.0.0.7")[0] == 403
    assert asked(("Host", "name"), server="name")[0] == 403  # a name is not an address


def test_names_that_are_allowed() -> None:
    hosts = ("Memo.Internal", "10.1.2.3", "fd00::1")
    for host in ("memo.internal", "MEMO.internal.:80", "10.1.2.3", "[fd00::1]:9", "[FD00:0::1]"):
        assert asked(("Host", host), hosts=hosts)[0] == 200
    assert asked(("Host", "sub.memo.internal"), hosts=hosts)[0] == 403


@pytest.mark.parametrize("host", ["", "http://a", "a:80", "a/b", "u@a", "[::1"])
def test_what_is_no_host_cannot_be_allowed(host: str) -> None:
    with pytest.raises(BadInput, match="is no host"):
        checked_host(host)


@given(st.text(st.characters(max_codepoint=255), max_size=30))
def test_any_text_is_an_answer_or_a_refusal(host: str) -> None:
    assert asked(("Host", host), ("Origin", f"http://{host}"))[0] in (200, 403)


def test_a_socket_is_closed_and_the_life_of_the_server_is_let_through() -> None:
    passed, sent = [], []

    async def app(scope, receive, send) -> None:
        passed.append(scope["type"])

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message) -> None:
        sent.append(message["type"])

    check = HostCheck(app, [], lambda why: {})
    headers = [(b"host", b"evil.example")]
    asyncio.run(check({"type": "websocket", "headers": headers}, receive, send))
    asyncio.run(check({"type": "lifespan"}, receive, send))
    assert (passed, sent) == (["lifespan"], ["websocket.close"])
