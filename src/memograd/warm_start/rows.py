"""Reading a file of rows: one JSON object a line, chats as lists of messages, what is left out.

Messages are `{"role", "content"}` or `{"from", "value"}`. What the objects must hold is in
`sft_rows` and `preference_rows`.

Invariant: every row of the file is either returned, or listed under the reason why it is left out,
or the file is refused with the row's place in the sentence.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from memograd.errors import BadInput
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
    for number, line in enumerate(_lines(path), start=1):
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


def _lines(path: Path) -> Iterator[str]:
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8-sig")
    except FileNotFoundError:
        raise BadInput(f"There is no file {path}; give a file of rows with data=FILE.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"{path} cannot be unpacked ({error}); was it cut off?") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text ({error}); convert it.") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror or error}).") from None
    yield from text.split("\n")


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
