"""What a server takes on at most, over a real port: bodies, slow clients, rates, places, ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from asked import ADMIN, Serving

from memograd.cli import main
from memograd.errors import BadInput
from memograd.serve.owned_memory import OwnedMemory
from memograd.serve.refusals import TooMany
from memograd.serve.served import ServeLimits
from memograd.web.running import listen, running

KEY = {"X-API-Key": ADMIN}


def test_a_body_of_100_megabytes_is_refused_while_it_comes(
    make_serving: Callable[..., Serving],
) -> None:
    serving = make_serving()
    part = b"x" * 2**20

    def chunks() -> Any:  # of unknown length
        yield from (part for _ in range(100))

    with running(serving.app) as address, httpx.Client(trust_env=False) as client:
        for content in (part * 100, chunks()):
            answer = client.post(f"{address}/memories", content=content, headers=KEY, timeout=60)
            assert answer.status_code == 413
            assert answer.json() == {"detail": "The request has more than 8388608 bytes."}
        assert client.get(f"{address}/healthz").status_code == 200


def test_who_sends_slowly_is_refused_and_holds_nobody_up(
    make_serving: Callable[..., Serving],
) -> None:
    limits = ServeLimits(body_seconds=0.5, max_calls=2)
    with running(make_serving(limits=limits).app) as address:
        port = int(address.rpartition(":")[2])
        head = (
            f"POST /memories HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {ADMIN}\r\n"
            "Content-Length: 100\r\n\r\n{"
        )
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
        for one in slow:
            one.sendall(head.encode())
        with httpx.Client(trust_env=False, timeout=30) as client:  # more than there are places
            assert client.get(f"{address}/users", headers=KEY).status_code == 200
        for one in slow:
            one.settimeout(30)
            assert one.recv(1000).startswith(b"HTTP/1.1 408")
            one.close()


def test_a_key_that_asks_too_often_is_told_when_to_come_back(
    make_serving: Callable[..., Serving],
) -> None:
    serving = make_serving(limits=ServeLimits(calls_per_minute=5))
    answers = [serving.ask("GET", "/users") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 12
    assert serving.ask("GET", "/users", serving.key(None, "admin")).status_code == 200


def test_more_calls_at_once_than_there_are_places_are_refused(
    make_serving: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    serving = make_serving(limits=ServeLimits(max_calls=2))
    entered, go_on = threading.Semaphore(0), threading.Event()
    search = serving.memory.search

    def waiting(*args: Any, **given: Any) -> Any:
        entered.release()
        go_on.wait(30)
        return search(*args, **given)

    monkeypatch.setattr(serving.memory, "search", waiting)
    with running(serving.app) as address, httpx.Client(trust_env=False, timeout=60) as client:
        body = {"query": "tea", "user_id": "alice"}
        statuses: list[int] = []

        def ask() -> None:
            answer = client.post(f"{address}/search", json=body, headers=KEY)
            statuses.append(answer.status_code)

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
            assert entered.acquire(timeout=30)
        refused = client.post(f"{address}/search", json=body, headers=KEY)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        go_on.set()
        for thread in threads:
            thread.join()
        assert statuses == [200, 200]
        assert client.post(f"{address}/search", json=body, headers=KEY).status_code == 200


def test_more_feeds_than_there_are_places_are_refused(
    make_serving: Callable[..., Serving],
) -> None:
    with (
        running(make_serving(limits=ServeLimits(max_streams=1)).app) as address,
        httpx.Client(trust_env=False, headers=KEY, base_url=address, timeout=30) as client,
    ):
        with client.stream("GET", "/operations/feed") as first:
            lines = first.iter_lines()
            assert next(lines) == ": listening"
            assert client.get("/operations/feed").status_code == 429
        deadline = time.monotonic() + 30  # a half-open stream's place is given back
        while time.monotonic() < deadline:
            with client.stream("GET", "/operations/feed") as again:
                if again.status_code == 200:
                    break
            time.sleep(0.05)
        assert again.status_code == 200


def test_feeds_that_are_asked_for_at_once_find_no_more_places(
    make_serving: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    serving = make_serving(limits=ServeLimits(max_streams=8))
    key = serving.key("user:alice", "read")
    together, looked_up = threading.Barrier(4), OwnedMemory.last_operation

    def last_operation(memory: OwnedMemory) -> int:
        together.wait(timeout=30)
        return looked_up(memory)

    monkeypatch.setattr(OwnedMemory, "last_operation", last_operation)
    head = f"GET /operations/feed HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\r\n"
    with running(serving.app) as address, contextlib.ExitStack() as open_feeds:
        port = int(address.rpartition(":")[2])
        feeds = [
            open_feeds.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            for _ in range(4)
        ]
        for feed in feeds:
            feed.sendall(head.encode())
        told = sorted(feed.recv(12).decode() for feed in feeds)
        assert told == ["HTTP/1.1 200"] * 2 + ["HTTP/1.1 429"] * 2


def test_one_users_client_shuts_nobody_out(make_serving: Callable[..., Serving]) -> None:
    serving = make_serving(limits=ServeLimits(max_streams=8, max_calls=8))
    alice, bob = serving.key("user:alice"), serving.key("user:bob")
    identities = serving.served.identities
    places = serving.served.streams
    with contextlib.ExitStack() as held:
        who = [identities.of({"x-api-key": one}, "GET") for one in (alice, bob, ADMIN)]
        for _ in range(2):
            held.enter_context(places.taken(who[0]))
        with pytest.raises(TooMany, match="This key holds as many streams"):
            held.enter_context(places.taken(who[0]))
        for _ in range(2):
            held.enter_context(places.taken(who[1]))
        for _ in range(4):  # an application speaks for all
            held.enter_context(places.taken(who[2]))
        with pytest.raises(TooMany, match="The server answers as many streams"):
            held.enter_context(places.taken(who[2]))
    assert places.free == 8
    with places.taken(who[0]):
        assert places.free == 7


def test_a_port_in_use_is_told_in_one_sentence() -> None:
    taken = listen("127.0.0.1", 0)
    with pytest.raises(BadInput, match=r"cannot listen on 127.0.0.1:\d+ .*choose another"):
        listen("127.0.0.1", taken.getsockname()[1])
    taken.close()


def start(folder: Path, *options: str) -> tuple[subprocess.Popen[str], str, list[str]]:
    """The command itself, its address and what it printed."""
    command = [sys.executable, "-m", "memograd", "serve", "--path", str(folder), "--port", "0"]
    environment = os.environ | {"MEMOGRAD_RANKING": "fusion", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [*command, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder.parent,
    )
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    if not lines[0]:
        _, told = process.communicate()
        raise AssertionError(told)
    address = lines[0].split()[-1]
    while "open once" not in lines[-1]:
        lines.append(process.stdout.readline())
    return process, address, lines


def test_the_command_serves_until_it_is_asked_to_end(tmp_path: Path) -> None:
    process, address, lines = start(tmp_path / "memories")
    with contextlib.ExitStack() as stack:
        stack.callback(process.kill)
        token = lines[1].split()[-1]
        client = stack.enter_context(httpx.Client(base_url=address, trust_env=False, timeout=60))
        headers = {"Authorization": f"Bearer {token}"}
        body = {"messages": "我喜欢喝红茶。", "user_id": "小红", "infer": False}
        [made] = client.post("/memories", json=body, headers=headers).json()["results"]
        assert client.get("/users").status_code == 401
        login = lines[2].split()[-1].removeprefix(address)
        assert client.get(login, follow_redirects=False).status_code == 303
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 143
    again, address, lines = start(tmp_path / "memories", "--token", "my-own-token-for-this-test")
    with contextlib.ExitStack() as stack:
        stack.callback(again.kill)
        headers = {"X-API-Key": "my-own-token-for-this-test"}
        with httpx.Client(base_url=address, trust_env=False, timeout=60, headers=headers) as client:
            assert client.get(f"/memories/{made['id']}").json()["memory"] == "我喜欢喝红茶。"
            log = client.get("/access").json()["results"]
            assert [line["action"] for line in log] == ["get", "add"]  # written at the end
        assert not any("admin token" in line for line in lines)


@pytest.fixture
def command(
    bare_environment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Runs `memograd serve ...` in this process; returns what it printed, or its one sentence."""

    def run(*arguments: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["serve", *arguments, "--path", str(tmp_path / "m")])
        printed = capsys.readouterr()
        assert ended.value.code == code, printed.err
        assert not (code and printed.out)
        return printed.err if code else printed.out

    return run


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", "0.0.0.0"], "needs a key"),
        (["--host", "0.0.0.0", "--token", "a"], "at least 16 characters"),
        (["--host", "0.0.0.0", "--token", "a-long-enough-token"], "--allow-host"),
        (["--token", "a-long-enough-token\n"], "No client could send the token"),
        (["--token", "a long enough token"], "No client could send the token"),
        (["--token", "ein-längeres-geheimnis"], "No client could send the token"),
        (["--token", "x" * 600], "No client could send the token"),
        (["--allow-host", "http://x/"], "is no host"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_is_open(
    command: Callable[..., str], tmp_path: Path, options: list[str], said: str
) -> None:
    shown = command("--port", "0", *options, code=2)
    assert said in shown
    assert len(shown.strip().splitlines()) == 1
    assert not (tmp_path / "m" / "journal.db").exists()


def test_a_folder_of_another_version_is_refused(
    command: Callable[..., str], tmp_path: Path, open_memory: Any
) -> None:
    open_memory(tmp_path / "m").close()
    with sqlite3.connect(tmp_path / "m" / "journal.db") as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    assert "has the format 99" in command("--port", "0", code=2)


@pytest.mark.parametrize("asked", [("login",), ("keys", "list"), ("keys", "revoke", "x")])
def test_a_folder_without_a_server_is_named_and_left_alone(
    command: Callable[..., str], tmp_path: Path, asked: tuple[str, ...]
) -> None:
    """The path that `login` printed there opened nothing, and it left a folder."""
    assert "name the server's by --path" in command(*asked, code=2)
    assert not (tmp_path / "m").exists()
    command("keys", "create", "phone")
    command(*asked, code=2 if "revoke" in asked else 0)


def test_keys_are_made_listed_and_revoked_by_command(command: Callable[..., str]) -> None:
    made = json.loads(command("keys", "create", "电话", "--user", "小红", "--json"))
    assert (made["owner"], made["rights"]) == ("user:小红", ["read", "write"])
    assert made["secret"].startswith("mg-")
    listed = command("keys", "list")
    assert made["id"] in listed
    assert made["secret"] not in listed
    assert made["id"] in command("keys", "revoke", made["id"])
    assert json.loads(command("keys", "list", "--json"))[0]["revoked_at"]
    assert len(command("keys", "revoke", "unknown", code=2).splitlines()) == 1
