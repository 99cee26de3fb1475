"""Which chat model answers: the endpoint that is configured, else the model on this machine.

Invariant: an endpoint that is configured is used or refused, never silently replaced.
"""

from __future__ import annotations

from memograd.assistant.local_chat import LocalChatModel, missing_for_local_model
from memograd.config import MemorySettings
from memograd.errors import BadInput
from memograd.memory.chat.chat_model import ChatModel
from memograd.memory.configured import configured_chat_model


def choose_chat_model(settings: MemorySettings) -> ChatModel:
    """The model that the settings name; nothing is loaded or connected yet.

    Raises BadInput, saying how to get one, when there is none.
    """
    endpoint = configured_chat_model(settings)
    if endpoint is not None:
        return endpoint
    missing = missing_for_local_model()
    if missing:
        raise BadInput(
            "There is no chat model to answer: set OPENAI_BASE_URL and OPENAI_MODEL to use an"
            f" OpenAI-compatible endpoint, or {missing} for a small local one."
        )
    return LocalChatModel()
