"""What the tests of MCP share: the protocol's own client, and how its results are read."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import (
    ElicitRequestParams,
    ElicitResult,
    ReadResourceResult,
    TextResourceContents,
)

from memograd.memory.search.context import CLOSING, OPENING
from memograd.serve.served import Served

TOOLS = {
    *("add_memory", "search_memories", "get_memories", "get_memory", "update_memory"),
    *("delete_memory", "delete_all_memories", "memory_history", "memory_context"),
}


@asynccontextmanager
async def client(
    address: str, secret: str | None, *, mode: str = "auto", **given: Any
) -> AsyncIterator[Client]:
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    headers |= given.pop("headers", {})
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as web:
        transport = streamable_http_client(address, http_client=web)
        async with Client(transport, mode=mode, **given) as asking:
            yield asking


def shown(result: Any) -> str:
    """The text that a model sees."""
    return "\n".join(block.text for block in result.content)


def resource(read: ReadResourceResult) -> str:
    """The text of a resource."""
    (content,) = read.contents
    assert isinstance(content, TextResourceContents)
    return content.text


def lines(text: str) -> list[dict[str, Any]]:
    """The memories in a marked text."""
    inside = text.split(f"{OPENING}\n", 1)[1].split(f"\n{CLOSING}")[0]
    return [json.loads(line) for line in inside.splitlines()]


def answering(action: str, confirm: bool = True) -> Any:
    """An elicitation callback that gives this answer and keeps what was asked."""
    asked: list[str] = []

    async def answer(_: Any, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        content = {"confirm": confirm} if action == "accept" else None
        return ElicitResult(action=action, content=content)  # type: ignore[arg-type]

    return answer, asked


def key(served: Served, owner: str | None, rights: str = "read,write") -> str:
    return served.keys.create("test", owner=owner, rights=rights.split(",")).secret
