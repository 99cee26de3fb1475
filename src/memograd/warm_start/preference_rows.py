"""Rows of preferences: a prompt and two answers to it, of which one is better.

    {"prompt": text or messages, "chosen": text or messages, "rejected": the same}

Without `prompt` (or `conversations`, as some files call it) the beginning that chosen and rejected
share is the prompt: their first messages, or the words that two texts begin with. So it is where
the prompt is a text and the answers are whole chats. Two texts that begin with a "Human:"
paragraph are chats, with the prompt before them if that is one. A prompt that is a text is
continued as it stands, or is a user's message if `string_prompts` is "chat". An answer may be one
message. Other columns are ignored.

Invariant: a pair is two different answers, none empty, each one message of the assistant.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from memograd.errors import BadInput
from memograd.rollout.types import Message
from memograd.warm_start.rows import (
    EMPTY,
    Rows,
    as_chat,
    parse_chat,
    read_rows,
    text_prompt,
)

IDENTICAL = "chosen and rejected are the same"
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
