"""A gateway that is running: in a thread beside the caller, or in the foreground.

Invariant: once `start` returns the gateway answers at `base_url`; once `stop` returns the port is
free and nothing of it runs.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import uvicorn
from fastapi import FastAPI

from memograd.errors import BadInput, MemogradError

BACKLOG = 2048


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
            f"The gateway cannot listen on {host}:{port} ({error}): choose another --host or "
            "--port."
        ) from None
    return listening


def serve(app: FastAPI, listening: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM."""
    uvicorn.Server(_config(app)).run(sockets=[listening])


@contextlib.contextmanager
def running(app: FastAPI, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve in a thread within this block; gives the address, such as `http://127.0.0.1:4321`."""
    listening = listen(host, port)
    server = uvicorn.Server(_config(app))
    thread = threading.Thread(
        target=server.run,
        kwargs={"sockets": [listening]},
        name="memograd-gateway",
        daemon=True,
    )
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise MemogradError("The gateway did not start; its log says why.")
            time.sleep(0.005)
        bound = listening.getsockname()
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        yield f"http://{shown}:{bound[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def _config(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="warning",
        # uvicorn's own would close the handlers of the whole process, which is a training run too;
        # without one, warnings still reach the screen.
        log_config=None,
        access_log=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=5,
        timeout_keep_alive=75,
    )
