"""An assistant that remembers: answer from the memory, and learn from what was said.

`helpers` does each in one call, `conversation` does both turn by turn. Any `ChatModel` will do:
`local_chat` chooses the one that is configured, and lends a model of `memograd.policy` the same
shape.

Importing this is light: a model arrives with the first answer.
"""

from __future__ import annotations

from memograd.assistant.conversation import AssistantConversation, Reply
from memograd.assistant.helpers import Answer, process_user_memory, response_user
from memograd.assistant.local_chat import LocalChatModel, choose_chat_model

__all__ = [
    "Answer",
    "AssistantConversation",
    "LocalChatModel",
    "Reply",
    "choose_chat_model",
    "process_user_memory",
    "response_user",
]
