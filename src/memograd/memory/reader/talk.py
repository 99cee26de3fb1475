"""What people say to each other, not to a memory: which sentences only keep the talk going.

    Wow, Mel! Bring him too. Whose idea was it? We went biking last weekend.

The last one tells something. A person who talks with an assistant says such things to it, and they
are judged elsewhere.

Invariants: the form of the sentence alone decides; an English sentence with a first person is never
thrown away. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import is_chinese
from memograd.memory.reader import screen_english
from memograd.memory.reader.heads import has_verb, is_telling
from memograd.memory.reader.parts import asks
from memograd.memory.reader.person_english import FIRST_PERSON

OVERHEARD: Final = 0.2
"""The worth, beside what somebody reacts with, from which a sentence is read alone."""
# "Start on the 2nd at Wallsend" and "go to Dougie" tell of a day and of somebody.
_NAMES: Final = re.compile(r"\d|(?<=[a-z,;] )[A-Z]")
_BRIEF: Final = 2  # words
_ASIDE: Final = re.compile(r" ?[-–—]+ |; ")  # "I took them swimming - it was so cool!"
_YOU: Final = re.compile(r"\b(?:you|your|yours)\b", re.IGNORECASE)


def told_in(said: str) -> str:
    """The sentence without what it cheers behind a dash: "I took them swimming - it was great"."""
    first, *behind = _ASIDE.split(said, maxsplit=1)
    return first if behind and screen_english.praises(behind[0]) else said


def may_tell(said: str, worth: float) -> bool:
    """Whether it may tell something that the reactions around it hide; said: without calls."""
    if is_chinese(said) or screen_english.praises(said):
        return False
    return worth >= OVERHEARD and is_telling(said)


def keeps_talk_going(said: str, *, called: bool, answers: bool) -> bool:
    """Whether it asks, urges, cheers or echoes, and tells nothing.

    said: without interjections and calls; called: it had some. answers: a question was asked
    before it.
    """
    plain = said.replace("’", "'")
    if is_chinese(plain) or FIRST_PERSON.search(plain):
        return False
    urges = screen_english.is_request(plain) and not _NAMES.search(plain)
    if asks(plain) or urges or screen_english.is_reaction(plain):
        return not answers
    if screen_english.praises(plain) and (called or _YOU.search(plain)):
        return True
    brief = len(plain.split()) <= _BRIEF and not has_verb(plain) and not _NAMES.search(plain)
    return brief and not answers
