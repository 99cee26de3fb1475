"""A chat template that shows tools, for models whose own template leaves them out.

Small instruction-tuned models often know the turn marks `<|im_start|>` and `<|im_end|>` but were
given a template without tools (SmolLM2). `TOOL_TEMPLATE` writes the same turns, lists the tools in
the system message, asks for calls as JSON between `<tool_call>` and `</tool_call>`, and puts their
results into a user's turn.

Invariant: a rendered conversation begins with every earlier one that ended with an action, so the
token row of an episode goes on turn after turn.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memograd.errors import BadInput
from memograd.rollout.tool_calls import check_convention

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

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
    calls as `memograd.rollout.tool_calls` reads them, then `TOOL_TEMPLATE` if it marks turns alike.

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
