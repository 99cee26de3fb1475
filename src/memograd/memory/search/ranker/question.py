"""What a question asks for, as far as its wording tells: whom, when, how many, the latest or first.

English and Chinese, by patterns over the first 2,000 characters. Invariant: a function of the text,
the moment it is asked, and the names and years that the memory knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from memograd.memory.state.columns import ASSISTANTS, MACHINES, USERS

READ: Final = 2000

_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "jan january", "feb february", "mar march", "apr april", "may", "jun june",
            "jul july", "aug august", "sep sept september", "oct october", "nov november",
            "dec december",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))

KINDS: Final = {
    "when": r"\bwhen\b|\b(?:what|which) (?:date|day|month|year|time|season)\b|how long ago"
    r"|什么时候|几点|几号|哪[天年月]|何时|时间|日期|多久|周几|星期几",
    "count": r"\bhow (?:many|much|often|old|long|far|big)\b|\btotal\b"
    r"|多少|几[个次岁位]|总共|一共|数量",
    "who": r"\bwho(?:m|se)?\b|\bname of\b|谁|哪位|叫什么|名字",
    "where": r"\bwhere\b|\b(?:what|which) (?:city|country|place|town|state|restaurant|store)\b"
    r"|哪里|哪儿|在哪|地点|地方|地址|哪个?[省市城]",
    "why": r"\bwhy\b|\breason\b|\bhow come\b|为什么|为何|原因",
    "pref": r"\b(?:recommend|suggest|suggestions|advice|tips|ideas?|should i|any)\b|推荐|建议",
    "you": r"\byou (?:\w+ )?(?:recommend|suggest|mention|t[oe]ll|told|said|say|gave|give|provide"
    r"|list|explain|describ|advis|wrote|write|propos|show|share|point|creat|generat|us(?:ed|e)\b)"
    r"|\b(?:did|have|had|were|would) you\b"
    r"|\byour (?:recommend|suggest|answer|list|advice|response|explan|previous)"
    r"|\bremind me (?:what|of|how|about)?"
    r"|(?:our|previous) (?:previous |last |earlier )?(?:conversation|chat|discussion)"
    r"|the assistant|你(?:\w{0,4})?(?:推荐|建议|说|提到|告诉|给我|介绍|列|写|讲)|助手",
    "me": r"\b(?:i|my|me|i've|i'm|mine|we|our|us|the user|user's|user)\b|我|用户",
    "now": r"\b(?:current|currently|now|latest|most recent|recent|recently|still|these days"
    r"|at the moment|last time|last)\b|现在|目前|最近|最新|如今|还在|当前",
    "first": r"\b(?:first|originally|initially|initial|previous|previously|before|used to|earliest"
    r"|formerly)\b|第一次|最初|原来|以前|之前|最早",
    "did": r"\b(?:did|was|were|had)\b|了|过|当时|那次|那天|曾",
}
_KINDS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in KINDS.items()}

_DAY_OF_MONTH = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b"
    rf"|\b({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d)"
)
_CHINESE_DAY = re.compile(r"(\d{1,2})月(?:(\d{1,2})[日号])?")
_MONTH_ALONE = re.compile(rf"\b({_MONTH})\b")
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b|((?:19|20)\d\d)年")
_AGO = re.compile(
    r"\b(\d{1,3}|zero|one|two|three|four|five|six|seven|eight|nine|ten|an?|couple of|few)"
    r" (day|week|month|year)s? ago"
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LAST_WEEKDAY = re.compile(rf"\blast ({'|'.join(_WEEKDAYS)})")
_LAST = re.compile(
    r"\b(?:last|past|previous) (?:(\d{1,2}|two|three|four|five|six) )?(week|weekend|month|year)s?\b"
)
_COUNTS = {
    word: number
    for number, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    )
} | {"a": 1, "an": 1, "couple of": 2, "few": 3}
_ALSO_WORDS = frozenset({"may", "mar", "march", "sun"})

Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class QuestionCues:
    """asks: the kinds it is of. named: speakers that it names. spans: [from, to) that it names."""

    asks: frozenset[str]
    named: frozenset[str]
    spans: tuple[Span, ...]


_SUBJECT: Final = frozenset({"user", "用户", "用戶"})


def telling(terms: Sequence[str]) -> Sequence[str]:
    """The terms of a question that tell items apart: nearly all of them say "the user".

    None where it has no other one ("What does the user do?"), and then meaning alone tells.
    """
    return [term for term in terms if term not in _SUBJECT]


def read_question(
    text: str, *, asked_at: datetime | None, names: Sequence[str], years: Sequence[int]
) -> QuestionCues:
    """What the question asks for. names: speakers in small letters. years: those of the turns."""
    text = text[:READ]
    low = text.lower()
    unnamed = ASSISTANTS | USERS | MACHINES | {""}
    return QuestionCues(
        frozenset(kind for kind, pattern in _KINDS.items() if pattern.search(text)),
        frozenset(name for name in names if name not in unnamed and _says(low, name)),
        tuple(_spans(low, asked_at.replace(tzinfo=None) if asked_at else None, years)),
    )


def _says(low: str, name: str) -> bool:
    if name not in low:
        return False
    return not name.isascii() or re.search(rf"\b{re.escape(name)}\b", low) is not None


# Without one of these nothing below finds a date, and most questions have none.
_MAY_DATE = re.compile(rf"\d|ago|last|past|previous|yesterday|today|[昨今上]|{_MONTH}")


def _spans(low: str, asked: datetime | None, years: Sequence[int]) -> Iterator[Span]:
    if _MAY_DATE.search(low) is None:
        return
    yield from _calendar(low, years)
    if asked is not None:
        try:
            yield from _relative(low, datetime(asked.year, asked.month, asked.day))
        except OverflowError:  # before the first year
            return


def _calendar(low: str, years: Sequence[int]) -> Iterator[Span]:
    said = [int(one or other) for one, other in _YEAR.findall(low)]
    of = (said or list(years))[:4]
    days = [
        (_MONTHS[match[2] or match[3]], int(match[1] or match[4]))
        for match in _DAY_OF_MONTH.finditer(low)
    ]
    days += [
        (int(match[1]), int(match[2] or 0))
        for match in _CHINESE_DAY.finditer(low)
        if 1 <= int(match[1]) <= 12
    ]
    if not days:
        days = [
            (_MONTHS[match[1]], 0)
            for match in _MONTH_ALONE.finditer(low)
            if match[1] not in _ALSO_WORDS
            or re.search(
                rf"\b(?:in|of|since|last|this|during|by|until) {match[1]}\b"
                rf"|{match[1]},? (?:19|20)\d\d",
                low,
            )
        ]
    for month, day in days:
        for year in of:
            try:
                begin = datetime(year, month, day or 1)
            except ValueError:
                continue
            whole = datetime(year + month // 12, month % 12 + 1, 1)
            yield begin, begin + timedelta(days=1) if day else whole
    if not days:
        for year in said:
            yield datetime(year, 1, 1), datetime(year + 1, 1, 1)


def _relative(low: str, day: datetime) -> Iterator[Span]:
    for match in _AGO.finditer(low):
        count = int(match[1]) if match[1].isdigit() else _COUNTS[match[1]]
        length, wide = {"day": (1, 0.5), "week": (7, 2), "month": (30, 8), "year": (365, 60)}[
            match[2]
        ]
        then = day - timedelta(days=count * length)
        yield then - timedelta(days=wide), then + timedelta(days=wide + 1)
    for match in _LAST_WEEKDAY.finditer(low):
        back = (day.weekday() - _WEEKDAYS.index(match[1])) % 7 or 7
        yield day - timedelta(days=back), day - timedelta(days=back - 1)
    for match in _LAST.finditer(low):
        count = 1 if not match[1] else int(match[1]) if match[1].isdigit() else _COUNTS[match[1]]
        length = {"week": 9, "weekend": 8, "month": 45, "year": 400}[match[2]]
        yield day - timedelta(days=count * length), day
    if re.search(r"\byesterday\b|昨天", low):
        yield day - timedelta(days=1), day
    if re.search(r"\btoday\b|今天", low):
        yield day, day + timedelta(days=1)
    if re.search(r"上周|上个星期", low):
        yield day - timedelta(days=14), day - timedelta(days=1)
    if re.search(r"上个?月", low):
        yield day - timedelta(days=62), day - timedelta(days=5)
