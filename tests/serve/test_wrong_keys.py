"""Wrong keys, and two at once: who sends them is refused, and nobody else."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from asked import ADMIN, Serving
from fastapi.testclient import TestClient

from memograd.serve.served import Served
from memograd.serve.wrong_keys import UNGUESSABLE, WRONG_A_MINUTE, address_of

FROM_HERE = ("203.0.113.9", 4000)
FROM_THERE = ("198.51.100.7", 4000)
GUESS = "not-the-admin-token"


def asked_from(serving: Serving, client: tuple[str, int]) -> Callable[..., httpx.Response]:
    """Asks by key, from an address."""
    web = TestClient(serving.app, base_url="http://localhost", client=client)

    def ask(secret: str, path: str = "/users", method: str = "GET", **given: Any) -> httpx.Response:
        return web.request(method, path, headers={"X-API-Key": secret}, **given)

    return ask


@pytest.mark.parametrize("path", ["/users", "/memories?user_id=alice", "/page/memory", "/mcp"])
def test_two_keys_that_differ_are_refused(serving: Serving, path: str) -> None:
    alice, bob = serving.key("user:alice"), serving.key("user:bob")
    for one, other in ((alice, bob), (bob, alice), (ADMIN, alice), (alice, "no key at all")):
        answer = serving.ask("GET", path, one, headers={"X-API-Key": other})
        assert answer.status_code == 403
        assert "two different keys" in answer.text
    with_body = {"messages": "I like tea.", "user_id": "alice"}
    answer = serving.ask("POST", "/memories", alice, headers={"X-API-Key": bob}, json=with_body)
    assert answer.status_code == 403


def test_one_key_may_be_said_twice_and_beside_what_is_none(serving: Serving) -> None:
    alice = serving.key("user:alice")
    assert serving.ask("GET", "/users", alice, headers={"X-API-Key": alice}).status_code == 200
    for proxys in ("Basic dXNlcjpwYXNz", "Bearer "):
        headers = {"Authorization": proxys, "X-API-Key": alice}
        assert serving.ask("GET", "/users", None, headers=headers).status_code == 200


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is refilled while a test runs."""
    monkeypatch.setattr("memograd.serve.limits.time", SimpleNamespace(monotonic=lambda: 1000.0))


def test_whoever_guesses_is_told_to_wait_and_nobody_else(serving: Serving, still: None) -> None:
    long_key = serving.key("user:alice")
    assert len(ADMIN) < UNGUESSABLE <= len(long_key)
    here, there = asked_from(serving, FROM_HERE), asked_from(serving, FROM_THERE)
    statuses = [here(f"{GUESS}-{n}").status_code for n in range(WRONG_A_MINUTE)]
    assert set(statuses) == {401}
    for method, path in (("GET", "/users"), ("POST", "/search"), ("GET", "/page/memory")):
        refused = here(GUESS, path, method, **({"json": {}} if method == "POST" else {}))
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert "wrong keys" in refused.text
    # What could be guessed is not looked at from here any more, so nothing tells whether it is
    # right; what could not be is answered, for whoever else is behind this address.
    assert here(ADMIN).status_code == 429
    assert here(ADMIN, "/page/memory").text == here(GUESS, "/page/memory").text
    assert here(long_key).status_code == 200
    assert here("x" * UNGUESSABLE).status_code == 429
    assert there(ADMIN).status_code == there(long_key).status_code == 200
    assert there(GUESS).status_code == 401


def test_no_key_is_no_wrong_key(serving: Serving) -> None:
    here = asked_from(serving, FROM_HERE)
    for _ in range(WRONG_A_MINUTE + 5):
        assert here("").status_code == 401
    assert here(ADMIN).status_code == 200


def test_wrong_keys_stand_in_the_log_once_and_without_the_key(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    here, there = asked_from(serving, FROM_HERE), asked_from(serving, FROM_THERE)
    for n in range(WRONG_A_MINUTE + 5):
        here(f"{GUESS}-{n}")
    there(GUESS)
    told = [one.getMessage() for one in caplog.records if "key" in one.getMessage()]
    assert told == [f"A wrong key came from {who[0]}." for who in (FROM_HERE, FROM_THERE)]


def test_the_next_line_says_how_many_came_between(
    served_empty: Serving, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = asked_from(served_empty, FROM_HERE)
    here(GUESS)
    here(GUESS)
    here(GUESS)
    monkeypatch.setattr("memograd.serve.wrong_keys.LOG_SECONDS", 0.0)
    caplog.clear()
    here(GUESS)
    here(GUESS)
    assert [one.getMessage() for one in caplog.records] == [
        f"A wrong key came from {FROM_HERE[0]}, and 2 times before since the last such line.",
        f"A wrong key came from {FROM_HERE[0]}.",
    ]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:203.0.113.9", "203.0.113.9", True),
        ("203.0.113.9", "203.0.113.10", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("", "203.0.113.10", False),
    ],
)
def test_a_site_is_counted_as_one(one: str, other: str, same: bool) -> None:
    assert (address_of((one, 1)) == address_of((other, 2))) is same
    assert address_of(None)


def test_the_addresses_that_are_counted_are_bounded(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memograd.serve.limits.KEYS_COUNTED", 3)
    monkeypatch.setattr("memograd.serve.wrong_keys.KEYS_COUNTED", 3)
    served: Served = serving.served
    for n in range(9):
        served.wrong_keys.note(f"203.0.113.{n}")
    assert len(served.wrong_keys._logged) == len(served.wrong_keys._rates._left) == 3
