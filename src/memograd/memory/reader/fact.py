"""What readers make of a conversation: facts, and messages as they were understood.

Readers implement `MemReader`, or `MessageReader` where they understand a message as a whole; a
manager then decides what becomes of each fact. The contract is held by
`tests/memory/test_reader.py` for the rules and by `tests/memory/test_reader_chat.py` for chat
models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol, runtime_checkable

from memograd.memory.records.items import Kind
from memograd.memory.records.turns import RawTurn


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing worth remembering, understandable without the conversation.

    text: in the language of the turn; speakers named, dates absolute. sources: ids of the turns it
    came from. valid_from: since when it is true, as far as the turn tells; told_at: when it was
    said; both None where unknown. subject: who or what it is about, empty where not understood.
    retracts: `text` is true no longer and should be forgotten. forget: because somebody asked for
    it, so that the turns that told of it should not be shown either. categories: names that the
    application defines.
    """

    text: str
    sources: tuple[str, ...]
    kind: Kind = Kind.SEMANTIC
    valid_from: datetime | None = None
    told_at: datetime | None = None
    subject: str = ""
    retracts: bool = False
    forget: bool = False
    categories: tuple[str, ...] = ()


class MemReader(Protocol):
    """Turns a stretch of conversation into facts."""

    def read(self, turns: Sequence[RawTurn]) -> list[Fact]:
        """The facts in the order of the turns; every source is the id of one of the turns.

        turns: consecutive turns of one conversation, in the order in which they were said.
        """
        ...


Said = tuple[str, str]  # role and text


@dataclass(frozen=True, slots=True)
class Heard:
    """One turn with its facts.

    before: role and text of the turns before it, oldest first. facts: what is worth keeping, in
    the order it was said. quotes: the words of each fact. forget: it asks to forget something, or
    not to keep this. idle: its "forget it" speaks of the talk, not of the memory. everything: it
    asks to forget all that is known. secret: it holds a password or the like. whole: all of it,
    worded to be read alone. stated: likewise its statements, where only one of several is a fact.
    asked: what it asks beside a fact and may tell by the way; that changes nothing. own: what it
    says in the speaker's own words, empty where nothing. may_close: False where it surely ends,
    replaces or corrects nothing, so that items need not be read with it. perhaps: the sentences
    that may ask to forget something, which only shows beside what they would mean.
    """

    turn: RawTurn
    before: tuple[Said, ...] = ()
    facts: tuple[Fact, ...] = ()
    quotes: tuple[str, ...] = ()
    forget: bool = False
    idle: bool = False
    everything: bool = False
    secret: bool = False
    whole: str = ""
    stated: str = ""
    asked: tuple[Fact, ...] = ()
    own: str = ""
    may_close: bool = True
    perhaps: tuple[str, ...] = ()

    @property
    def day(self) -> date | None:
        """The day it was said, where that is known."""
        return self.turn.time.date() if self.turn.time else None

    @property
    def as_fact(self) -> Fact:
        """The message as a fact that only says where and when."""
        time = self.turn.time
        return Fact(
            self.turn.text, (self.turn.id,), valid_from=time, told_at=time, forget=self.forget
        )


@runtime_checkable
class MessageReader(Protocol):
    """Understands messages as wholes, with what was said before them."""

    def hear(self, turns: Sequence[RawTurn], before: Sequence[RawTurn]) -> list[Heard]:
        """What each turn says, in order.

        before: the turns that were heard before these, oldest first; the last few count.
        """
        ...
