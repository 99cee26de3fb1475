"""The two calls of an agent with a memory: learn from what was said, and answer with it.

    process_user_memory([{"role": "user", "content": "I moved to Boston."}], "alice")
    response_user("Where do I live?", "alice").text

Without `memory=` both use the memory of the settings (environment and `.env`): opened on first use,
shared by the whole process, closed at exit. Invariant: equal settings give the same memory, within
one process and until it exits.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from memograd.assistant.conversation import ANSWER_TOKENS, answer_messages
from memograd.assistant.local_chat import choose_chat_model
from memograd.config import MemorySettings, load_memory_settings
from memograd.memory.chat.chat_model import ChatModel
from memograd.memory.records.scope import Scope
from memograd.memory.results import operation_result
from memograd.memory.write.answers import Answered, write_answer

if TYPE_CHECKING:
    from memograd.memory.memory import Memory
    from memograd.memory.messages import Messages
    from memograd.memory.search import Context

# With the id of the process: one that was forked must not use its parent's connections.
_memories: list[tuple[int, MemorySettings, Memory]] = []
_chat_models: list[tuple[MemorySettings, ChatModel]] = []
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered and what the model was shown of the memory; `str` of it is the text.

    recalled: its `items` and `turns` say of each hit why it was found, its `text` is what stood in
    the prompt. model: name of the chat model. id: what `Memory.feedback` takes.
    """

    text: str
    recalled: Context
    model: str
    id: str

    def __str__(self) -> str:
        return self.text


def process_user_memory(
    messages: Messages,
    user_id: str,
    *,
    memory: Memory | None = None,
    agent_id: str | None = None,
    run_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    timestamp: datetime | str | float | None = None,
) -> dict[str, Any]:
    """Read facts in a text or chat messages, decide what each changes, and apply it durably.

    Returns `{"operations": [{id, memory, event, reason, ...}]}`, one for each fact, in order: ADD,
    UPDATE and DELETE as `Memory.add` returns them, and NONE with the reason why nothing was to be
    done. Raises BadInput for messages or ids that cannot be understood; then nothing is written.
    """
    from memograd.memory.write.changes import Labels

    memory = memory or shared_memory()
    events = memory.learn(
        messages,
        scope=Scope(user_id, agent_id, run_id),
        labels=Labels(metadata=dict(metadata or {})),
        timestamp=timestamp,
    )
    return {"operations": [operation_result(event) for event in events]}


def response_user(
    query: str,
    user_id: str,
    *,
    memory: Memory | None = None,
    chat: ChatModel | None = None,
    agent_id: str | None = None,
    run_id: str | None = None,
) -> Answer:
    """Answer a query from what the memory recalls of the user, in the language of the query.

    chat: any chat model; without one, the endpoint of the settings (`OPENAI_BASE_URL`,
    `OPENAI_API_KEY`, `OPENAI_MODEL`), else the local model. The answer is written down so that
    feedback can be given on it; to learn from the query too, give it to `process_user_memory`.
    Raises BadInput for an empty query or when no chat model is to be had, MemogradError when the
    model fails.
    """
    memory = memory or shared_memory()
    chat = chat or shared_chat_model(memory.store.settings)
    recalled = memory.context(query, user_id=user_id, agent_id=agent_id, run_id=run_id)
    text = chat.complete(
        answer_messages(query, recalled.text, today=date.today()), max_tokens=ANSWER_TOKENS
    )
    answered = Answered.of_context(query, text, recalled)
    answer_id = write_answer(memory.store, answered, Scope(user_id, agent_id, run_id))
    return Answer(text, recalled, chat.name, answer_id)


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
