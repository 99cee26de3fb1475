"""A message as it was understood: what it says that is worth keeping, and what it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol, runtime_checkable

from memograd.memory.reader.fact import Fact
from memograd.memory.records.turns import RawTurn

Said = tuple[str, str]  # role and text


@dataclass(frozen=True, slots=True)
class Heard:
    """One turn with its facts.

    before: role and text of the turns before it, oldest first. facts: what is worth keeping, in
    the order it was said. quotes: the words of each fact. forget: it asks to forget something, or
    not to keep this. idle: its "forget it" speaks of the talk, not of the memory. everything: it
    asks to forget all that is known. secret: it holds a password or the like. whole: all of it,
    worded to be read alone. own: what it says in the speaker's own words, empty where nothing.
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
    own: str = ""

    @property
    def day(self) -> date | None:
        """The day it was said, where that is known."""
        return self.turn.time.date() if self.turn.time else None


@runtime_checkable
class MessageReader(Protocol):
    """Understands messages as wholes, with what was said before them."""

    def hear(self, turns: Sequence[RawTurn], before: Sequence[RawTurn]) -> list[Heard]:
        """What each turn says, in order.

        before: the turns that were heard before these, oldest first; the last few count.
        """
        ...
