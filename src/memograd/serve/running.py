"""A server that is running: in the foreground, or in a thread beside the caller.

Invariants: once `running` gives the address the server answers there; on SIGTERM or SIGINT it takes
no new connection, answers what it has begun, writes its access log and ends.
"""

from __future__ import annotations

import contextlib
import ipaddress
import signal
import socket
import threading
import time
from collections.abc import Iterator
from types import FrameType

import uvicorn
from fastapi import FastAPI

from memograd.errors import BadInput, MemogradError
from memograd.serve.served import Served

BACKLOG = 2048
ENDING = (signal.SIGTERM, signal.SIGINT)
GRACE_SECONDS = 10
"""How long what was begun may take after the server was asked to end."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes any that is free. Raises BadInput."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only of a socket that says TCP does asyncio switch off Nagle's 40 ms between head and body.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        raise BadInput(
            f"The server cannot listen on {host}:{port} ({error}): choose another --host or --port."
        ) from None
    return listening


def address(listening: socket.socket) -> str:
    """`http://127.0.0.1:4321`."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(app: FastAPI, listening: socket.socket) -> int | None:
    """Serve until SIGINT or SIGTERM; returns the number of the signal."""
    server = _Server(_config(app))
    server.run(sockets=[listening])
    if not server.started:
        raise MemogradError("The server did not start; its log says why.")
    return server.ended_by


@contextlib.contextmanager
def running(app: FastAPI, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve in a thread within this block; gives the address."""
    listening = listen(host, port)
    server = _Server(_config(app))
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listening]}, name="memograd-serve", daemon=True
    )
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise MemogradError("The server did not start; its log says why.")
            time.sleep(0.005)
        yield address(listening)
    finally:
        server.end()
        thread.join()
        listening.close()


class _Server(uvicorn.Server):
    """uvicorn's server, which tells streams to end before it waits for them, and leaves what comes
    after a signal (closing the memory) to its caller."""

    ended_by: int | None = None

    def end(self) -> None:
        """Take no new connection, finish what was begun, and end."""
        served: Served = self.config.app.state.served  # type: ignore[union-attr]
        served.ending.set()
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM or SIGINT; the second one does not wait for what was begun."""
        self.ended_by = sig
        self.force_exit = self.should_exit
        self.end()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle both signals, on the main thread, and do not raise them again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {sig: signal.signal(sig, self.handle_exit) for sig in ENDING}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)


def _config(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="warning",
        log_config=None,  # uvicorn's own would close the handlers of the whole process
        access_log=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=75,
    )
