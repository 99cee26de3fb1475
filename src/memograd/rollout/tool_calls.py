"""Tool calls out of an action's text, as the model's chat template teaches it to write them.

The convention of Qwen 2.5 and 3, Hermes and others is JSON between two tags:

    <tool_call>
    {"name": "look_up", "arguments": {"patient": 7}}
    </tool_call>

Calls inside a thought (`<think>... </think>`) are thoughts. Invariant: every other opening tag
yields one entry, a call or the reason why it is none, so that no attempt is passed over in silence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memograd.errors import BadInput

OPEN, CLOSE = "<tool_call>", "</tool_call>"


@dataclass(frozen=True)
class ToolCall:
    """A tool's name and its arguments by name."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class MalformedCall:
    """What stood where a call was meant, and what is wrong with it, for the policy to read."""

    text: str
    reason: str


def check_convention(chat_template: str) -> None:
    """Raise `BadInput` unless the template asks for calls as JSON between the two tags.

    A policy that was taught another way of calling would only ever make malformed calls, or none.
    """
    if OPEN not in chat_template or "<function=" in chat_template:
        raise BadInput(
            f"the model's chat template does not ask for tool calls as JSON between {OPEN} and "
            f"{CLOSE}; give its tokenizer a chat_template that does, such as Qwen2.5's"
        )


def parse_tool_calls(action: str) -> list[ToolCall | MalformedCall]:
    """All calls of an action, in order; empty if it has none."""
    said = action.rpartition("</think>")[2].partition("<think>")[0]
    calls: list[ToolCall | MalformedCall] = []
    for piece in said.split(OPEN)[1:]:
        body, closed, _ = piece.partition(CLOSE)
        calls.append(_parse(body.strip()) if closed else MalformedCall(body, f"no {CLOSE} follows"))
    return calls


def _parse(body: str) -> ToolCall | MalformedCall:
    try:
        call = json.loads(body)
    except (ValueError, RecursionError) as error:
        return MalformedCall(body, f"not JSON: {error}")
    if not isinstance(call, dict):
        return MalformedCall(body, "not a JSON object")
    name, arguments = call.get("name"), call.get("arguments")
    if not isinstance(name, str):
        return MalformedCall(body, '"name" is missing or not a text')
    others = [key for key in call if key not in ("name", "arguments")]
    if "arguments" not in call and others:
        # Read as a call without arguments, it would do what nobody asked for.
        return MalformedCall(body, f'"arguments" is missing, and "{others[0]}" is not read')
    if arguments is None:  # templates let a tool without parameters be called without any
        arguments = {}
    if not isinstance(arguments, dict):
        return MalformedCall(body, '"arguments" is not a JSON object')
    return ToolCall(name, arguments)
