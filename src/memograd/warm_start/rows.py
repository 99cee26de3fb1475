"""Files of rows to learn from: one JSON object a line, chats as lists of messages.

Messages are `{"role", "content"}` or `{"from", "value"}`. Supervised rows are read here, those of
preferences in `memograd.warm_start.preference_rows`:

    {"messages": [...]}  or  {"prompt": text or messages, "completion": text or messages}

Of `messages` all answers are learnt, of a prompt none. A prompt that is a text is continued as it
stands, or is a user's message if `string_prompts` is "chat", as in training. `tools` beside
`messages` are what the chat template shows, as TRL's data sets have them; calls then stand in the
assistant's text and results in messages of the role tool. Other columns are ignored.

Invariants: every row of the file is either returned, or listed under the reason why it is left out,
or the file is refused with the row's place in the sentence; what is learnt is what an assistant
said after a prompt, and it is never empty.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from memograd.data.record_files import read_text
from memograd.errors import BadInput
from memograd.rollout.episode import ToolSchema
from memograd.rollout.types import Message

EMPTY = "an answer is empty"

REPEATED = "the same as an earlier row"

NO_TEXT = "half a character (a lone surrogate), which is no text"

_ROLES = {"system": "system", "user": "user", "assistant": "assistant"}


_ROLES |= {"human": "user", "gpt": "assistant"}  # the words of {"from", "value"} messages


class Placed(Protocol):
    """A row that says where it came from: the number of a line, or the id of a question."""

    @property
    def place(self) -> str:
        """Number or id."""
        ...


R = TypeVar("R", bound=Placed)


@dataclass
class Rows(Generic[R]):
    """The rows that are used, and the places of those that are not, by reason."""

    source: str
    used: list[R] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def leave_out(self, place: str, reason: str) -> None:
        """Note that the row at `place` is not used."""
        self.left_out.setdefault(reason, []).append(place)

    @property
    def total(self) -> int:
        """How many rows there were."""
        return len(self.used) + sum(map(len, self.left_out.values()))


def read_rows(
    path: Path,
    parse: Callable[[dict[str, Any], str, str], R | str],
    unusable: Callable[[R], str | None],
    content: Callable[[R], Any],
) -> Rows[R]:
    """The rows in `path`, without repeated ones.

    `parse(record, place, where)` gives a row or why it is left out, `unusable` may still leave it
    out; rows of equal `content` repeat each other.

    Raises BadInput for a file that cannot be read or holds no usable row.
    """
    rows: Rows[R] = Rows(str(path))
    seen: set[Hashable] = set()
    for number, line in enumerate(read_text(path, "rows").split("\n"), start=1):
        if not line.strip():
            continue
        place, where = str(number), f"{path}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{where} is not JSON ({error}); write one object a line.") from None
        if not isinstance(record, dict):
            raise BadInput(f'{where} is not an object such as {{"prompt": ...}}.')
        row = parse(record, place, where)
        if isinstance(row, str):
            rows.leave_out(place, row)
            continue
        key = json.dumps(content(row), sort_keys=True, ensure_ascii=False)
        reason = unusable(row) or (REPEATED if key in seen else None)
        reason = reason or (None if _is_text(key) else NO_TEXT)
        if reason:
            rows.leave_out(place, reason)
        else:
            seen.add(key)
            rows.used.append(row)
    if not rows.used:
        reasons = "; ".join(f"{len(lines)} rows: {why}" for why, lines in rows.left_out.items())
        raise BadInput(f"{path} holds no row to learn from ({reasons or 'it is empty'}).")
    return rows


def _is_text(text: str) -> bool:
    """Whether a file or a tokenizer can take it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def parse_chat(value: Any, where: str, *, tools: bool = False) -> list[Message]:
    """The messages in `value`; BadInput, with `where` in it, if it is no list of messages.

    `tools`: results of tools (role tool) may stand among them.
    """
    if not isinstance(value, list) or not value:
        raise BadInput(f"{where} must be a list of messages (or texts throughout).")
    chat = []
    for message in value:
        named = isinstance(message, dict) and (message.get("role") or message.get("from"))
        role = _ROLES.get(named) if isinstance(named, str) else None
        if tools and named == "tool":
            role = "tool"
        text = message.get("content", message.get("value")) if role else None
        if role is None or not isinstance(text, str) or message.get("tool_calls"):
            raise BadInput(
                f"{where} has the message {json.dumps(message, ensure_ascii=False)[:60]}: needed "
                "are a role (system, user or assistant) and a text as content."
            )
        said = Message(role=role, content=text)
        if role == "tool" and isinstance(message.get("name"), str):
            said["name"] = message["name"]
        chat.append(said)
    return chat


def as_chat(prompt: str) -> tuple[Message, ...]:
    """The text as one user message."""
    return (Message(role="user", content=prompt),)


def text_prompt(text: str, where: str) -> str:
    """The text, which must not be empty."""
    if not text.strip():
        raise BadInput(f"The prompt in {where} is empty.")
    return text


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

    def content(row: SftRow) -> Any:
        return row.text, row.messages, row.learnt, row.tools

    return read_rows(path, parse, _empty_completion, content)


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
