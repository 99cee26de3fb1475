"""Where async tools and async rewards run: one event loop in a thread, kept for the process.

One loop and not one a call, because async clients (HTTP sessions, semaphores) belong to the loop
that they were first used in; and a thread, because the caller may be inside a running loop itself,
as in a notebook.

Work that waits in between is a `Waiting`: a generator that yields the future it waits for.
`run_together` lets many of them wait at the same time, in rounds: each goes on to its next future,
in order, and then all futures of the round are waited for.

Invariants: all calls of a process share the loop, whoever makes them; between two waits, works run
in the caller's thread and in their order, however long each future takes, so what they do to
something shared is the same every time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Generator, Sequence
from concurrent.futures import Future, wait
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

Waiting = Generator[Future[Any], None, T]
"""Work that yields each future that it waits for, and returns what it made."""


def start(awaitable: Awaitable[Any]) -> Future[Any]:
    """Let `awaitable` run beside the caller; the future has what it gives, or raises."""

    async def run() -> Any:
        try:
            return await awaitable
        except SystemExit as error:  # it would end the loop, and everybody would wait for ever
            raise RuntimeError(f"it called sys.exit({error})") from error

    with _one_at_a_time:
        loop = _loop()
    return asyncio.run_coroutine_threadsafe(run(), loop)


def wait_for(awaitable: Awaitable[Any]) -> Any:
    """What `awaitable` gives, or raises."""
    return start(awaitable).result()


def run_together(works: Sequence[Waiting[T]]) -> list[T]:
    """What each of `works` returns, in their order; raises what the first of them raises.

    When one raises, the futures that the others wait for are cancelled.
    """
    results: dict[int, T] = {}
    futures: dict[int, Future[Any]] = {}
    going = dict(enumerate(works))
    try:
        while going:
            futures.clear()
            for place, work in list(going.items()):
                try:
                    futures[place] = next(work)
                except StopIteration as stop:
                    results[place] = stop.value
                    del going[place]
            wait(futures.values())
    finally:
        for future in futures.values():
            future.cancel()
    return [results[place] for place in range(len(works))]


_one_at_a_time = threading.Lock()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="memograd-async", daemon=True).start()
    return loop
