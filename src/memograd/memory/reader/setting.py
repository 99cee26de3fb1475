"""What a sentence is read with, and what the two languages' readings of it have in common.

A `Draft` is a sentence made to stand alone, before it becomes a fact. Tested through the reader.

Names come in last: until then, marks stand for whoever speaks and whoever is addressed.

A name may be a word that is itself replaced ("Me", "My"), or hold characters that a replacement
pattern would read. Invariant: any name stands in the text as it is, wherever its mark stood. Pure
functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Final

from memograd.memory.language import Language
from memograd.memory.records.items import Kind
from memograd.memory.records.turns import RawTurn

# Private characters of Unicode, which no text uses with a meaning of its own.
SPEAKER: Final = "\ue000"
OTHER: Final = "\ue001"


def without_marks(text: str) -> str:
    """The text as it can be worked on: without characters that would be taken for marks."""
    return text.replace(SPEAKER, "").replace(OTHER, "")


def put_names(text: str, speaker: str, other: str | None) -> str:
    """The text with names for marks; a name in s gets a bare apostrophe: `James' dog`."""
    parts = {SPEAKER: without_marks(speaker), OTHER: without_marks(other or "")}
    for mark, name in parts.items():
        if name.endswith("s"):
            text = text.replace(f"{mark}'s", f"{mark}'")
        text = text.replace(mark, name)
    return text


def outside_quotes(text: str, quoted: re.Pattern[str], change: Callable[[str], str]) -> str:
    """The text with what is not quoted changed, stretch by stretch."""
    pieces: list[str] = []
    start = 0
    for found in quoted.finditer(text):
        pieces += [change(text[start : found.start()]), found.group()]
        start = found.end()
    return "".join([*pieces, change(text[start:])])


@dataclass(frozen=True)
class Setting:
    """What a sentence must be read with: who speaks to whom, when, and after which question."""

    turn: RawTurn
    speakers: tuple[str, ...]
    to_agent: bool
    question: str | None
    before: str
    about: str | None = None
    """Whom a pronoun at the head of the sentence means, in the speaker's words."""
    near: str = ""
    """What was said just before, of whom its pronouns may speak."""
    alone: bool = True
    """Whether no other person speaks in the call or just before it."""
    earlier: str = ""
    """What the same person said before `before`."""

    def name(self, language: Language) -> str:
        return display(self.turn.speaker, language)

    def addressed(self, language: Language) -> str | None:
        """Who "you" is where two people talk with each other; None where an assistant is."""
        others = [name for name in self.speakers if name != self.turn.speaker]
        known = not self.to_agent and len(others) == 1
        return display(others[0], language) if known else None

    @property
    def day(self) -> date | None:
        return self.turn.time.date() if self.turn.time else None


@dataclass(frozen=True)
class Draft:
    text: str
    day: date | None
    language: Language
    kind: Kind | None = None
    retracts: bool = False
    forget: bool = False


def display(speaker: str, language: Language) -> str:
    if speaker.casefold() in ("user", "human"):
        return "用户" if language == "zh" else "User"
    if speaker.casefold() == "assistant":
        return "助手" if language == "zh" else "the assistant"
    return speaker


def finished(text: str, stop: str) -> str:
    text = " ".join(text.split()).rstrip(" ,，;；")
    text = text[:1].upper() + text[1:]
    text = re.sub(r"(?:。\.|。)+$", "。", text)
    return text if text.endswith((".", "!", "。", "！", "…", '"', "”", "?", "？")) else text + stop
