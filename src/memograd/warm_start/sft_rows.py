"""Rows to learn from: a chat with answers of the assistant, or a text with its continuation.

    {"messages": [...]}  or  {"prompt": text or messages, "completion": text or messages}

Of `messages` all answers are learnt, of a prompt none. A prompt that is a text is continued as it
stands, or is a user's message if `string_prompts` is "chat", as in training. `tools` beside
`messages` are what the chat template shows, as TRL's data sets have them; calls then stand in the
assistant's text and results in messages of the role tool. Other columns are ignored.

Invariant: what is learnt is what an assistant said after a prompt, and it is never empty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memograd.errors import BadInput
from memograd.rollout.episode import ToolSchema
from memograd.rollout.types import Message
from memograd.warm_start.rows import (
    EMPTY,
    Rows,
    as_chat,
    parse_chat,
    read_rows,
    text_prompt,
)


@dataclass(frozen=True)
class SftRow:
    """A chat whose assistant messages from index `first_trained` on are to be learnt.

    `place` says where it came from: the number of a line, or the id of a question. Where there is
    a `text`, it is the prompt, and the only message is its answer. `tools` are shown to the model.
    """

    place: str
    messages: tuple[Message, ...]
    first_trained: int
    text: str | None = None
    tools: tuple[ToolSchema, ...] = ()

    @property
    def learnt(self) -> list[int]:
        """Indices of the messages to be learnt."""
        return [
            index
            for index, message in enumerate(self.messages)
            if message["role"] == "assistant" and index >= self.first_trained
        ]


def read_sft_rows(path: Path, string_prompts: str = "text") -> Rows[SftRow]:
    """The chats in `path`; repeated rows and rows with an empty answer are left out.

    Raises BadInput for a file that cannot be read or holds no usable row, and for a row that is no
    chat to learn from.
    """

    def parse(record: dict[str, Any], place: str, where: str) -> SftRow:
        row = _sft_row(record, place, where)
        if row.text is None or string_prompts == "text":
            return row
        return SftRow(place, (*as_chat(row.text), *row.messages), 1)

    return read_rows(
        path, parse, _empty_completion, lambda row: (row.text, row.messages, row.learnt)
    )


def _sft_row(record: dict[str, Any], place: str, where: str) -> SftRow:
    if "messages" in record:
        tools = _tools(record.get("tools"), where)
        chat = parse_chat(record["messages"], f"messages in {where}", tools=bool(tools))
        return replace(_learnable(place, chat, 0, where), tools=tools)
    if "prompt" not in record or "completion" not in record:
        raise BadInput(f"{where} has neither messages nor prompt and completion.")
    prompt, completion = record["prompt"], record["completion"]
    if isinstance(completion, str):
        answer = [Message(role="assistant", content=completion)]
    else:
        answer = parse_chat(completion, f"completion in {where}")
    if not isinstance(prompt, str):
        given = parse_chat(prompt, f"prompt in {where}")
        return _learnable(place, [*given, *answer], len(given), where)
    if not isinstance(completion, str):
        raise BadInput(f"{where} has a text as prompt, so its completion must be a text too.")
    return SftRow(place, tuple(answer), 0, text=text_prompt(prompt, where))


def _learnable(place: str, chat: list[Message], first_trained: int, where: str) -> SftRow:
    while chat and chat[-1]["role"] != "assistant":  # nobody answers it: there is nothing to learn
        chat.pop()
    if not any(message["role"] == "assistant" for message in chat[first_trained:]):
        raise BadInput(f"{where} has no message of the assistant to learn from.")
    if chat[0]["role"] == "assistant":
        raise BadInput(f"{where} begins with the assistant: an answer needs a prompt before it.")
    return SftRow(place, tuple(chat), first_trained)


def _tools(value: Any, where: str) -> tuple[ToolSchema, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(tool, dict) for tool in value):
        raise BadInput(f"tools in {where} must be a list of JSON schemas.")
    return tuple(value)


def _empty_completion(row: SftRow) -> str | None:
    return None if all(row.messages[index]["content"].strip() for index in row.learnt) else EMPTY
