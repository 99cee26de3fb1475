"""English weekdays and days of the month without more ("on Thursday", "the 28th"), resolved.

    I told Bev on Friday          on Friday 30 January 2026
    the scan is on the 20th       on 20 May 2025
    I swim on Fridays             as it is: a habit has no day

Which side of the day of telling is meant, the verb says: what happened lies behind it, what is
planned before it.

Invariant: where no verb says which side, or several days are named, nothing is replaced. Pure
functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from memograd.memory.reader.person_english import is_past
from memograd.memory.records.turns import MONTHS, format_date

_NAMES: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LONG: Final = "|".join(_NAMES)
_SHORT: Final = "mon|tues?|weds?|thu(?:rs?)?|fri|sat|sun"
_MONTH: Final = "|".join(MONTHS)
_ANY_DAY: Final = re.compile(
    rf"\b(?:{_LONG})s?\b|\b(?:on|and|or|to|,) (?:{_SHORT})\b", re.IGNORECASE
)
_HABIT: Final = re.compile(
    rf"\b(?:every|each|always|usually|weekly|most(?! likely)|alternate|normally|whenever)\b"
    rf"|\b(?:{_LONG})s\b",
    re.IGNORECASE,
)
_WEEKDAY: Final = re.compile(
    r"(?<!\bthe )(?<!\ba )(?<!\blast )(?<!\bnext )(?<!\bthis )(?<!\bany )(?<!\bgood )"
    r"(?<!\bblack )(?<!\bpast )"
    r"(?<!\bcoming )(?<!\beaster )(?<!\bone )(?<!-)"
    r"\b(?:(?P<prep>on|for|by|from|to|until|till|before|since|after) )?"
    rf"(?:(?P<long>{_LONG})|(?<=\bon )(?P<short>{_SHORT}))\b"
    rf"(?!['’-]| (?:the |,)?\d| ?[/&]| (?:week|before|after|morning|afternoon|evening|night"
    rf"|lunch\w*|{_MONTH})\b"
    rf"|,? (?:the )?\d{{1,2}}(?:st|nd|rd|th))",
    re.IGNORECASE,
)
_NTH: Final = re.compile(
    rf"\b(?:(?P<weekday>{_LONG}),? (?:the )?|(?P<prep>on|by|until|till|from|for|since|before|after"
    rf"|is|was|['’]s|to"
    r"|due) the )(?P<n>\d{1,2})(?:st|nd|rd|th)\b"
    rf"(?=\s*(?:$|[,.;!?)])|\s+(?:in|at|for|and|or|so|to|with|because|cos|then|but|from|by|if|when"
    rf"|as)\b)"
    rf"(?! (?:of )?(?:{_MONTH}))",
    re.IGNORECASE,
)
_ONE_TIME: Final = (
    "appointment|interview|exam|flight|surgery|deadline|last day|last shift|wedding|funeral|scan"
    "|operation|viewing|driving test|party|birthday|due"
)
_AHEAD: Final = re.compile(
    r"\b(?:will|shall|won't|going to|gonna|must|should|(?:needs?|wants?|ought|ha(?:s|ve)) to|due"
    r"|booked|scheduled"
    r"|starts?|begins?|leaves?|arrives?|flies|finish(?:es)?|ends|opens|closes|returns|is to|are to"
    r"|hoping|can(?! only)"
    r"|(?:ha(?:s|ve)|['’](?:ve|s)) (?:got )?(?:an?|the|my|his|her|our|their)"
    r"|(?:am|is|are) (?:\w+ly )?\w+ing)\b"
    rf"|\b(?:{_ONE_TIME})\b"
    r"|['’](?:m|s|re) (?:\w+ly |not )?\w+ing\b|['’]ll\b|\bwhen (?:I|we|he|she|they) \w+\b|(?:^"
    r"|[,.] )\w{2,}ing\b"
    r"|(?<!\bhad )(?<!\bused )(?<!\bgot )"
    r"(?<!\bwent )\bto (?!the\b|my\b|a\b|an\b|him\b|her\b|me\b|us\b|them\b|[A-Z])[a-z]{2,}\b",
)
_ONCE: Final = re.compile(rf"\b(?:{_ONE_TIME})\b", re.IGNORECASE)
_IS_ON: Final = re.compile(r"(?:\b(?:is|are)|['’]s) $", re.IGNORECASE)
_LIKES: Final = re.compile(r"\b(?:likes?|loves?|tends?|prefers?|enjoys?|hates?|used)\b")
_MOVED: Final = re.compile(
    r"\b(?:moved|changed|pushed|switched|shifted|postponed|rescheduled|brought forward|put back"
    r"|booked)\b",
    re.IGNORECASE,
)
# "Is booked", "is having his knee replaced": what is to be done.
_NOT_OVER: Final = re.compile(
    r"(?:\b(?:is|are|be|been|being|get|gets|getting)|['’](?:s|re|m)) (?:\w+ly )?$"
    r"|\b(?:have|has|having|get|gets|getting|wants?) (?:my|his|her|their|our|the|it"
    r"|an?)\b(?: \w+){0,2} $",
    re.IGNORECASE,
)


_LASTS: Final = re.compile(r"\b(?:days?|weeks?|months?|fortnight)$", re.IGNORECASE)
_IS: Final = frozenset(("is", "'s", "’s"))


def bare_days(text: str, day: date) -> Iterator[tuple[int, int, str, date]]:
    """Beginning and end of each such day, what it is to be written as, and the day itself."""
    for sentence in re.finditer(r"[^.!?;\n]+", text):
        said = sentence[0]
        if _HABIT.search(said):
            continue
        for one in _NTH.finditer(said):
            around = said[: one.end()] + said[one.end() :].split(",")[0]
            if re.search(rf"\b(?:{_MONTH})\b", around, re.IGNORECASE):
                continue
            if (found := _nth(one, said, day)) is not None:
                yield _put(sentence.start(), one, found)
        single = _WEEKDAY.search(said) if len(_ANY_DAY.findall(said)) == 1 else None
        if single and (found := _weekday(single, said, day)) is not None:
            yield _put(sentence.start(), single, found)


def _put(at: int, one: re.Match[str], day: date) -> tuple[int, int, str, date]:
    prep = one["prep"] or ""
    parts = one.groupdict()
    name = parts.get("weekday") or parts.get("long") or parts.get("short") or ""
    named = f"{_NAMES[day.weekday()].capitalize()} " if name else ""
    gap = "" if not prep else " "
    return at + one.start(), at + one.end(), f"{prep}{gap}{named}{format_date(day)}", day


def _weekday(one: re.Match[str], said: str, day: date) -> date | None:
    label = said[one.end() :].startswith(":") and not said[: one.start()].strip()
    if label or (_IS_ON.search(said[: one.start()]) and not _ONCE.search(said[: one.start()])):
        return None  # "Tuesday: cod", "raid night is Sunday now"
    name = (one["long"] or one["short"]).casefold()[:3]
    wanted = next(n for n, full in enumerate(_NAMES) if full.startswith(name))
    side = _side(said, one.start(), one.end(), (one["prep"] or "").casefold())
    if side is None:
        return None
    return day + timedelta(days=side * ((side * (wanted - day.weekday())) % 7 or 7))


def _nth(one: re.Match[str], said: str, day: date) -> date | None:
    number = int(one["n"])
    prep = (one["prep"] or "").casefold()
    side = _side(said, one.start(), one.end(), prep)
    is_then = prep in _IS or _IS_ON.search(said[: one.start()])
    if is_then or (side is None and (one["weekday"] or prep == "due")):
        side = 1  # "it's the 2nd and I haven't paid"
    if side is None:
        return None
    for away in range(side < 0, 366 if one["weekday"] else 63):
        found = day + timedelta(days=side * away)
        if found.day == number and (
            not one["weekday"] or _NAMES[found.weekday()] == one["weekday"].casefold()
        ):
            return found
    return None


def _side(said: str, start: int, end: int, prep: str) -> int | None:
    """1 for what is ahead, -1 for what is over, None where no verb says."""
    before = said[:start].rstrip()
    if prep == "for" or (prep == "to" and _MOVED.search(before)):
        return 1
    if prep == "from" and _LASTS.search(before):
        return 1  # "signed me off for two weeks from Monday"
    if prep == "to":
        return None
    if prep == "since":
        return -1
    for stretch in (before, said[end:].split(",")[0].lstrip()):
        ahead = max((one.end() for one in _AHEAD.finditer(stretch)), default=-1)
        over = max(
            (
                one.end()
                for one in re.finditer(r"[A-Za-z']+", stretch)
                if is_past(one[0]) and not _NOT_OVER.search(stretch[: one.start()])
            ),
            default=-1,
        )
        if _LIKES.search(stretch):
            return None
        once = [one.end() for one in _ONCE.finditer(stretch)]
        ahead = max([ahead, *once]) if _IS_ON.search(said[:start]) else ahead
        if max(ahead, over) >= 0:
            return 1 if ahead > over or (ahead == over and _MOVED.search(stretch)) else -1
    return 1 if prep in ("by", "from") else None
