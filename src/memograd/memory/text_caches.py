"""What the process keeps of the texts that it read last, and how it lets go of all of it.

Every message is compared with the same items again, so many functions of a text keep their last
results, with the texts themselves as keys, whoever said them. Whoever keeps such results says so
here: a function by `of_texts` above its cache, an object by `TextHolder` and `hold`. A purge drops
them all, those of other owners too, for a cache does not know whose a text was; they are made again
when they are asked for.

Invariant: after `drop_texts` nothing is kept of a call that ended before it. A call that is under
way in another thread may still keep what it makes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar
from weakref import WeakSet


class _Cache(Protocol):
    def cache_clear(self) -> None: ...


class TextHolder(Protocol):
    """An object that keeps results of texts."""

    def drop_texts(self) -> None:
        """Let go of all of them."""


CacheT = TypeVar("CacheT", bound=_Cache)
_functions: list[Callable[[], None]] = []
_holders: WeakSet[TextHolder] = WeakSet()
_lock = threading.Lock()


def of_texts(function: CacheT) -> CacheT:
    """Decorates a function with `lru_cache` whose arguments are texts that users said."""
    _functions.append(function.cache_clear)
    return function


def hold(holder: TextHolder) -> None:
    """Have an object's texts dropped, too, as long as it lives."""
    with _lock:
        _holders.add(holder)


def drop_texts() -> None:
    """Let go of all that is kept of texts in this process."""
    with _lock:
        holders = list(_holders)
    for clear in _functions:
        clear()
    for holder in holders:
        holder.drop_texts()


def _after_fork() -> None:
    """A thread that is gone in the child may have held the lock."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_after_fork)
