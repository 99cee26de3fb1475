"""memograd: a memory for language-model agents that works by itself, and can be trained.

    from memograd import Memory

    with Memory.open("memories/") as memory:
        memory.add("I moved to Boston in May.", user_id="alice")
        memory.search("Where does she live?", user_id="alice")

Importing the package costs next to nothing: no torch, no database, no model; the names below come
from their rooms when they are first used. Each room (`memograd.memory`, `memograd.rollout`,
`memograd.grpo`,...) is imported by its own name, and `tests/test_package.py` holds both that and
the order in which rooms may import each other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memograd.assistant import process_user_memory, response_user
    from memograd.memory import AsyncMemory, Memory

__all__ = ["AsyncMemory", "Memory", "__version__", "process_user_memory", "response_user"]

__version__ = "0.1.0"

_ROOMS = {
    "AsyncMemory": "memograd.memory",
    "Memory": "memograd.memory",
    "process_user_memory": "memograd.assistant",
    "response_user": "memograd.assistant",
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return getattr(import_module(_ROOMS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
