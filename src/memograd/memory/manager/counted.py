"""What a number counts: "four laps" and "sixth lap" are of one unit, 12节 and 61个 are not.

    User has 3 trucks and 5 drivers.   "five trucks, three drivers"
    ->  User has five trucks and three drivers.

Invariant: where a text does not say what its number counts, nothing is guessed. Pure functions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from memograd.memory.language import is_chinese
from memograd.memory.manager.fitted import put
from memograd.memory.statements.value_types import (
    AROUND_UNIT,
    NEGATED,
    NUMERALS,
    STAYS,
    TIMES,
    TYPES,
    next_word,
    plain,
)


def of_one_unit(old: str, message: str) -> bool:
    """Whether a number of each counts the same: "four laps" and "sixth lap", not 12节 and 61个.

    True where a text has no number.
    """
    mine, its = _units(old), _units(message)
    return not mine or not its or not mine.isdisjoint(its)


def _units(text: str) -> set[str]:
    found = set()
    for pattern in TYPES[-2:]:
        for number in pattern.finditer(text):
            behind = text[number.end() :].lstrip()
            unit = behind[:1] if is_chinese(behind[:1]) else next_word(behind, 0)[:5]
            found.add(unit.rstrip("s"))
    return found


@dataclass(frozen=True)
class _Counted:
    """A number: its place, as numbers are compared, and the words of what it counts."""

    place: tuple[int, int]
    value: str
    words: frozenset[str]


def counted_anew(old: str, message: str) -> tuple[str, str] | None:
    """A statement of several numbers with those that a message gives anew, told by what they count,
    and the first of these; None where no number of the message is of one thing alone.

    What the message only repeats, or says is right, stays: "8 kg of honey, the 23 is right".
    """
    mine, its = _all_counted(old), _all_counted(message)
    if len(mine) < 2 or AROUND_UNIT.search(old) or AROUND_UNIT.search(message):
        return None
    found: dict[int, _Counted] = {}
    for number in its:
        denied = NEGATED.search(message[: number.place[0]])
        if denied or STAYS.match(message[number.place[1] :]):
            continue
        shared = [len(number.words & one.words) for one in mine]
        most = max(shared)
        if most < LEAST_SHARED[is_chinese(old)] or shared.count(most) > 1:
            continue
        if shared.index(most) in found:
            return None
        found[shared.index(most)] = number
    anew = {n: one for n, one in found.items() if mine[n].value != one.value}
    if not anew:
        return None
    if len(mine) == len(its) == len({one.value for one in mine}) == 2 and len(anew) == 1:
        [n] = anew
        [other] = [one for one in its if one is not anew[n]]
        if {mine[n].value, mine[1 - n].value} == {anew[n].value, other.value}:
            anew[1 - n] = other  # "60 beans 40 corn" of "40 in soybeans and 60 in corn"
    text = old
    for n in sorted(anew, reverse=True):
        text = put(text, mine[n].place, message[slice(*anew[n].place)])
    return text, message[slice(*min(one.place for one in anew.values()))]


def _all_counted(text: str) -> list[_Counted]:
    """The numbers of a text that are no dates, times or days."""
    rest = text
    for pattern in TYPES[:TIMES]:
        rest = pattern.sub(lambda m: " " * len(m[0]), rest)
    pattern = _HAN_NUMBER if is_chinese(text) else TYPES[-2]
    found = list(pattern.finditer(rest))
    ends = [one.start() for one in found] + [len(text)]
    return [
        _Counted(one.span(), plain(one[0]), _words(text[one.end() : end]))
        for one, end in zip(found, ends[1:], strict=True)
    ]


def _words(behind: str) -> frozenset[str]:
    """What a number counts, of what stands behind it: kg and honey of "kg of honey, for mead"."""
    if is_chinese(behind):
        return frozenset(_ENDS_ZH.split(behind)[0][:4]) - _NO_UNITS_ZH
    words = re.findall(r"[^\W\d_]+", _ENDS.split(behind)[0])[:4]
    return frozenset(word.casefold()[:6].rstrip("s") for word in words) - _OF


LEAST_SHARED: Final = {False: 1, True: 2}  # words, or Chinese characters
_HAN_NUMBER: Final = re.compile(rf"\d[\d.,]*[万亿]?\d?|[{NUMERALS}万亿]+")
_NO_UNITS_ZH: Final = frozenset("了吧啊啦哦呢的")
_OF: Final = frozenset(
    (
        "",
        *[
            "of",
            "a",
            "an",
            "the",
            "per",
            "to",
            "in",
            "at",
            "on",
            "for",
            "my",
            "our",
            "is",
            "are",
            "it",
            "that",
        ],
    )
)
_ENDS: Final = re.compile(r"[,.;:!?()]|\b(?:and|or|but|with|plus|then|not|no)\b", re.IGNORECASE)
_ENDS_ZH: Final = re.compile(r"[^\u4e00-\u9fff]|[和跟与與的了在是]")
