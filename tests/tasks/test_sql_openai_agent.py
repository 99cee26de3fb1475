"""The example on openai-agents, against a real HTTP server that plays the model."""

from __future__ import annotations

import asyncio
import json
import runpy
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from memograd.tasks.sql.sample.build import sample_database

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sql" / "agent_openai.py"
STATEMENT = "SELECT contraindications FROM drugs_info WHERE med_name = '华法林'"


@pytest.fixture
def model() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Calls the tool first, then says what it was told."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(asked)
            last = asked["messages"][-1]
            said: dict[str, Any] = {"role": "assistant", "content": last["content"]}
            if last["role"] == "user":
                arguments = json.dumps({"sql": STATEMENT}, ensure_ascii=False)
                function = {"name": "query_database_by_sql", "arguments": arguments}
                call = {"id": "call_1", "type": "function", "function": function}
                said = {"role": "assistant", "content": None, "tool_calls": [call]}
            choice = {"index": 0, "message": said, "finish_reason": "stop"}
            body = {"id": "1", "object": "chat.completion", "created": 0, "model": asked["model"]}
            sent = json.dumps({**body, "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *arguments: Any) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1", requests
    server.shutdown()
    server.server_close()
    thread.join()


def test_it_asks_the_database_and_answers(model: tuple[str, list[dict[str, Any]]]) -> None:
    url, requests = model
    run = runpy.run_path(str(EXAMPLE))["run"]
    task = {"question": "华法林有哪些禁忌？", "database": str(sample_database())}
    answer = asyncio.run(run(task, url, "key"))
    assert "活动性出血患者禁用。" in answer
    first, second = requests
    assert first["messages"][0]["role"] == "system"
    assert "contraindications 禁忌" in first["messages"][0]["content"]
    assert [tool["function"]["name"] for tool in first["tools"]] == ["query_database_by_sql"]
    assert second["messages"][-1]["role"] == "tool"
