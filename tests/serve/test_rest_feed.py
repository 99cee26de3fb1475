"""The feed of operations: what happens is told once, and it ends with the server."""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx
from asked import ADMIN, Serving, added

from memograd.web.running import running


def test_the_feed_tells_what_happens_and_goes_on_where_it_was(serving: Serving) -> None:
    with running(serving.app) as address:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        with httpx.Client(base_url=address, headers=headers, trust_env=False) as client:
            one = added(serving, "I like tea.", user_id="alice")
            heard: list[tuple[str, dict[str, Any]]] = []
            with client.stream("GET", "/operations/feed?after=0") as stream:
                lines = stream.iter_lines()
                threading.Timer(0.3, lambda: added(serving, "I like milk.", user_id="bob")).start()
                place = ""
                for line in lines:
                    if line.startswith("id: "):
                        place = line.removeprefix("id: ")
                    if line.startswith("data: "):
                        heard.append((place, json.loads(line.removeprefix("data: "))))
                    if len(heard) == 2:
                        break
            assert [data["new_memory"] for _, data in heard] == ["I like tea.", "I like milk."]
            with client.stream(
                "GET", "/operations/feed", headers={"Last-Event-ID": heard[0][0]}
            ) as stream:
                told = next(line for line in stream.iter_lines() if line.startswith("data: "))
            assert "milk" in told
    page = serving.ask("GET", "/operations", params={"limit": 1}).json()
    assert page["results"][0]["memory_id"] == one
    params = {"after": page["next_after"]}
    assert serving.ask("GET", "/operations", params=params).json()["results"][0]["user_id"] == "bob"


def test_a_server_that_ends_ends_its_feeds(serving: Serving) -> None:
    with running(serving.app) as address:
        client = httpx.Client(base_url=address, trust_env=False)
        headers = {"X-API-Key": ADMIN}
        stream = client.stream("GET", "/operations/feed", headers=headers)
        lines = stream.__enter__().iter_lines()
        assert next(lines) == ": listening"
    assert list(lines) == [""]  # it ended in order
    stream.__exit__(None, None, None)
