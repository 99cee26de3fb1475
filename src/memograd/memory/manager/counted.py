"""What a number counts: "four laps" and "sixth lap" are of one unit, 12节 and 61个 are not.

Invariant: where a text does not say what its number counts, nothing is guessed. Pure functions.
"""

from __future__ import annotations

from typing import Final

from memograd.memory.language import is_chinese
from memograd.memory.manager.substitution import TIMES, TYPES, next_word, plain

_NO_UNITS: Final = frozenset(
    ["", *"了吧啊啦哦呢的", *["now", "today", "sorry", "then", "as", "from", "and", "for"]]
)


def of_one_unit(old: str, message: str) -> bool:
    """Whether a number of each counts the same: "four laps" and "sixth lap", not 12节 and 61个.

    True where a text has no number.
    """
    mine, its = _units(old), _units(message)
    return not mine or not its or not mine.isdisjoint(its)


def bare_number(message: str) -> str | None:
    """The only number of a message, where nothing is said of what it counts; None otherwise."""
    if (number := number_of(message)) is None or not _units(message) <= _NO_UNITS:
        return None
    return number


def number_of(text: str) -> str | None:
    """The only number of a text that has no date, time or day; None otherwise."""
    if any(pattern.search(text) for pattern in TYPES[:TIMES]):
        return None
    found = [m[0] for pattern in TYPES[-2:] for m in pattern.finditer(text)]
    return plain(found[0]) if len(found) == 1 else None


def _units(text: str) -> set[str]:
    found = set()
    for pattern in TYPES[-2:]:
        for number in pattern.finditer(text):
            behind = text[number.end() :].lstrip()
            unit = behind[:1] if is_chinese(behind[:1]) else next_word(behind, 0)[:5]
            found.add(unit.rstrip("s"))
    return found
