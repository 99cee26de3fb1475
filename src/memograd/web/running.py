"""A server that is running: in the foreground, or in a thread beside the caller.

Invariants: once `running` gives the address the server answers there, and once its block is left
the port is free and nothing of it runs; on SIGTERM or SIGINT a server takes no new connection,
answers what it has begun and ends. Who sends a request's head slowly, or takes nothing of an
answer, holds a connection for some seconds, and never a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from memograd.errors import BadInput, MemogradError

BACKLOG = 2048
ENDING = (signal.SIGTERM, signal.SIGINT)
GRACE_SECONDS = 10
"""How long what was begun may take after the server was asked to end."""
HEAD_SECONDS = 20.0
"""How long the head of a request may take, from the connection or from its first byte on."""
STALLED_SECONDS = 60.0
"""How long a client may take nothing at all of what waits for it."""


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


def address(listening: socket.socket, *, named: Sequence[str] = ()) -> str:
    """`http://127.0.0.1:4321`. named: what a server that listens on all addresses is called by."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::") and named:
        host = named[0].strip("[]")
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def serve(app: FastAPI, listening: socket.socket) -> int | None:
    """Serve until SIGINT or SIGTERM; returns the number of the signal.

    A `threading.Event` at `app.state.ending` is set first, so that what streams for long can stop.
    """
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
        target=server.run, kwargs={"sockets": [listening]}, name="memograd-server", daemon=True
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
    after a signal (closing what was served) to its caller."""

    ended_by: int | None = None

    def end(self) -> None:
        """Take no new connection, finish what was begun, and end."""
        app: FastAPI = self.config.app  # type: ignore[assignment]
        ending: threading.Event | None = getattr(app.state, "ending", None)
        if ending is not None:
            ending.set()
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


class _Connection(H11Protocol):
    """uvicorn's connection, which is cut where a head does not come or an answer is not taken."""

    _head: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first head is awaited."""
        super().connection_made(transport)
        self._head = self.loop.call_later(HEAD_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """A part of a request, which may begin or end the waiting for its head."""
        super().data_received(data if data.isascii() else self._in_ascii(data))
        if self.conn.their_state is not h11.IDLE:
            self._cancel(head=True)
        elif self._head is None:
            self._head = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _in_ascii(self, data: bytes) -> bytes:
        """The data with an address in it written as HTTP wants it: `curl` sends 小红 as it is."""
        if self.conn.their_state is not h11.IDLE or b"\n" in self.conn.trailing_data[0]:
            return data  # behind the line of the address, or of a body
        line, newline, rest = data.partition(b"\n")
        return re.sub(rb"[\x80-\xff]", lambda byte: b"%%%02X" % ord(byte[0]), line) + newline + rest

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing: any page may ask for a WebSocket, and uvicorn would tell to install one."""

    def pause_writing(self) -> None:
        """More waits for the client than should be kept for it."""
        super().pause_writing()
        self._look_whether_stalled()

    def resume_writing(self) -> None:
        """The client has taken enough."""
        super().resume_writing()
        self._cancel(stalled=True)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited any more."""
        self._cancel(head=True, stalled=True)
        super().connection_lost(exc)

    def _look_whether_stalled(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        if self._stalled is not None and unsent >= self._unsent:
            self.transport.abort()
            return
        self._unsent = unsent
        self._stalled = self.loop.call_later(STALLED_SECONDS, self._look_whether_stalled)

    def _cancel(self, *, head: bool = False, stalled: bool = False) -> None:
        if head and self._head is not None:
            self._head.cancel()
            self._head = None
        if stalled and self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


def _config(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_Connection,
        ws="none",
        log_level="warning",
        # uvicorn's own would close the handlers of the whole process, which may be a training run;
        # without one, warnings still reach the screen.
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=75,
    )
