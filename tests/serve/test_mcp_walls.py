"""MCP over HTTP: who may do what, whose memory it is, and what reaches the protocol at all."""

from __future__ import annotations

from typing import Any

import anyio
import httpx2
import pytest
from asked import ADMIN, Serving
from mcp.shared.exceptions import MCPError
from mcp.types import (
    PARSE_ERROR,
)
from speaking import client, key, shown

from memograd.web.json_text import MOST_VALUES


def test_a_key_sees_its_owner_and_nobody_else(served: Any) -> None:
    address, its = served
    its.memory.add("Alice lives in Boston.", user_id="alice", infer=False)
    (kept,) = its.memory.get_all(user_id="alice")["results"]

    async def talk() -> None:
        async with client(address, key(its, "user:bob")) as asking:
            assert (await asking.call_tool("get_memories", {})).structured_content["results"] == []
            for tool in ("get_memory", "delete_memory", "memory_history"):
                result = await asking.call_tool(tool, {"memory_id": kept["id"]})
                never = await asking.call_tool(tool, {"memory_id": "never-was"})
                assert result.is_error and never.is_error
                assert shown(result).replace(kept["id"], "") == shown(never).replace(
                    "never-was", ""
                )
            named = await asking.call_tool("get_memories", {"filters": {"user_id": "alice"}})
            assert named.is_error or named.structured_content["results"] == []
            argued = await asking.call_tool("search_memories", {"query": "x", "user_id": "alice"})
            assert argued.is_error and "no argument user_id" in shown(argued)
            for uri in (f"memory://alice/{kept['id']}", "memory://alice/core", "memory://bob/no"):
                with pytest.raises(MCPError):
                    await asking.read_resource(uri)

    anyio.run(talk)
    assert its.memory.get(kept["id"]) is not None


def test_rights_hold(served: Any) -> None:
    address, its = served

    async def talk() -> None:
        async with client(address, key(its, "user:alice", "read")) as asking:
            result = await asking.call_tool("add_memory", {"text": "I live in Boston."})
            assert result.is_error and "'write'" in shown(result)

    anyio.run(talk)
    assert its.memory.get_all(user_id="alice")["results"] == []


def test_a_key_of_everybody_needs_an_owner_from_the_client_s_settings(served: Any) -> None:
    address, its = served
    its.memory.add("Alice lives in Boston.", user_id="alice", infer=False)

    async def listed(headers: dict[str, str], secret: str) -> int:
        async with client(address, secret, headers=headers) as asking:
            found = await asking.call_tool("get_memories", {})
            return len(found.structured_content["results"])

    assert anyio.run(listed, {"X-Memograd-Owner": "user:alice"}, ADMIN) == 1
    assert anyio.run(listed, {"X-Memograd-Owner": "user:bob"}, ADMIN) == 0


@pytest.mark.parametrize(
    ("headers", "owner", "status"),
    [
        ({}, "nobody", 401),
        ({"Authorization": "Bearer wrong"}, "nobody", 401),
        ({"Authorization": f"Bearer {ADMIN}"}, "nobody", 403),
        ({"Authorization": f"Bearer {ADMIN}", "X-Memograd-Owner": "alice"}, "nobody", 422),
        ({"X-Memograd-Owner": "user:alice"}, "user:bob", 403),
        ({"Host": "evil.example"}, "user:bob", 403),
        ({"Origin": "http://evil.example"}, "user:bob", 403),
    ],
)
def test_who_may_not_is_refused_before_the_protocol(
    serving: Serving, headers: dict[str, str], owner: str, status: int
) -> None:
    if owner != "nobody":
        headers = {"Authorization": f"Bearer {serving.key(owner)}", **headers}
    accept = {"Accept": "application/json, text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    answer = serving.web.post("/mcp", json=body, headers={**accept, **headers})
    assert answer.status_code == status
    assert list(answer.json()) == ["detail"]


ONE_CALL = (
    '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add_memory",'
    ' "arguments": {"text": "I like tea.", "metadata": %s}, "_meta": {'
    ' "io.modelcontextprotocol/protocolVersion": "2026-07-28",'
    ' "io.modelcontextprotocol/clientCapabilities": {},'
    ' "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"}}}}'
)


@pytest.mark.parametrize(
    ("metadata", "status", "said"),
    [
        ('{"n": 1}', 200, ""),
        ('{"n": 1, "n": 2}', 400, "'n' is there twice"),
        ('{"n": NaN}', 400, "NaN is no number"),
        ("[" * 101 + "]" * 101, 400, "nested too deep"),
        ("{", 400, "no JSON"),
        ("[" + "0," * MOST_VALUES + "0]", 413, "more than 50000 values"),
    ],
)
def test_a_body_is_json_as_every_other_route_takes_it(
    served: Any, metadata: str, status: int, said: str
) -> None:
    address, its = served
    headers = {
        "Authorization": f"Bearer {key(its, 'user:alice')}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "add_memory",
    }
    answer = httpx2.post(
        address, content=ONE_CALL % metadata, headers=headers, trust_env=False, timeout=60
    )
    assert answer.status_code == status
    kept = [one["memory"] for one in its.memory.get_all(user_id="alice")["results"]]
    if status == 200:
        assert len(kept) == 1
        return
    assert kept == []
    error = answer.json()["error"] if status == 400 else None
    assert said in (answer.json()["detail"] if error is None else error["message"])
    assert error is None or error["code"] == PARSE_ERROR


def test_a_session_answers_to_the_key_that_began_it(served: Any) -> None:
    address, its = served
    accept = {"Accept": "application/json, text/event-stream"}
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    with httpx2.Client(trust_env=False, headers=accept) as web:

        def ask(secret: str, session: str | None, method: str, params: Any) -> httpx2.Response:
            headers = {"Authorization": f"Bearer {secret}"}
            if session is not None:
                headers["Mcp-Session-Id"] = session
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return web.post(address, json=body, headers=headers)

        alice, bob = key(its, "user:alice"), key(its, "user:bob")
        begun = ask(alice, None, "initialize", hello)
        assert begun.status_code == 200
        assert "no-store" in begun.headers["cache-control"]
        session = begun.headers["mcp-session-id"]
        assert ask(alice, session, "tools/list", {}).status_code == 200
        assert ask(bob, session, "tools/list", {}).status_code == 404
