"""A rollout's conversation: OpenAI's messages, what a chat template takes, and the tokens behind.

The model writes a tool call as JSON between two tags (`memograd.rollout.tool_calls`); agents read
and send it back as `tool_calls`. And an agent sends text back, but text rendered and tokenised
again is not always the tokens that were drawn. So the gateway keeps, for every answer it gave, the
ids behind it, and finds them by the messages up to that answer. A conversation of several agents,
or one that forks, finds its own:

    call 0   [a b]          -> answer X      known: a b X -> ids
    call 1   [a b X c]      -> goes on from the ids of a b X
    call 2   [d e]          -> known nothing: rendered from the beginning
    call 3   [a b X f]      -> forks from the ids of a b X

Invariants: where the messages up to an answer come back as they were given, the prompt begins with
exactly the ids that were seen and drawn; an answer without calls is its text to the letter; each
well-formed call becomes one entry, and what was meant as a call but is none stays in the text, so
that nothing the model said is lost.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memograd.errors import BadInput
from memograd.gateway.records import CallRecord, Choice
from memograd.rollout.tool_calls import CLOSE, OPEN, ToolCall, parse_tool_calls
from memograd.rollout.types import Message


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


def to_template(
    messages: Sequence[Mapping[str, Any]], drawn: Mapping[int, str] | None = None
) -> list[Message]:
    """The conversation as chat templates take it; `drawn` are answers as the model wrote them, by
    their place.

    Raises BadInput for content that is not text.
    """
    names: dict[str, str] = {}
    chat: list[Message] = []
    for place, message in enumerate(messages):
        role = "system" if message["role"] == "developer" else str(message["role"])
        calls = message.get("tool_calls") or []
        names |= {call["id"]: call["function"]["name"] for call in calls}
        if drawn is not None and place in drawn:
            chat.append(Message(role=role, content=drawn[place]))
            continue
        said = [content_text(message.get("content"), place)]
        said += [_written(call["function"]) for call in calls]
        written = Message(role=role, content="\n".join(part for part in said if part))
        name = message.get("name") or names.get(str(message.get("tool_call_id")))
        if role == "tool" and name:
            written["name"] = name
        chat.append(written)
    return chat


def content_text(content: object, place: int) -> str:
    """The text of a message's content; BadInput names the message that holds anything else."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else [content]
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise BadInput(f"messages[{place}] holds something other than text: send text only.")
    return "".join(map(str, texts))


def from_answer(text: str, *, tools: bool) -> tuple[str, tuple[dict[str, Any], ...]]:
    """What an answer says, and the tools that it calls, in OpenAI's form."""
    pieces = parse_tool_calls(text) if tools else []
    calls = [piece for piece in pieces if isinstance(piece, ToolCall)]
    if not calls:
        return text, ()
    # As `parse_tool_calls` reads it: thoughts at both ends, and between them one piece a tag.
    thought, ended, action = text.rpartition("</think>")
    action, begun, rest = action.partition("<think>")
    said_first, *tagged = action.split(OPEN)
    parts = [thought + ended + said_first]
    for piece, found in zip(tagged, pieces, strict=True):
        body, closed, after = piece.partition(CLOSE)
        parts += [after if isinstance(found, ToolCall) else OPEN + body + closed + after]
    said = "\n".join(part.strip() for part in (*parts, begun + rest) if part.strip())
    return said, tuple(
        {
            "id": f"call_{secrets.token_hex(12)}",
            "type": "function",
            "function": {
                "name": call.name.encode("utf-8", "replace").decode("utf-8"),
                "arguments": _as_json(call.arguments),
            },
        }
        for call in calls
    )


def _as_json(arguments: Mapping[str, Any]) -> str:
    """JSON in which every text is itself; half a surrogate pair, which a model may write as an
    escape and no UTF-8 can carry, stays an escape."""
    text = json.dumps(arguments, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(arguments)
    return text


def _written(function: Mapping[str, Any]) -> str:
    """A call as the model would have written it."""
    try:
        arguments = json.loads(function["arguments"] or "{}")
    except (ValueError, RecursionError):
        arguments = function["arguments"]
    call = {"name": function["name"], "arguments": arguments}
    return f"{OPEN}\n{json.dumps(call, ensure_ascii=False)}\n{CLOSE}"
