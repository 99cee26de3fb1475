"""Large memories are folded behind the start of a server, before anybody asks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from asked import ADMIN, Serving

from memograd.errors import MemogradError
from memograd.memory import Memory
from memograd.memory.journal import Journal
from memograd.serve import app as application
from memograd.web.running import running


@pytest.fixture
def again(
    open_memory: Callable[..., Memory],
    make_serving: Callable[..., Serving],
    monkeypatch: pytest.MonkeyPatch,
) -> Serving:
    """A memory of four owners that was opened again, of which three are large here."""
    monkeypatch.setattr(application, "LEAST_ITEMS", 2)
    first = open_memory()
    for owner, count in {"huge": 5, "alice": 4, "bob": 3, "carol": 1}.items():
        for number in range(count):
            first.add(f"{owner} likes thing {number}", user_id=owner, infer=False)
    first.close()
    return make_serving(open_memory())


def folded(serving: Serving) -> list[str]:
    owners = ("huge", "alice", "bob", "carol")
    return [one for one in owners if serving.memory.store.states.holds([f"user:{one}"])]


def wait_for(serving: Serving, expected: list[str]) -> None:
    deadline = time.monotonic() + 60
    while folded(serving) != expected and time.monotonic() < deadline:
        time.sleep(0.01)
    assert folded(serving) == expected


def test_the_largest_that_stay_held_are_folded(
    again: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "MOST_ITEMS", 4)
    assert folded(again) == []
    with running(again.app):
        wait_for(again, ["alice"])  # with bob or with huge there would be more than stays
    assert folded(again) == ["alice"]


def test_a_small_memory_waits_until_it_is_asked(again: Serving) -> None:
    with running(again.app) as address:
        wait_for(again, ["huge", "alice", "bob"])
        headers = {"X-API-Key": ADMIN}
        said = {"query": "thing", "user_id": "carol"}
        httpx.post(f"{address}/search", json=said, headers=headers, trust_env=False)
    assert "carol" in folded(again)


def test_a_database_that_is_away_is_no_failure_of_the_start(
    again: Serving, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: Any) -> Any:
        raise MemogradError("The journal cannot be read.")

    monkeypatch.setattr(Journal, "living", away)
    with running(again.app) as address:
        assert httpx.get(f"{address}/healthz", trust_env=False).status_code == 200
    assert "No memory was made ready" in caplog.text
