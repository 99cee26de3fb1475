"""A real HTTP server that speaks /v1/chat/completions and answers from a script, for tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ScriptedChat:
    """Answers in the order of the script: a text, a (status, message), or parts of a response.

    requests: what was asked, as {"path", "key", "body"}. Beyond the script it answers 418.
    """

    def __init__(self, answers: tuple[Any, ...]) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        self.url = ""

    def respond(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else (418, "the script has ended")
        if isinstance(answer, tuple):
            return answer[0], {"error": {"message": answer[1]}}
        parts = {"content": answer} if isinstance(answer, str) else answer
        choice = {
            "index": 0,
            "finish_reason": parts.get("finish_reason", "stop"),
            "message": {"role": "assistant", "content": parts.get("content")},
        }
        return 200, {
            "id": "1", "object": "chat.completion", "created": 0, "model": "tiny",
            "choices": parts.get("choices", [choice]),
        }  # fmt: skip


@contextmanager
def serving(*answers: Any) -> Iterator[ScriptedChat]:
    script = ScriptedChat(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = self.headers["Authorization"]
            status, answer = script.respond({"path": self.path, "key": key, "body": body})
            sent = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet: the requests are kept instead."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    script.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()


def servers() -> Iterator[Callable[..., ScriptedChat]]:
    """Body of a fixture: a function that starts a server with a script; all are stopped after."""
    with ExitStack() as stack:
        yield lambda *answers: stack.enter_context(serving(*answers))
