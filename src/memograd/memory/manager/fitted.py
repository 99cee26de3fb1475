"""A value put in the place of another one, in the form that the place asks for.

    "'67" for "in 1968"  ->  "in 1967"           "79" for "xVoidbeak77"  ->  "xVoidbeak79"
    "HG-5581" for "HG-5580", of which only "5580" was found  ->  "HG-5581"

Who corrects a part of a value says the part alone. Invariant: nothing but the one stretch changes,
and what stands there is the value, or it with what the old one begins or ends with. Pure functions.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Final

from memograd.memory.language import simplified
from memograd.memory.records.turns import MONTHS, format_date

_YEAR: Final = re.compile(r"(?:1\d|20)(?=\d\d$)")
_SHORT_YEAR: Final = re.compile(r"['’‘]?(\d\d)")
_OF_YEARS: Final = re.compile(
    r"\b(?:in|since|from|until|till?|by|around|about|before|after|of|early|late|mid) $"
    r"|[\u4e00-\u9fff]$",
    re.IGNORECASE,
)
_ENDS_IN_NUMBER: Final = re.compile(r"(?P<stays>[^\s\d].*[A-Za-z_]|[A-Za-z_])(?P<number>\d+)")
_GREAT: Final = re.compile(r"\d[\d.,]*(?P<stays>[万亿千k]| (?:thousand|million|billion|grand))")
_SMALL: Final = re.compile(r"\d{1,3}(?:\.\d+)?")


_DAYS: Final = ("Mon", "Tues", "Wednes", "Thurs", "Fri", "Satur", "Sun")
_DAYS_ZH: Final = "一二三四五六日"
_OF_CALENDAR: Final = re.compile(rf"(?:{'|'.join(_DAYS)})day|{'|'.join(MONTHS)}", re.IGNORECASE)
_DATED: Final = re.compile(
    rf"\b(?P<day>{'|'.join(_DAYS)})day (?P<date>(?P<d>\d{{1,2}}) (?P<m>{'|'.join(MONTHS)})"
    r" (?P<y>\d{4}))\b"
    r"|(?P<zh>(?P<y2>\d{4})年(?P<m2>\d{1,2})月(?P<d2>\d{1,2})日)（周(?P<day2>[一二三四五六日天])）",
    re.IGNORECASE,
)


def redated(text: str, old: str, today: date | None) -> str:
    """The text that took the place of the old one, so that a day of the week and its date agree.

    "Friday 10 May 2024" with Saturday put in becomes "Saturday 11 May 2024": the day of that name
    on the same side of `today`, or the nearest one where that is unknown.
    """
    was = [found[0] for found in _DATED.finditer(old)]
    days = {_named_day(found) for found in _DATED.finditer(old)}

    def agreeing(found: re.Match[str]) -> str:
        told, number = _date_of(found), _named_day(found)
        if found[0] in was or told is None or told.weekday() == number:
            return found[0]
        if number in days:  # another date was put in
            number = told.weekday()
        shift = (number - told.weekday()) % 7
        moved = told + timedelta(shift)
        back = moved - timedelta(7)
        if today is None:
            told = moved if shift <= 3 else back
        elif told >= today:
            told = back if back >= today else moved
        else:
            told = moved if moved <= today else back
        if found["zh"]:
            return f"{told.year}年{told.month}月{told.day}日（周{_DAYS_ZH[number]}）"
        return f"{_DAYS[number]}day {format_date(told)}"

    return _DATED.sub(agreeing, text)


def _named_day(found: re.Match[str]) -> int:
    if found["day2"]:
        return _DAYS_ZH.index(found["day2"].replace("天", "日"))
    return _DAYS.index(found["day"].capitalize())


def _date_of(found: re.Match[str]) -> date | None:
    try:
        if found["zh"]:
            return date(int(found["y2"]), int(found["m2"]), int(found["d2"]))
        return date(int(found["y"]), MONTHS.index(found["m"].capitalize()) + 1, int(found["d"]))
    except ValueError:
        return None


def put(text: str, span: tuple[int, int], value: str) -> str:
    """The text with the value in that place."""
    head, behind = text[: span[0]], text[span[1] :]
    value = _completed(text, span, value)
    if behind[:1] != value[-1:] == simplified(behind[:1]):
        span = (span[0], span[1] + 1)  # 21号 in the place of the 12 of 12號
    value = value[_said_before(head, value) :]
    if value.islower() and _OF_CALENDAR.fullmatch(value) and text[slice(*span)][:1].isupper():
        value = value.capitalize()
    return head + (value[:1].upper() + value[1:] if not head else value) + text[span[1] :]


def _completed(text: str, span: tuple[int, int], value: str) -> str:
    """The value with what it leaves out of the old one: century, letters, thousands."""
    old, head, behind = text[slice(*span)], text[: span[0]], text[span[1] :]
    century, short = _YEAR.match(old), _SHORT_YEAR.fullmatch(value)
    if century and short and (behind.startswith("年") or _OF_YEARS.search(head)):
        return century[0] + short[1]
    if not value.isdecimal() and not _SMALL.fullmatch(value):
        return value
    if (code := _ENDS_IN_NUMBER.fullmatch(old)) and abs(len(code["number"]) - len(value)) <= 1:
        return code["stays"] + value
    great = _GREAT.fullmatch(old)
    return value + great["stays"] if great and _SMALL.fullmatch(value) else value


def _said_before(head: str, value: str) -> int:
    """How many characters the value begins with that stand before the place: "HG-" of "HG-5581"."""
    for length in range(min(len(head), len(value) - 1), 1, -1):
        begins = value[:length]
        whole = not (value[length - 1].isascii() and value[length - 1].isalnum())
        starts = not (begins[0].isascii() and head[: len(head) - length][-1:].isalnum())
        if whole and starts and head.casefold().endswith(begins.casefold()):
            return length
    return 0
