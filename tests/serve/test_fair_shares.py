"""What one owner's client may take of a server, so that everybody else is still answered."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from asked import ADMIN, Serving

from memograd.serve import owned_memory
from memograd.serve.limits import LONGEST_TEXT, TURNS
from memograd.serve.served import ServeLimits
from memograd.web.running import running

THREADS = 40
"""That carry out calls, by anyio."""
MODERN = "2026-07-28"
OPENING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
FORM = "application/x-www-form-urlencoded"
BOTH = "application/json, text/event-stream"


def tool_call(name: str, **arguments: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Body and headers of a call that needs no session."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    params = {"name": name, "arguments": arguments, "_meta": meta}
    headers = {
        "Accept": BOTH,
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, headers


@pytest.mark.parametrize(
    "door", ["a key of alice", "a key of everybody", "mcp", "a batch", "the page"]
)
def test_one_owners_calls_leave_threads_to_everybody_else(
    serving: Serving, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    entered, go_on = threading.Semaphore(0), threading.Event()
    method = {"a batch": "add_many", "the page": "update"}.get(door, "add")
    write = getattr(serving.memory, method)

    def waiting(*args: Any, **given: Any) -> Any:
        entered.release()
        assert go_on.wait(120)
        return write(*args, **given)

    monkeypatch.setattr(serving.memory, method, waiting)
    secret = ADMIN if door in ("a key of everybody", "a batch") else serving.key("user:alice")
    path, more = "/memories", {}
    body: dict[str, Any] = {"messages": "I like tea.", "user_id": "alice", "infer": False}
    if door == "mcp":
        path, (body, more) = "/mcp", tool_call("add_memory", text="I like tea.")
    elif door == "a batch":
        path, body = "/memories/batch", {"memories": [{"messages": "Tea.", "infer": False}]}
        body["user_id"] = "alice"
    elif door == "the page":
        kept = serving.memory.add("I like tea.", user_id="alice", infer=False)["results"][0]["id"]
        path, more = f"/page/memory/item/{kept}/edit", {"Content-Type": FORM}
    sent = "text=Coffee" if door == "the page" else json.dumps(body)
    statuses: list[int] = []

    with running(serving.app) as address:
        place = address.removeprefix("http://")

        def send() -> None:
            connection = http.client.HTTPConnection(place, timeout=120)
            headers = {"X-API-Key": secret, "Content-Type": "application/json", **more}
            connection.request("POST", path, sent, headers)
            statuses.append(connection.getresponse().status)

        threads = [threading.Thread(target=send) for _ in range(THREADS + TURNS)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(TURNS):
                assert entered.acquire(timeout=30)
            bob = {"X-API-Key": serving.key("user:bob")}
            with httpx.Client(base_url=address, trust_env=False, timeout=30) as client:
                assert client.get("/healthz").status_code == 200
                found = client.post("/search", json={"query": "tea"}, headers=bob)
                assert found.status_code == 200
        finally:
            go_on.set()
            for thread in threads:
                thread.join()
    assert statuses == [200] * len(threads)


def test_one_owners_sessions_of_mcp_leave_room_for_everybody_else(
    make_serving: Callable[..., Serving],
) -> None:
    serving = make_serving(limits=ServeLimits(max_sessions=8))
    alice, bob = serving.key("user:alice"), serving.key("user:bob")

    with (
        running(serving.app) as address,
        httpx.Client(base_url=address, trust_env=False, timeout=30) as client,
    ):

        def opened(secret: str) -> httpx.Response:
            headers = {"X-API-Key": secret, "Accept": BOTH}
            return client.post("/mcp", json=OPENING, headers=headers)

        def ping(secret: str, session: str) -> int:
            headers = {"X-API-Key": secret, "Accept": BOTH, "Mcp-Session-Id": session}
            asked = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            return client.post("/mcp", json=asked, headers=headers).status_code

        first, *others = [opened(alice).headers["mcp-session-id"] for _ in range(2)]
        assert ping(alice, first) == 200  # used later than the other one
        more = [opened(alice).headers["mcp-session-id"] for _ in range(1)]
        assert [ping(alice, one) for one in (first, *others, *more)] == [200, 404, 200]
        for _ in range(20):
            assert opened(alice).status_code == 200
        assert opened(bob).status_code == 200
        assert ping(alice, first) == 404


@pytest.mark.parametrize(
    ("method", "path", "field"),
    [
        ("POST", "/memories", "messages"),
        ("POST", "/v3/memories/add/", "messages"),
        ("POST", "/search", "query"),
        ("POST", "/context", "query"),
        ("PUT", "/memories/{id}", "text"),
        ("POST", "/answers", "answer"),
    ],
)
def test_a_text_without_end_is_refused(
    serving: Serving, method: str, path: str, field: str
) -> None:
    alice = serving.key("user:alice")
    kept = serving.ask("POST", "/memories", alice, json={"messages": "Tea.", "infer": False})
    place = path.format(id=kept.json()["results"][0]["id"])
    body = {field: "x" * (LONGEST_TEXT + 1), **({"question": "?"} if field == "answer" else {})}
    answer = serving.ask(method, place, alice, json=body)
    assert answer.status_code == 400
    assert answer.json()["detail"] == (
        "A text has 100001 characters, and 100000 is the most: send parts."
    )
    assert serving.ask("GET", "/memories", alice).json()["total"] == 1


def test_texts_in_messages_and_batches_end_too_and_pictures_may_be_long(serving: Serving) -> None:
    alice = serving.key("user:alice")
    long = "x" * (LONGEST_TEXT + 1)
    parts = [{"type": "text", "text": long}]
    for content in (long, parts, [*parts, {"type": "text", "text": "short"}]):
        messages = [{"role": "user", "content": "Tea."}, {"role": "user", "content": content}]
        for path, body in (
            ("/memories", {"messages": messages}),
            ("/memories/batch", {"memories": [{"messages": "Tea."}, {"messages": messages}]}),
        ):
            answer = serving.ask("POST", path, alice, json=body)
            assert answer.status_code == 400 and "100000 is the most" in answer.json()["detail"]
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'A' * 200_000}"}}
    shown = {"messages": [{"role": "user", "content": [picture]}], "infer": False}
    assert serving.ask("POST", "/memories", alice, json=shown).status_code == 200


def test_a_page_of_operations_reads_no_more_than_it_needs(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = serving.key("user:alice")
    for number in range(9):
        body = {"messages": f"Thing {number}.", "infer": False}
        assert serving.ask("POST", "/memories", alice, json=body).status_code == 200
    monkeypatch.setattr(owned_memory, "READ_TOGETHER", 4)
    read: list[int] = []
    page_of = serving.memory.store.journal.tail_page

    def counted(*args: Any, **given: Any) -> Any:
        found = page_of(*args, **given)
        read.append(len(found))
        return found

    monkeypatch.setattr(serving.memory.store.journal, "tail_page", counted)
    told = serving.ask("GET", "/operations?after=0&limit=2", alice).json()
    assert [one["new_memory"] for one in told["results"]] == ["Thing 0.", "Thing 1."]
    assert read == [4]
    texts, after = [], 0
    while after is not None:
        page = serving.ask("GET", f"/operations?after={after}&limit=2", alice).json()
        texts += [one["new_memory"] for one in page["results"]]
        after = page["next_after"]
    assert texts == [f"Thing {number}." for number in range(9)]
