"""The reader that asks a chat model for the facts, as checked JSON.

Turns are shown with the numbers 1 to n, and a fact names its sources by these numbers, so that no
id can be invented: an unknown number is dropped and logged. A Chinese conversation must give
Chinese facts; where the model drifts into another language it is asked once more.

Invariant: every source of every fact is a turn that was read.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memograd.memory.chat.chat_model import ChatMessage, ChatModel, UnusableAnswer, ask_checked
from memograd.memory.language import language_of
from memograd.memory.reader.fact import Fact
from memograd.memory.records.items import Kind
from memograd.memory.records.turns import RawTurn

logger = logging.getLogger(__name__)

FACTS_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "sources": {"type": "array", "items": {"type": "integer"}},
                    "kind": {"type": "string", "enum": [kind.value for kind in Kind]},
                    "subject": {"type": "string"},
                    "valid_from": {"type": ["string", "null"]},
                    "retracts": {"type": "boolean"},
                },
                "required": ["text", "sources", "kind", "subject", "valid_from", "retracts"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["facts"],
    "additionalProperties": False,
}

_INSTRUCTIONS = """\
You write down what is worth remembering from a conversation: lasting facts, events, plans and
preferences of the people in it and of the things they talk about. Leave out greetings, thanks,
questions, requests, small talk, praise, and everything that only the assistant says.

Each fact is one short sentence that can be understood alone: name the speaker instead of "I", name
persons and things instead of pronouns, and write dates out in full, counted from the date of the
turn. A speaker called "user" is written "User" (in Chinese 用户).

Answer with a JSON object {{"facts": [...]}}; an empty list is fine. Each fact has
- "text": the sentence, in {language};
- "sources": the numbers of the turns that it comes from;
- "kind": "core" (who somebody is: name, identity, allergies), "episodic" (what happened),
  "semantic" (what is so) or "procedural" (how the assistant is to act, or how something is done);
- "subject": who or what it is about;
- "valid_from": the date since when it is true, as YYYY-MM-DD, or null;
- "retracts": true only if somebody takes back or wants forgotten what "text" says; "text" is then
  the old statement, such as "Ann likes tea" for "I no longer like tea"."""


_OF_THE_APPLICATION = """

The application adds the following on what to write down and how. Follow it where it differs from
the above; the form of the answer stays.
"""


class ChatReader:
    """Facts through a chat model.

    max_tokens: bound of one answer. instructions: what the application wants heeded. Raises
    MemogradError when the model fails or its answer stays unusable after one retry.
    """

    def __init__(self, chat: ChatModel, *, max_tokens: int = 2000, instructions: str = "") -> None:
        self._chat = chat
        self._max_tokens = max_tokens
        self._instructions = instructions.strip()

    def instructed(self, instructions: str) -> ChatReader:
        """A reader that heeds these instructions instead of the ones that it was made with."""
        return ChatReader(self._chat, max_tokens=self._max_tokens, instructions=instructions)

    def read(self, turns: Sequence[RawTurn]) -> list[Fact]:
        """The facts that the model finds; see `MemReader.read`."""
        turns = [turn for turn in turns if turn.text.strip() or turn.caption]
        if not turns:
            return []
        chinese = language_of(" ".join(turn.text for turn in turns)) == "zh"
        language = "Chinese (中文), the language of the conversation" if chinese else (
            "English, the language of the conversation"
        )  # fmt: skip
        numbered = "\n".join(f"{n}. {turn.render()}" for n, turn in enumerate(turns, 1))
        asked = _INSTRUCTIONS.format(language=language)
        if self._instructions:
            asked += _OF_THE_APPLICATION + self._instructions
        messages: list[ChatMessage] = [
            {"role": "system", "content": asked},
            {"role": "user", "content": numbered},
        ]

        def check(answer: Mapping[str, Any]) -> list[Fact]:
            facts = answer.get("facts")
            if not isinstance(facts, list):
                raise UnusableAnswer('it has no list "facts".')
            read = [_fact(fact, turns) for fact in facts]
            _check_language(read, chinese)
            return [fact for fact in read if fact.sources]

        return ask_checked(
            self._chat, messages, check, schema=FACTS_SCHEMA, max_tokens=self._max_tokens
        )


def _fact(raw: Any, turns: Sequence[RawTurn]) -> Fact:
    """One fact of the answer; a number that no turn has is dropped, and so is logged."""
    if (
        not isinstance(raw, Mapping)
        or not isinstance(raw.get("text"), str)
        or not raw["text"].strip()
    ):
        raise UnusableAnswer('a fact has no "text".')
    numbers = raw.get("sources")
    if not isinstance(numbers, list):
        raise UnusableAnswer(f'the fact "{raw["text"][:60]}" has no list "sources".')
    known = [n for n in numbers if type(n) is int and 1 <= n <= len(turns)]
    if len(known) < len(numbers):
        invented = [n for n in numbers if n not in known]
        logger.warning(
            "The chat model named turns that it was not shown: %s; dropped%s.",
            invented, "" if known else ", and the fact with them",
        )  # fmt: skip
    kind = raw.get("kind", Kind.SEMANTIC.value)
    if kind not in [each.value for each in Kind]:
        raise UnusableAnswer(f'"{kind}" is no kind: use {", ".join(Kind)}.')
    return Fact(
        text=" ".join(raw["text"].split()),
        sources=tuple(dict.fromkeys(turns[n - 1].id for n in known)),
        kind=Kind(kind),
        valid_from=_valid_from(raw.get("valid_from"), [turns[n - 1] for n in known]),
        told_at=next((time for n in reversed(known) if (time := turns[n - 1].time)), None),
        subject=str(raw.get("subject") or ""),
        retracts=raw.get("retracts") is True,
        forget=raw.get("retracts") is True,
    )


def _valid_from(raw: Any, sources: Sequence[RawTurn]) -> datetime | None:
    """The date that was given, unless it is still to come; else when it was said."""
    spoken = next((turn.time for turn in sources if turn.time), None)
    if not raw:
        return spoken
    try:
        day = datetime.fromisoformat(str(raw))
    except ValueError:
        raise UnusableAnswer(f'"{raw}" is no date: write YYYY-MM-DD or null.') from None
    if spoken is None:
        return day
    day = day.replace(tzinfo=spoken.tzinfo)
    return min(day, spoken)


def _check_language(facts: Sequence[Fact], chinese: bool) -> None:
    """Facts must be in the conversation's language, told by their script, most of them at least."""
    wanted = "zh" if chinese else "en"
    strangers = [fact.text for fact in facts if language_of(fact.text) != wanted]
    if len(strangers) * 2 > len(facts):
        raise UnusableAnswer(
            f"the facts must be written in {'Chinese (中文)' if chinese else 'English'}, but"
            f' "{strangers[0][:60]}" is not.'
        )
