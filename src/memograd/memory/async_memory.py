"""`AsyncMemory`: the same methods for asyncio, each run in a worker thread.

Invariant: it has every public method of `Memory`, with the same parameters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import update_wrapper
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from memograd.memory.memory import Memory

P = ParamSpec("P")
R = TypeVar("R")


def _in_thread(
    method: Callable[Concatenate[Memory, P], R],
) -> Callable[Concatenate[AsyncUpkeep, P], Coroutine[Any, Any, R]]:
    async def call(self: AsyncUpkeep, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.memory, *args, **kwargs)

    update_wrapper(call, method)
    return call


class AsyncUpkeep:
    """`MemoryUpkeep`, awaited."""

    memory: Memory

    answered = _in_thread(Memory.answered)
    feedback = _in_thread(Memory.feedback)
    compact = _in_thread(Memory.compact)
    undo_compact = _in_thread(Memory.undo_compact)
    sweep = _in_thread(Memory.sweep)
    users = _in_thread(Memory.users)
    stats = _in_thread(Memory.stats)
    purge = _in_thread(Memory.purge)
    purge_owner = _in_thread(Memory.purge_owner)
    reset = _in_thread(Memory.reset)
    export = _in_thread(Memory.export)
    import_ = _in_thread(Memory.import_)
    close = _in_thread(Memory.close)


class AsyncMemory(AsyncUpkeep):
    """A `Memory` whose methods are awaited."""

    def __init__(self, memory: Memory | Mapping[str, Any] | Any | None = None) -> None:
        """Wrap a memory, which closing this closes, or open one as `Memory(config)` does."""
        self.memory = memory if isinstance(memory, Memory) else Memory(memory)

    @classmethod
    async def open(cls, path: Path | str | None = None, **given: Any) -> AsyncMemory:
        """`Memory.open`."""
        return cls(await asyncio.to_thread(Memory.open, path, **given))

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> AsyncMemory:
        """`Memory.from_config`; not awaited, as in mem0."""
        return cls(Memory.from_config(config))

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    add = _in_thread(Memory.add)
    add_many = _in_thread(Memory.add_many)
    learn = _in_thread(Memory.learn)
    update = _in_thread(Memory.update)
    delete = _in_thread(Memory.delete)
    delete_all = _in_thread(Memory.delete_all)
    search = _in_thread(Memory.search)
    context = _in_thread(Memory.context)
    get = _in_thread(Memory.get)
    get_all = _in_thread(Memory.get_all)
    history = _in_thread(Memory.history)
