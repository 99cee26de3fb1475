"""What the tests of the server share: the application with its memory, asked by key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
from fastapi.testclient import TestClient

from memograd.memory import Memory
from memograd.serve.app import create_app
from memograd.serve.served import Served, ServeSettings

ADMIN = "an-admin-token-of-the-tests"


@dataclass
class Serving:
    """The application with its memory; `client(...)` asks it with a key of its own."""

    memory: Memory
    app: Any
    web: TestClient

    @property
    def served(self) -> Served:
        served: Served = self.app.state.served
        return served

    def key(self, owner: str | None = None, rights: str = "read,write") -> str:
        """The secret of a new key."""
        return self.served.keys.create("test", owner=owner, rights=rights.split(",")).secret

    def ask(
        self, method: str, path: str, secret: str | None = ADMIN, **given: Any
    ) -> httpx.Response:
        """The answer to one request with this key."""
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        headers |= given.pop("headers", {})
        return self.web.request(method, path, headers=headers, **given)


def serve(memory: Memory, **settings: Any) -> Serving:
    """Serves a memory in the process, as loopback.

    Not entered: what runs as long as the application does, `running` or `with web` begins.
    """
    app = create_app(memory, ServeSettings(**{"token": ADMIN, **settings}))
    return Serving(memory, app, TestClient(app, base_url="http://localhost"))


def added(serving: Serving, text: Any, secret: str = ADMIN, **body: Any) -> str:
    """The id of what was just remembered word for word."""
    body = {"messages": text, "infer": False, **body}
    answer = serving.ask("POST", "/memories", secret, json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["results"][0]["id"])
