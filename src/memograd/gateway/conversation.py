"""The tokens of what a rollout has said so far, so that its next call goes on from them.

An agent sends text back, and text rendered and tokenised again is not always the tokens that were
drawn. So the gateway keeps, for every answer it gave, the ids behind it, and finds them by the
messages up to that answer. A conversation of several agents, or one that forks, finds its own:

    call 0   [a b]          -> answer X      known: a b X -> ids
    call 1   [a b X c]      -> goes on from the ids of a b X
    call 2   [d e]          -> known nothing: rendered from the beginning
    call 3   [a b X f]      -> forks from the ids of a b X

Invariant: where the messages up to an answer come back as they were given, the prompt begins with
exactly the ids that were seen and drawn.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memograd.gateway.messages import content_text
from memograd.gateway.records import CallRecord, Choice


@dataclass(frozen=True)
class HeldTokens:
    """An answer given: all ids up to its end, and its text as the model wrote it."""

    ids: tuple[int, ...]
    written: str


@dataclass
class Known:
    """What of a conversation is known: the ids of its longest known beginning, and the answers in
    it as the model wrote them, by their place among the messages."""

    ids: tuple[int, ...] | None = None
    written: dict[int, str] = field(default_factory=dict)


class TracedConversation:
    """The answers of one rollout."""

    def __init__(self) -> None:
        self._held: dict[bytes, HeldTokens] = {}
        self._texts: dict[str, tuple[int, ...]] = {}

    def find(self, messages: Sequence[Mapping[str, Any]]) -> Known:
        """What is known of these messages."""
        known = Known()
        for place, (message, key) in enumerate(zip(messages, message_keys(messages), strict=True)):
            held = self._held.get(key) if message["role"] == "assistant" else None
            if held is not None:
                known.ids = held.ids
                known.written[place] = held.written
        return known

    def find_text(self, text: str) -> tuple[tuple[int, ...], str]:
        """The ids of the longest beginning of a plain text that is known, and the rest of it."""
        known = max(filter(text.startswith, self._texts), key=len, default="")
        return self._texts.get(known, ()), text[len(known) :]

    def remember_text(self, text: str, ids: tuple[int, ...]) -> None:
        """A plain text, its answer included, was these ids."""
        self._texts[text] = ids

    def remember(
        self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any], held: HeldTokens
    ) -> None:
        """`answer` was given after `messages`."""
        *_, key = message_keys([*messages, answer])
        self._held[key] = held

    def remember_call(self, call: CallRecord, written: Sequence[str | None]) -> None:
        """All choices of a call; `written` is None for one that cannot be gone on from."""
        for choice, text in zip(call.choices, written, strict=True):
            if text is not None and call.prompt_ids is not None and choice.token_ids is not None:
                held = HeldTokens((*call.prompt_ids, *choice.token_ids), text)
                self.remember(call.messages, answer_message(choice), held)


def answer_message(choice: Choice) -> dict[str, Any]:
    """A choice as the message that the agent reads and sends back."""
    message: dict[str, Any] = {"role": "assistant", "content": choice.text}
    if choice.tool_calls:
        message["content"] = choice.text or None
        message["tool_calls"] = [dict(call) for call in choice.tool_calls]
    return message


def message_keys(messages: Sequence[Mapping[str, Any]]) -> Iterable[bytes]:
    """A digest of all messages up to each of them; what frameworks change in passing is left out:
    null fields, the form of the content, the spelling of arguments."""
    digest = hashlib.sha256()
    for place, message in enumerate(messages):
        calls = [
            [
                call["id"],
                call["function"]["name"],
                _meaning(call["function"].get("arguments", "{}")),
            ]
            for call in message.get("tool_calls") or []
        ]
        role = "system" if message["role"] == "developer" else message["role"]
        text = content_text(message.get("content"), place)
        parts = [role, text, calls, message.get("tool_call_id")]
        digest.update(json.dumps(parts, sort_keys=True).encode() + b"\n")
        yield digest.copy().digest()


def _meaning(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
