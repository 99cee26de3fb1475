"""Files of rows to learn from: one JSON object a line, chats as lists of messages.

    {"messages": [...]}  or  {"prompt": text or messages, "completion": text or messages}
    {"prompt": text or messages, "chosen": text or messages, "rejected": the same}

Messages are `{"role", "content"}` or `{"from", "value"}`. A prompt that is a text is continued as
it stands, or is a user's message if `string_prompts` is "chat", as in training. Other columns are
ignored.

**Supervised rows.** Of `messages` all answers are learnt, of a prompt none. `tools` beside
`messages` are what the chat template shows, as TRL's data sets have them; calls then stand in the
assistant's text and results in messages of the role tool.

**Rows of preferences**: a prompt and two answers to it, of which one is better. Without `prompt`
(or `conversations`, as some files call it) the beginning that chosen and rejected share is the
prompt: their first messages, or the words that two texts begin with. So it is where the prompt is a
text and the answers are whole chats. Two texts that begin with a "Human:" paragraph are chats, with
the prompt before them if that is one. An answer may be one message.

Invariants: every row of the file is either returned, or listed under the reason why it is left out,
or the file is refused with the row's place in the sentence; what is learnt is what an assistant
said after a prompt, and it is never empty; a pair is two different answers, each one message of the
assistant.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast

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


IDENTICAL = "chosen and rejected are the same"
SAME_WHEN_CUT = "chosen and rejected are the same within max_length"
NOT_ONE_ANSWER = "chosen and rejected differ in more than their last message"

_SPEAKER = re.compile(r"\n\n(Human|Assistant):")
_TRANSCRIPT = re.compile(r"\n\nHuman:")
_SPOKEN_BY = {"Human": "user", "Assistant": "assistant"}


@dataclass(frozen=True)
class PreferenceRow:
    """A prompt (chat or text) and two answers to it, of which `chosen` is the better one."""

    place: str
    prompt: str | tuple[Message, ...]
    chosen: str
    rejected: str


def read_preference_rows(path: Path, string_prompts: str = "text") -> Rows[PreferenceRow]:
    """The pairs in `path`; left out are repeated pairs, those with an empty answer or two equal
    ones, and chats that part before their last message.

    Raises BadInput for a file that cannot be read or holds no usable row, and for a row that is no
    pair of answers.
    """

    def parse(record: dict[str, Any], place: str, where: str) -> PreferenceRow | str:
        row = _preference_row(record, place, where)
        if isinstance(row, str) or not isinstance(row.prompt, str) or string_prompts == "text":
            return row
        return PreferenceRow(place, as_chat(row.prompt), row.chosen, row.rejected)

    return read_rows(
        path, parse, _no_preference, lambda row: (row.prompt, row.chosen, row.rejected)
    )


def _preference_row(record: dict[str, Any], place: str, where: str) -> PreferenceRow | str:
    for name in ("chosen", "rejected"):
        if name not in record:
            raise BadInput(f"{where} has no {name!r}; a pair needs chosen and rejected.")
    begun, pair = _pair(record)
    if isinstance(begun, str) and all(isinstance(answer, str) for answer in pair):
        return PreferenceRow(place, text_prompt(begun, where), *cast(tuple[str, str], pair))
    if begun is None and all(isinstance(answer, str) for answer in pair):
        return _shared_text(place, *cast(tuple[str, str], pair), where)
    if isinstance(begun, str):
        if not all(isinstance(answer, list) for answer in pair):
            raise BadInput(
                f"{where} has a text as prompt, so chosen and rejected must both be texts, or both "
                "lists of messages."
            )
        # Whole chats repeat the prompt as their first message; single answers do not.
        begun = None if all(len(answer) > 1 for answer in pair) else list(as_chat(begun))
    if begun is None:
        left, right = (parse_chat(chat, f"an answer in {where}") for chat in pair)
        if left == right:
            return IDENTICAL
        shared = _shared_length(left, right)
        prompt, chosen, rejected = left[:shared], left[shared:], right[shared:]
    else:
        prompt = parse_chat(begun, f"prompt in {where}")
        chosen, rejected = (_answer(answer, prompt, f"an answer in {where}") for answer in pair)
    if not prompt:
        raise _nothing_shared(where)
    if not (_is_answer(chosen) and _is_answer(rejected)):
        return NOT_ONE_ANSWER
    return PreferenceRow(place, tuple(prompt), chosen[0]["content"], rejected[0]["content"])


def _pair(record: dict[str, Any]) -> tuple[Any, tuple[Any, Any]]:
    """The prompt, None if there is none, with chosen and rejected; "Human:" paragraphs as messages,
    and an answer that is one message as a list of it."""
    begun = record.get("prompt", record.get("conversations"))
    left, right = (
        [it] if isinstance(it, dict) else it for it in (record["chosen"], record["rejected"])
    )
    if not (isinstance(left, str) and isinstance(right, str)):
        return begun, (left, right)
    before = begun if isinstance(begun, str) and _TRANSCRIPT.match(begun) else ""
    if _TRANSCRIPT.match(left) and _TRANSCRIPT.match(right):
        return None if before else begun, (_said(left), _said(right))
    if before:
        return None, (_said(before + left), _said(before + right))
    return begun, (left, right)


def _said(transcript: str) -> list[Message]:
    _, *parts = _SPEAKER.split(transcript)
    turns = zip(parts[::2], parts[1::2], strict=True)
    return [Message(role=_SPOKEN_BY[name], content=text.strip()) for name, text in turns]


def _answer(value: Any, prompt: Sequence[Message], where: str) -> list[Message]:
    """An answer as messages; one that repeats the prompt loses that beginning."""
    if isinstance(value, str):
        return [Message(role="assistant", content=value)]
    chat = parse_chat(value, where)
    return chat[len(prompt) :] if chat[: len(prompt)] == list(prompt) else chat


def _shared_length(left: Sequence[object], right: Sequence[object]) -> int:
    same = (ours == theirs for ours, theirs in zip(left, right, strict=False))
    return sum(itertools.takewhile(bool, same))


def _is_answer(chat: Sequence[Message]) -> bool:
    return len(chat) == 1 and chat[0]["role"] == "assistant"


def _shared_text(place: str, chosen: str, rejected: str, where: str) -> PreferenceRow | str:
    """Two plain texts: what they share, up to the end of a whole word, is the prompt."""
    if chosen == rejected:
        return IDENTICAL
    same = _shared_length(chosen, rejected)
    shared = chosen[: max((i for i in range(same) if chosen[i].isspace()), default=0)]
    if not shared.strip():
        raise _nothing_shared(where)
    return PreferenceRow(place, shared, chosen[len(shared) :], rejected[len(shared) :])


def _nothing_shared(where: str) -> BadInput:
    return BadInput(f"{where} has no prompt, and chosen and rejected share no beginning.")


def _no_preference(row: PreferenceRow) -> str | None:
    if not (row.chosen.strip() and row.rejected.strip()):
        return EMPTY
    return IDENTICAL if row.chosen == row.rejected else None
