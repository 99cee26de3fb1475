"""Between OpenAI's messages and those that a chat template takes.

The model writes a tool call as JSON between two tags (`memograd.rollout.tool_calls`); agents read
and send it back as `tool_calls`. Invariant: an answer without calls is its text to the letter; each
well-formed call becomes one entry, and what was meant as a call but is none stays in the text, so
that nothing the model said is lost.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from memograd.errors import BadInput
from memograd.rollout.tool_calls import CLOSE, OPEN, ToolCall, parse_tool_calls
from memograd.rollout.types import Message


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
