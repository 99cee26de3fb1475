"""A conversation that remembers: recall, answer, learn, one turn after the other.

Invariant: a turn that fails leaves no trace, neither in the conversation nor in the memory, so it
can be said again (`tests/assistant/test_conversation.py`). May import memory, errors and `prompts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from memograd.assistant.prompts import answer_messages
from memograd.errors import BadInput
from memograd.memory.chat_model import ChatMessage, ChatModel
from memograd.memory.language import estimate_tokens
from memograd.memory.results import operation_result
from memograd.memory.scope import Scope, check_unicode

if TYPE_CHECKING:
    from memograd.memory.memory import Memory
    from memograd.memory.retrieval import Context

ANSWER_TOKENS: Final = 1_024
RUNNING_TOKENS: Final = 1_500  # of the conversation so far, that the model is shown again


@dataclass(frozen=True, slots=True)
class Reply:
    """What was answered, what the memory did with the user's words, and what it had recalled.

    operations: as `process_user_memory` returns them. recalled: what the model was shown, with the
    reason for each hit.
    """

    text: str
    operations: list[dict[str, Any]]
    recalled: Context


class Conversation:
    """One user's talk with a chat model over a memory.

    The model sees what the memory recalls for each message, and the latest exchanges of the
    conversation itself. The user's messages are learnt from; the answers are not.
    """

    def __init__(self, memory: Memory, chat: ChatModel, scope: Scope) -> None:
        self._memory, self._chat, self._scope = memory, chat, scope
        self._exchanges: list[tuple[ChatMessage, ChatMessage]] = []

    def reply(self, text: str) -> Reply:
        """Answer `text`, then learn from it.

        Raises BadInput for an empty text; MemogradError when the chat model fails.
        """
        check_unicode(text, "the message")
        if not text.strip():
            raise BadInput("The message is empty: say something.")
        scope = self._scope
        recalled = self._memory.context(
            text, user_id=scope.user_id, agent_id=scope.agent_id, run_id=scope.run_id
        )
        answer = self._chat.complete(
            answer_messages(
                text, recalled.text, today=date.today(), earlier=self._latest_messages()
            ),
            max_tokens=ANSWER_TOKENS,
        )
        events = self._memory.learn(text, scope=scope)
        self._exchanges.append(
            (ChatMessage(role="user", content=text), ChatMessage(role="assistant", content=answer))
        )
        return Reply(answer, [operation_result(event) for event in events], recalled)

    def _latest_messages(self) -> list[ChatMessage]:
        """The latest whole exchanges that fit, in their order."""
        shown: list[ChatMessage] = []
        left = RUNNING_TOKENS
        for exchange in reversed(self._exchanges):
            left -= sum(estimate_tokens(message["content"]) for message in exchange)
            if left < 0:
                break
            shown = [*exchange, *shown]
        return shown
