"""Tool calls in text: how a model's chat template asks for them, and what an action's text holds.

The convention of Qwen 2.5 and 3, Hermes and others is JSON between two tags:

    <tool_call>
    {"name": "look_up", "arguments": {"patient": 7}}
    </tool_call>

Calls inside a thought (`<think>... </think>`) are thoughts. Small instruction-tuned models often
know the turn marks `<|im_start|>` and `<|im_end|>` but were given a template without tools
(SmolLM2). `TOOL_TEMPLATE` writes the same turns, lists the tools in the system message, asks for
calls in this form, and puts their results into a user's turn.

Invariants: every opening tag outside thoughts yields one entry, a call or the reason why it is
none, so that no attempt is passed over in silence; a conversation rendered by `TOOL_TEMPLATE`
begins with every earlier one that ended with an action, so the token row of an episode goes on turn
after turn.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memograd.errors import BadInput

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


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


START, END = "<|im_start|>", "<|im_end|>"

# Line breaks that matter are written as '\n', because transformers trims those after a block.
TOOL_TEMPLATE = r"""
{%- set first = messages[0] if messages and messages[0].role == 'system' else none -%}
{%- if tools or first -%}
    {{- '<|im_start|>system\n' -}}
    {{- first.content if first else 'You act by calling tools.' -}}
    {%- if tools -%}
        {{- '\n\nTools:\n' -}}
        {%- for tool in tools -%}{{- (tool | tojson) + '\n' -}}{%- endfor -%}
        {{- 'To call a tool, write its name and arguments as JSON:\n<tool_call>\n' -}}
        {{- '{"name": "...", "arguments": {...}}\n</tool_call>' -}}
    {%- endif -%}
    {{- '<|im_end|>\n' -}}
{%- endif -%}
{%- for message in messages -%}
    {%- if message.role == 'tool' -%}
        {%- if loop.first or loop.previtem.role != 'tool' -%}{{- '<|im_start|>user' -}}{%- endif -%}
        {{- '\n<tool_response>\n' + message.content + '\n</tool_response>' -}}
        {%- if loop.last or loop.nextitem.role != 'tool' -%}{{- '<|im_end|>\n' -}}{%- endif -%}
    {%- elif not (loop.first and message.role == 'system') -%}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}
"""


def read_template(file: Path) -> str:
    """The chat template in a file.

    Raises:
        BadInput: the file cannot be read, or its template does not show tools.
    """
    try:
        template = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The chat template {file} cannot be read ({error}).") from error
    check_convention(template)
    return template


def use_tool_template(tokenizer: PreTrainedTokenizerBase, file: Path | None) -> str | None:
    """See to it that the tokenizer's chat template shows tools; a sentence if it was replaced.

    The template in `file` is taken if one is given, then the tokenizer's own if it asks for tool
    calls as they are read here, then `TOOL_TEMPLATE` if it marks turns alike.

    Raises:
        BadInput: the file cannot be read, or no template fits.
    """
    own = str(tokenizer.chat_template or "")
    if file is not None:
        tokenizer.chat_template = read_template(file)
        return f"tools are shown to the model by the chat template {file}"
    try:
        check_convention(own)
    except BadInput as error:
        known = tokenizer.get_vocab()
        if START not in own or START not in known or END not in known:
            raise BadInput(
                f"{error} (episodes.chat_template=FILE; TRL has templates of many models)"
            ) from error
        tokenizer.chat_template = TOOL_TEMPLATE
        return (
            "the model's own chat template does not show tools; the built-in one with the same "
            f"turn marks ({START}) is used and saved with the adapter"
        )
    return None
