"""What the gateway keeps apart and what it refuses to take on."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import httpx
import pytest

from memograd.errors import BadInput
from memograd.gateway.admission import GatewayLimits, check_address


@pytest.fixture
def nobody() -> Iterator[httpx.Client]:
    """A client that has no key."""
    with httpx.Client(verify=False, timeout=60) as client:
        yield client


def paths(rollout) -> list[tuple[str, str, dict]]:
    """Every path under a rollout, with a body that it would take."""
    root = rollout.base_url.removesuffix("/v1")
    chat = {"messages": [{"role": "user", "content": "x"}]}
    return [
        ("GET", root, {}),
        ("POST", f"{root}/reward", {"reward": 1}),
        ("POST", f"{root}/failure", {"error": "x"}),
        ("GET", f"{root}/v1/models", {}),
        ("POST", f"{root}/v1/chat/completions", chat),
        ("POST", f"{root}/v1/chat/completions", {**chat, "stream": True}),
        ("POST", f"{root}/v1/embeddings", {"input": "x"}),
    ]


def test_no_key_opens_another_rollouts_paths(local, start, nobody) -> None:
    gateway = start(local, key="the-gateway")
    gateway.client.headers["Authorization"] = "Bearer the-gateway"
    mine, other = gateway.rollout(), gateway.rollout()
    for rollout in (mine, other):  # what the gateway remembers of keys opens nothing else either
        assert rollout.client.get(f"{rollout.base_url}/models").status_code == 200
    keys = [other.api_key, "the-gateway", "-", mine.api_key[:-1], mine.api_key + "x", mine.id]
    for method, url, body in paths(mine):
        for key in keys:
            headers = {"Authorization": f"Bearer {key}"}
            refused = nobody.request(method, url, json=body or None, headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (
                401,
                "invalid_api_key",
            )
        assert nobody.request(method, url, json=body or None).status_code == 401
    assert gateway.store.rollout(mine.id).state == "open"
    assert gateway.store.calls(mine.id) == []


@pytest.mark.parametrize("inserted", ["../", "%2e%2e/", "..%2f", "./"])
def test_paths_cannot_climb_to_another_rollout(gateway, inserted: str) -> None:
    mine, other = gateway.rollout(), gateway.rollout()
    url = f"{gateway.url}/rollout/{mine.id}/{inserted}{other.id}"
    answer = mine.client.get(url)
    assert answer.status_code in (401, 404)


def test_the_gateways_key_is_wanted_where_there_is_one(local, start, nobody) -> None:
    gateway = start(local, key="schlüssel")
    for path in ("/v1/models", "/rollout", "/v1/chat/completions", "/v1/embeddings"):
        method = "GET" if path.endswith("models") else "POST"
        body = {"messages": [{"role": "user", "content": "x"}], "input": "x"}
        refused = nobody.request(method, gateway.url + path, json=body)
        # What is no body of /rollout is found out after the key.
        assert refused.status_code == 401
    headers = {"Authorization": b"Bearer " + "schlüssel".encode("latin-1")}
    for path in ("/v1/models", "/docs", "/openapi.json"):
        assert nobody.get(gateway.url + path).status_code == 401
        assert nobody.get(gateway.url + path, headers=headers).status_code == 200
    assert nobody.get(f"{gateway.url}/redoc", headers=headers).status_code == 404
    assert nobody.get(f"{gateway.url}/health").status_code == 200


@pytest.mark.parametrize(
    ("host", "open_to_others"),
    [
        ("127.0.0.1", False),
        ("::1", False),
        ("localhost", False),
        ("0.0.0.0", True),
        ("192.168.0.7", True),
        ("example.org", True),
    ],
)
def test_only_loopback_needs_no_key(host: str, open_to_others: bool) -> None:
    check_address(host, "key")
    if open_to_others:
        with pytest.raises(BadInput, match="MEMOGRAD_GATEWAY_KEY"):
            check_address(host, None)
    else:
        check_address(host, None)


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_that_is_too_long_is_refused(local, start, declared: bool) -> None:
    rollout = start(local, limits=GatewayLimits(max_body=2000)).rollout()
    url = f"{rollout.base_url}/chat/completions"
    body = b'{"messages": [{"role": "user", "content": "' + b"x" * 5000 + b'"}]}'
    headers = {"Content-Type": "application/json"}
    content = body if declared else iter([body[:1000], body[1000:]])
    refused = rollout.client.post(url, content=content, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")
    assert rollout.chat("short").status_code == 200


def test_a_body_that_never_ends_is_refused(local, start) -> None:
    """By somebody without a key: nothing of it is read before the body."""
    gateway = start(local, key="key", limits=GatewayLimits(body_seconds=0.3))
    with socket.create_connection(("127.0.0.1", int(gateway.url.rpartition(":")[2]))) as slow:
        slow.settimeout(30)
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
        slow.sendall(head.encode())
        told = b"".join(iter(lambda: slow.recv(4096), b""))
    assert told.startswith(b"HTTP/1.1 408") and b'"too_slow"' in told


def test_keys_are_never_shown(gateway) -> None:
    rollout = gateway.rollout()
    shown = rollout.client.get(rollout.base_url.removesuffix("/v1")).text
    assert rollout.api_key not in shown
    assert "seed" not in shown


def test_where_there_is_no_key_anybody_here_may_read_what_is_offered(gateway, nobody) -> None:
    assert "/rollout/{rollout_id}" in nobody.get(f"{gateway.url}/openapi.json").json()["paths"]
    page = nobody.get(f"{gateway.url}/docs").text
    assert "<code>/rollout/{rollout_id}</code>" in page
    assert "<script" not in page


EVERY_PATH = ("/health", "/docs", "/openapi.json", "/v1/models", "/rollout", "/nowhere")


@pytest.mark.parametrize(
    ("name", "value"),
    [("Host", "evil.example"), ("Origin", "https://evil.example"), ("Origin", "null")],
)
def test_a_foreign_page_reaches_no_path(local, start, nobody, name: str, value: str) -> None:
    gateway = start(local, key="key")
    headers = {name: value, "Authorization": "Bearer key"}
    for path in EVERY_PATH:
        for method in ("GET", "POST", "OPTIONS"):
            refused = nobody.request(method, gateway.url + path, headers=headers, json={})
            assert refused.status_code == 403
            assert refused.json()["error"]["code"] == "foreign_host"
    assert gateway.store.rollouts() == []


def test_names_that_are_given_are_answered_to(local, start, nobody) -> None:
    gateway = start(local, hosts=["Gateway.internal"])
    port = gateway.url.rpartition(":")[2]
    headers = {"Host": f"gateway.internal:{port}", "Origin": "http://gateway.internal"}
    made = nobody.post(f"{gateway.url}/rollout", json={}, headers=headers)
    assert made.json()["base_url"].startswith(f"http://gateway.internal:{port}/rollout/")
    headers["Host"] = "other.internal"
    assert nobody.get(f"{gateway.url}/health", headers=headers).status_code == 403
    with pytest.raises(BadInput, match="is no host"):
        start(local, hosts=["http://gateway.internal"])


def test_what_is_refused_is_no_call(local, start) -> None:
    """Neither counted, nor begun: what is drawn next is drawn as if it had not been asked."""
    refusals = (
        {"n": 1000},
        {"temperature": 1e-300},
        {"response_format": {"type": "json_schema"}},
        {"tool_choice": "required"},
        {"unknown": 1},
        {"messages": []},
    )
    gateway = start(local)
    asked, spared = gateway.rollout(seed=5), gateway.rollout(seed=5)
    for refusal in refusals:
        assert asked.chat("say", **refusal).status_code == 400
    assert asked.chat("x" * 100_000).status_code == 400  # longer than the model reads
    record = gateway.store.rollout(asked.id)
    assert (record.state, record.calls) == ("open", 0)
    answers = [one.chat("say", temperature=1).json() for one in (asked, spared)]
    assert answers[0]["choices"] == answers[1]["choices"]
    assert gateway.store.rollout(asked.id).calls == 1


@pytest.mark.parametrize(
    ("temperature", "status"),
    [(0, 200), (1e-8, 200), (2, 200), (1e-9, 400), (1e-300, 400), (5e-324, 400), (-1e-300, 400)],
)
def test_temperatures_that_nothing_can_be_divided_by(gateway, temperature, status) -> None:
    rollout = gateway.rollout()
    answer = rollout.chat("say", temperature=temperature, logprobs=True)
    assert answer.status_code == status
    if status == 400:
        assert answer.json()["error"]["param"] == "temperature"
    else:
        [call] = gateway.store.calls(rollout.id)
        assert all(logprob <= 0 for logprob in call.choices[0].logprobs)
