"""The memory and the chat model of the settings: made on first use, shared by the process.

Invariant: equal settings give the same memory, within one process and until it exits, when every
memory is closed.
"""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING

from memograd.assistant.chat_models import choose_chat_model
from memograd.config import MemorySettings, load_memory_settings
from memograd.memory.chat.chat_model import ChatModel

if TYPE_CHECKING:
    from memograd.memory.memory import Memory

# With the id of the process: one that was forked must not use its parent's connections.
_memories: list[tuple[int, MemorySettings, Memory]] = []
_chat_models: list[tuple[MemorySettings, ChatModel]] = []
_lock = threading.Lock()


def shared_memory() -> Memory:
    """The memory of the environment and `.env`. Raises BadInput as `Memory.open` does."""
    from memograd.memory.memory import Memory

    settings = load_memory_settings()
    # A relative folder means another one after a change of the working directory.
    places = {"path": settings.path, "policy": settings.policy}
    absolute = {name: place and place.expanduser().absolute() for name, place in places.items()}
    settings = settings.model_copy(update=absolute)
    with _lock:
        for process, known, memory in _memories:
            if (process, known) == (os.getpid(), settings):
                return memory
        memory = Memory.open(settings=settings)
        _memories.append((os.getpid(), settings, memory))
        return memory


def shared_chat_model(settings: MemorySettings) -> ChatModel:
    """The chat model of these settings, loaded once. Raises BadInput when there is none."""
    with _lock:
        for known, chat in _chat_models:
            if known == settings:
                return chat
        chat = choose_chat_model(settings)
        _chat_models.append((settings, chat))
        return chat


@atexit.register
def close_shared() -> None:
    """Close the memories that this process shares, and forget them and the chat models."""
    with _lock:
        for process, _, memory in _memories:
            if process == os.getpid():
                memory.close()
        _memories.clear()
        _chat_models.clear()
