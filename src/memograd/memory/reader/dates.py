"""English words that point at a day ("last Friday"), replaced by the day they mean.

A mention says which words it replaces, by what, and the first day it covers. Invariant: the dates
follow from the words and the day of speaking alone. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from memograd.memory.reader.bare_days import bare_days
from memograd.memory.reader.person_english import is_past
from memograd.memory.records.turns import MONTHS, format_date

WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, slots=True)
class Resolved:
    """A text with its pointers replaced, and the first day that was pointed at, None without."""

    text: str
    day: date | None


NUMBERS: Final = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15,
    "twenty": 20, "thirty": 30, "a dozen": 12,
    "a couple of": 2, "couple": 2,
}  # fmt: skip
_COUNT = (
    r"(?P<count>\d{1,3}|a couple of|a dozen|an?|one|two|three|four|five|six|seven|eight|nine|ten"
    r"|eleven|twelve|fifteen|twenty|thirty|a dozen)"
)
_DAY_NAMES = (
    r"(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs(?:day)?)?|fri(?:day)?"
    r"|sat(?:urday)?|sun(?:day)?)"
)
_MONTH_NAMES = rf"(?P<month>{'|'.join(month.casefold() for month in MONTHS)})"
_PREPOSITION = (
    r"(?:\b(?P<before>since|until|till|from|by|for|after|before|on|in|at|of|during|than|about"
    r"|around"
    r"|almost|nearly)\s+)?"
)


def shift_month(day: date, months: int) -> date:
    """The first day of the month that lies `months` after the one of `day`."""
    index = day.year * 12 + day.month - 1 + months
    return date(index // 12, index % 12 + 1, 1)


def _near_weekday(found: re.Match[str], day: date) -> tuple[str, str, date]:
    name = found["weekday"].casefold()[:3]
    wanted = next(i for i, full in enumerate(WEEKDAYS) if full.startswith(name))
    which = (found["which"] or "").casefold()
    forward = (wanted - day.weekday()) % 7
    backward = (day.weekday() - wanted) % 7
    if which in ("last", "past", "on last", "this past"):
        target = day - timedelta(days=backward or 7)
    elif which == "next":
        target = day + timedelta(days=forward or 7)
    else:
        target = day + timedelta(days=forward)
    return "on", f"{WEEKDAYS[wanted].capitalize()} {format_date(target)}", target


def _ago(found: re.Match[str], day: date, sign: int) -> tuple[str, str, date]:
    count = found["count"].casefold()
    number = sign * (NUMBERS[count] if count in NUMBERS else int(count))
    unit = found["unit"].casefold()
    if unit == "day":
        target = day + timedelta(days=number)
        return "on", format_date(target), target
    if unit in ("week", "weekend"):
        target = day + timedelta(weeks=number)
        weeks = f"{abs(number)} weeks" if abs(number) > 1 else "a week"
        told = f"{weeks} {'after' if number > 0 else 'before'} {format_date(day)}"
        return "", told + (f" ({format_date(target)})" if unit == "week" else ""), target
    if unit == "month":
        target = shift_month(day, number)
        return "in", f"{MONTHS[target.month - 1]} {target.year}", target
    target = date(max(1, day.year + number), 1, 1)
    return "in", str(target.year), target


def _to_the_day(found: re.Match[str], day: date) -> tuple[str, str, date]:
    """ "exactly a year ago", "three years ago today"."""
    said = found["count"].casefold()
    number, unit = NUMBERS[said] if said in NUMBERS else int(said), found["unit"].casefold()
    if unit == "week":
        target = day - timedelta(weeks=number)
    else:
        first = shift_month(day, -number * (12 if unit == "year" else 1))
        target = min(first + timedelta(days=day.day - 1), shift_month(first, 1) - timedelta(days=1))
    return "on", format_date(target), target


def _ahead(found: re.Match[str], day: date) -> tuple[str, str, date]:
    """ "in two years", unless it says how long: "hadn't talked in two years", "lost 8 kg in two".

    Raises ValueError where it does.
    """
    clause = re.split(r"[,.;!?]|\b(?:to|will|going)\b", found.string[: found.start()])[-1]
    words = re.findall(r"[\w']+", clause)
    past = any(is_past(word) or word.casefold() in ("gone", "done", "sold") for word in words)
    if _NOT_YET.search(clause) or (past and not _IS.search(clause)):
        raise ValueError("a length of time")
    return _ago(found, day, 1)


_NOT_YET: Final = re.compile(
    r"\b(?:\w+n't|not|never|first time|(?:the|my|our) (?:most|best|worst|least|[a-z]+est|first))\b",
    re.I,
)
_IS: Final = re.compile(r"\b(?:is|are|am)\b|['’](?:s|re|m)\b", re.I)


def _since(found: re.Match[str], day: date) -> tuple[str, str, date]:
    """ "two weeks since": the day it began."""
    _, when, target = _ago(found, day, -1)
    if "(" in when:  # weeks are told with the day they are counted from
        when = format_date(target)
    unit = found["unit"] + ("" if NUMBERS.get(found["count"].casefold()) == 1 else "s")
    return "", f"{found['count']} {unit} (counted from {when})", target


_FEW_WEEKS: Final = 4


def _weeks_from(found: re.Match[str], day: date) -> tuple[str, str, date]:
    """ "a week today", "a fortnight tomorrow", "two weeks on Thursday", "Thursday week"."""
    parts = found.groupdict()
    count = (parts.get("count") or "a").casefold()
    if (found["before"] or "").casefold() in ("for", "of"):
        raise ValueError("a length of time")  # "signed off for two weeks from Monday"
    weeks = NUMBERS[count] if count in NUMBERS else int(count)
    if weeks > _FEW_WEEKS and " on " in found[0].casefold():
        raise ValueError("how long it will have been")  # "12 weeks on Thursday"
    if "fortnight" in found[0].casefold():
        weeks *= 2
    ahead = 0
    if name := parts.get("weekday"):
        wanted = next(i for i, full in enumerate(WEEKDAYS) if full.startswith(name.casefold()[:3]))
        ahead = (wanted - day.weekday()) % 7 or 7
    elif "tomorrow" in found[0].casefold():
        ahead = 1
    target = day + timedelta(days=7 * weeks + ahead)
    return "on", format_date(target), target


def _before_last(found: re.Match[str], day: date) -> tuple[str, str, date]:
    """ "Sunday before last", "the week after next"."""
    sign = -1 if "last" in found[0].casefold() else 1
    if name := found["weekday"]:
        wanted = next(i for i, full in enumerate(WEEKDAYS) if full.startswith(name.casefold()[:3]))
        away = (sign * (wanted - day.weekday())) % 7 or 7
        target = day + timedelta(days=sign * (away + 7))
        return "on", f"{WEEKDAYS[wanted].capitalize()} {format_date(target)}", target
    unit = found["unit"].casefold()
    if unit == "year":
        target = date(day.year + 2 * sign, 1, 1)
        return "in", str(target.year), target
    if unit == "month":
        target = shift_month(day, 2 * sign)
        return "in", f"{MONTHS[target.month - 1]} {target.year}", target
    if unit == "weekend":
        target = day + timedelta(days=5 - day.weekday() + 14 * sign)
        return "on", f"the weekend of {format_date(target)}", target
    target = day + timedelta(days=14 * sign - day.weekday())
    return "in", f"the week of {format_date(target)}", target


def _part_of_month(found: re.Match[str], day: date) -> tuple[str, str, date]:
    step = {"next": 1, "last": -1}.get((found["which"] or "this").casefold(), 0)
    target = shift_month(day, step)
    part = found["part"].casefold()
    named = f"{MONTHS[target.month - 1]} {target.year}"
    if part == "first":
        return "on", format_date(target), target
    return "at", f"the {part} of {named}", target


def _a_few_ago(found: re.Match[str], day: date) -> tuple[str, str, date]:
    unit = found["unit"].casefold()
    about_three = {"day": 3, "week": 21, "month": 91, "year": 1096}[unit]
    return "", f"a few {unit}s before {format_date(day)}", day - timedelta(days=about_three)


def _span(found: re.Match[str], day: date) -> tuple[str, str, date]:
    step = {"last": -1, "past": -1, "this past": -1, "this": 0, "next": 1}[
        found["which"].casefold()
    ]
    unit = found["unit"].casefold()
    if unit == "week":
        target = day + timedelta(weeks=step)
        words = {-1: "before", 0: "of", 1: "after"}[step]
        return "in", f"the week {words} {format_date(day)}", target
    if unit == "weekend":
        saturday = day + timedelta(days=5 - day.weekday())
        if step == -1:
            saturday -= timedelta(weeks=1)
        elif step == 1:
            saturday += timedelta(weeks=1)
        return "on", f"the weekend of {format_date(saturday)}", saturday
    if unit == "month":
        target = shift_month(day, step)
        return "in", f"{MONTHS[target.month - 1]} {target.year}", target
    year = day.year + step
    if unit in ("spring", "summer", "fall", "autumn", "winter"):
        return "in", f"{unit} {year}", date(year, 1, 1)
    dated = _DATED.search(found.string[: found.start()])  # "12 June next year"
    return "" if dated else "in", str(year), date(year, 1, 1)


_DATED: Final = re.compile(
    rf"\b(?:{'|'.join(MONTHS)})(?: \d{{1,2}}(?:st|nd|rd|th)?)?,? (?:of )?$", re.IGNORECASE
)


def _month(found: re.Match[str], day: date) -> tuple[str, str, date]:
    wanted = [month.casefold() for month in MONTHS].index(found["month"].casefold()) + 1
    if found["which"].casefold() == "last":
        year = day.year if wanted < day.month else day.year - 1
    else:
        year = day.year if wanted > day.month else day.year + 1
    if found["nth"]:
        target = date(year, wanted, int(found["nth"]))
        return "on", format_date(target), target
    return "in", f"{MONTHS[wanted - 1]} {year}", date(year, wanted, 1)


def _day_of_month(found: re.Match[str], day: date) -> tuple[str, str, date]:
    """ "next month on the 22nd", "the 22nd of next month"."""
    step = {"last": -1, "next": 1}.get(found["which"].casefold(), 0)
    target = shift_month(day, step).replace(day=int(found["nth"]))
    return "on", format_date(target), target


def _fixed(days: int, suffix: str = "") -> Callable[[re.Match[str], date], tuple[str, str, date]]:
    def resolve(found: re.Match[str], day: date) -> tuple[str, str, date]:
        target = day + timedelta(days=days)
        if suffix:
            return "", f"{suffix.format(format_date(target))}", target
        return "on", format_date(target), target

    return resolve


_Resolve = Callable[[re.Match[str], date], tuple[str, str, date]]
_Rule = tuple[tuple[str, ...], re.Pattern[str], _Resolve]


def _rule(needed: str, words: str, resolve: _Resolve) -> _Rule:
    """needed: one of these stands in all that the pattern fits; to look for it costs nothing."""
    pattern = re.compile(rf"{_PREPOSITION}\b{words}\b(?!['’]s|-)", re.IGNORECASE)
    return tuple(needed.split("|")), pattern, resolve


_NTH_DAY: Final = r"(?:the )?(?P<nth>[12]?\d|3[01])(?:st|nd|rd|th)"
_RULES: Final[tuple[_Rule, ...]] = (
    _rule("yesterday", r"(?:the )?day before yesterday", _fixed(-2)),
    _rule("tomorrow", r"(?:the )?day after tomorrow", _fixed(2)),
    _rule("yesterday", r"yesterday (?P<part>morning|afternoon|evening)",
          lambda m, d: ("", f"on the {m['part'].casefold()} of {format_date(d - timedelta(1))}",
                        d - timedelta(1))),
    _rule("tomorrow", r"tomorrow (?P<part>morning|afternoon|evening|night)",
          lambda m, d: ("", f"on the {m['part'].casefold()} of {format_date(d + timedelta(1))}",
                        d + timedelta(1))),
    _rule("yesterday", r"(?:just )?yesterday", _fixed(-1)),
    _rule("night", r"last night", _fixed(-1, "on the night of {}")),
    _rule("tonight", r"tonight", _fixed(0, "on the night of {}")),
    _rule("this ", r"this (?P<part>morning|afternoon|evening)",
          lambda m, d: ("", f"on the {m['part'].casefold()} of {format_date(d)}", d)),
    _rule("week|fortnight",
          rf"(?:a fortnight|{_COUNT} weeks?) (?:from )?(?:today|tomorrow|(?:on )?{_DAY_NAMES})",
          _weeks_from),
    _rule("week", rf"{_DAY_NAMES} week(?! \w+ing)", _weeks_from),
    _rule("last|next", rf"(?:the )?(?:{_DAY_NAMES}|(?P<unit>week|weekend|month|year))"
          r" (?:before last|after next)", _before_last),
    _rule("month",
          r"(?:the )?(?P<part>end|beginning|middle|first) of (?P<which>the|this|next|last) month",
          _part_of_month),
    _rule("fortnight", r"a fortnight ago", _fixed(-14)),
    _rule("fortnight", r"in a fortnight", _fixed(14)),
    _rule("ago", rf"exactly {_COUNT} (?P<unit>week|month|year)s? ago(?: today)?", _to_the_day),
    _rule("ago", rf"{_COUNT} (?P<unit>week|month|year)s? ago (?:exactly|today|to the day)",
          _to_the_day),
    _rule("today", r"(?:earlier )?today", _fixed(0)),
    _rule("tomorrow", r"tomorrow", _fixed(1)),
    _rule("ago",
          rf"{_COUNT} (?P<unit>day|week|weekend|month|year)s? ago", lambda m, d: _ago(m, d, -1)),
    _rule("since",
          rf"{_COUNT} (?P<unit>day|week|month|year)s?(?: to the day| now)?(?= since )", _since),
    _rule("ago", r"(?:a few|several) (?P<unit>day|week|month|year)s ago", _a_few_ago),
    _rule("in ", rf"in {_COUNT} (?P<unit>day|week|month|year)s?(?! of\b)", _ahead),
    _rule("from ", rf"{_COUNT} (?P<unit>day|week|month|year)s? from (?:now|today)",
          lambda m, d: _ago(m, d, 1)),
    _rule("last|past|next|this|coming",
          rf"(?P<which>last|this past|past|next|this coming|this|coming) {_DAY_NAMES}",
          _near_weekday),
    _rule("month", rf"(?P<which>last|this|next) month,? on {_NTH_DAY}", _day_of_month),
    _rule("month", rf"{_NTH_DAY} (?:of )?(?P<which>last|this|next) month", _day_of_month),
    _rule("last|past|this|next",
          r"(?:the )?(?P<which>last|this past|this|next) (?P<unit>weekend|week|month|year|spring"
          rf"|summer|fall|autumn|winter)(?! of\b| in (?:{'|'.join(MONTHS)})\b)", _span),
    _rule("last|next",
          rf"(?P<which>last|next) {_MONTH_NAMES}(?: (?:the )?(?P<nth>\d{{1,2}})(?:st|nd|rd|th))?",
          _month),
)  # fmt: skip
_ABSOLUTE: Final = (
    re.compile(
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH_NAMES},? (?P<y>\d{{4}})", re.I
    ),
    re.compile(rf"\b{_MONTH_NAMES} (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y>\d{{4}})", re.I),
    re.compile(rf"\b{_MONTH_NAMES} (?P<y>\d{{4}})", re.I),
    re.compile(r"\b(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})\b"),
    re.compile(r"\b(?:in|since) (?P<y>(?:19|20)\d{2})\b", re.I),
)


def resolve_english(text: str, day: date | None) -> Resolved:
    """The text with absolute dates, and the day of the first of them.

    "since last year" becomes "since 2022", "yesterday" becomes "on 7 May 2023". Without `day`
    nothing is replaced.
    """
    first: date | None = None if _in_reason(text) else absolute_day(text)
    if day is None:
        return Resolved(text, first)
    earliest = len(text)
    pieces: list[tuple[int, int, str]] = []
    folded = text.casefold()
    for needed, pattern, resolve in _RULES:
        if not any(word in folded for word in needed):
            continue
        for found in pattern.finditer(text):
            if any(found.start() < end and start < found.end() for start, end, _ in pieces):
                continue
            try:
                preposition, words, target = resolve(found, day)
            except (OverflowError, ValueError):
                continue  # a number of years that no calendar has
            before = found["before"]
            if before and before.casefold() in ("on", "in", "at"):
                before = None
            if before and before.casefold() in ("about", "almost", "nearly"):
                before = "around"
            if before and words.startswith("on the "):
                words = words.removeprefix("on ")
            replaced = " ".join(part for part in (before or preposition, words) if part)
            if found.start() == 0:
                replaced = replaced[0].upper() + replaced[1:]
                rest = text[found.end() :]
                if re.match(r"\s+[A-Za-z]", rest):
                    replaced += ","
            pieces.append((found.start(), found.end(), replaced))
            if found.start() < earliest:
                earliest, first = found.start(), target
    for start, end, replaced, target in bare_days(text, day):
        if any(start < other and begin < end for begin, other, _ in pieces):
            continue
        pieces.append((start, end, replaced))
        if start < earliest:
            earliest, first = start, target
    for start, end, replaced in sorted(pieces, reverse=True):
        text = text[:start] + replaced + text[end:]
    return Resolved(text, first)


def _in_reason(text: str) -> bool:
    """Whether it only tells why something is so now: "I send money home, dad died in 2019"."""
    place = min((one.start() for one in (p.search(text) for p in _ABSOLUTE) if one), default=0)
    clauses = [one for one in re.split(r"[,;]|\b(?:because|cos)\b", text[:place]) if one.strip()]
    if len(clauses) < 2:
        return False
    past = [any(is_past(word) for word in re.findall(r"[\w']+", one)) for one in clauses]
    return past[-1] and not past[0] and not re.match(r"since\b", text[place:], re.IGNORECASE)


def absolute_day(text: str) -> date | None:
    """The first day of an absolute date in an English text, None where there is none."""
    for pattern in _ABSOLUTE:
        if found := pattern.search(text):
            parts = found.groupdict()
            month = parts.get("m")
            if name := parts.get("month"):
                month = str([m.casefold() for m in MONTHS].index(name.casefold()) + 1)
            try:
                return date(int(parts["y"]), int(month or 1), int(parts.get("d") or 1))
            except ValueError:
                return None
    return None
