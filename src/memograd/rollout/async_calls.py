"""Where async tools and async rewards run: one event loop in a thread, kept for the process.

One loop and not one a call, because async clients (HTTP sessions, semaphores) belong to the loop
that they were first used in; and a thread, because the caller may be inside a running loop itself,
as in a notebook. Invariant: all calls of a process share the loop, whoever makes them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from concurrent.futures import Future
from functools import cache
from typing import Any


def start(awaitable: Awaitable[Any]) -> Future[Any]:
    """Let `awaitable` run beside the caller; the future has what it gives, or raises."""

    async def run() -> Any:
        return await awaitable

    with _one_at_a_time:
        loop = _loop()
    return asyncio.run_coroutine_threadsafe(run(), loop)


def wait_for(awaitable: Awaitable[Any]) -> Any:
    """What `awaitable` gives, or raises."""
    return start(awaitable).result()


_one_at_a_time = threading.Lock()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="memograd-async", daemon=True).start()
    return loop
