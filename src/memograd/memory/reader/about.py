"""Who "she" is: the person of the user's that a sentence speaks of and only points at.

    My wife Luz bought a cooler. She's from El Salvador.     my wife Luz
    我妈5月来住。她61，退休会计。                              我妈

    Brian died this morning. I buried him.                   Brian
    小蒋下个月结婚。她说蜜月去三亚。                          小蒋

A stranger who reads "She's from El Salvador" alone knows nothing. A relation ("my wife") says whose
person it is and mostly whether she or he; a name, a title or a calling ("the physio") says who. A
pronoun that nobody in its own sentence can be is resolved where one such person or animal alone was
spoken of: earlier in the message, or else in the one before it.

Invariant: nobody is named where two may be meant. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Final

from memograd.memory.language import is_chinese, language_of, simplified
from memograd.memory.reader import people_chinese, people_english
from memograd.memory.reader.people import Person, Sex, bound, the_one
from memograd.memory.records.turns import RawTurn

_BRIEF: Final = 12  # characters: "Got it." names nobody
_QUOTED: Final = re.compile(r"“[^”]*”|\"[^\"]*\"|「[^」]*」")  # whom others speak of
_SENTENCE: Final = re.compile(r"[^.!?。！？\n]+")


def person_meant(
    sentence: str, earlier: str, message_before: str, before_that: str = ""
) -> str | None:
    """Whom the pronoun of the sentence means, in the speaker's words ("my wife Luz").

    earlier: the message up to the sentence. message_before: what was said before it (`spoken_of`),
    before_that: and before that, which is looked at for whom a pronoun of `message_before` means.
    None where the sentence has no such pronoun, or where nobody or more than one is possible.
    """
    chinese = language_of(sentence) == "zh"
    sex = people_chinese.pointed(sentence) if chinese else people_english.pointed(sentence)
    if sex is None:
        return None
    said = (earlier, message_before, before_that)
    unquoted = (_QUOTED.sub(lambda one: " " * len(one[0]), text) for text in said)
    earlier, message_before, before_that = (
        simplified(text) if chinese else text for text in unquoted
    )
    read: Callable[[str], list[Person]] = (
        people_chinese.people if chinese else people_english.people
    )
    pronouns: Callable[[str], Iterator[tuple[int, Sex]]]
    pronouns = people_chinese.pronouns if chinese else people_english.pronouns
    spoken_of = bound(read(before_that), pronouns(before_that))
    known = bound(read(message_before), pronouns(message_before), spoken_of)
    people = bound(read(earlier), pronouns(earlier), known)
    if people:
        return the_one(people, sex)  # of whoever was spoken of before them it cannot speak
    return the_one(known, sex) if _names_nobody(earlier, chinese=chinese) else None


SITTING: Final = timedelta(hours=12)
"""What was said longer ago is not what "she" at the head of a sentence means."""


def said_before(past: Sequence[RawTurn], turn: RawTurn) -> tuple[str, str]:
    """The last message of the same speaker in the sitting, and the one before it."""
    own = (
        one.text for one in reversed(past) if one.speaker == turn.speaker and _is_near(one, turn)
    )
    return next(own, ""), next(own, "")


def answered_by(past: Sequence[RawTurn], turn: RawTurn) -> str:
    """What another person said just before the turn, empty where nobody did."""
    if not past or past[-1].speaker == turn.speaker or past[-1].said_as != "user":
        return ""
    return past[-1].text if _is_near(past[-1], turn) else ""


def _is_near(before: RawTurn, turn: RawTurn) -> bool:
    """Whether both are of one sitting, so that the later one may point at the earlier."""
    if before.time is None or turn.time is None:
        return True
    return abs(turn.time - before.time) <= SITTING


def spoken_of(own: str, other: str, speakers: Sequence[str]) -> str:
    """What was said just before a message, of whom its pronouns may speak.

    own: what the same person said last. other: what another said behind that, empty where nobody
    did. "My sister" is another's there, so then only one's own words count; nor are those who talk
    with each other spoken of.
    """
    if not other or is_chinese(other) or _OWN.search(other):
        return own
    for name in speakers:
        other = re.sub(rf"\b{re.escape(name[:3])}\w*[,!]? ?", "", other)
    return f"{own}\n{other}"


_OWN: Final = re.compile(r"\b(?:my|our|mine|ours)\b", re.IGNORECASE)


def _names_nobody(earlier: str, *, chinese: bool) -> bool:
    """Whether what stands before the sentence has no room for somebody whom no form shows."""
    longest = _BRIEF // 2 if chinese else _BRIEF
    return all(len(one[0].strip()) <= longest for one in _SENTENCE.finditer(earlier))
