"""The stretches of time that a question names: "last Friday", 三天前, "on 8 May", 去年夏天.

A span is [from, to) by the clock of who asks. What is remembered roughly ("two weeks ago") has some
room on either side. Invariants: a function of the text, the moment it is asked, and the years that
the memory knows; a date that does not exist names nothing, and raises nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

Span = tuple[datetime, datetime]

MONTHS: Final = {
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
_MONTH: Final = "|".join(sorted(MONTHS, key=len, reverse=True))
_ALSO_WORDS: Final = frozenset({"may", "mar", "march"})
_WEEKDAYS: Final = (
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
)  # fmt: skip
_CHINESE_WEEKDAYS: Final = "一二三四五六日"
_SEASONS: Final = {
    "spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12,
    "春": 3, "夏": 6, "秋": 9, "冬": 12,
}  # fmt: skip
"""The first of the three months of each."""

_SMALL: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen", "twenty",
)  # fmt: skip
_COUNTS: Final = {word: number for number, word in enumerate(_SMALL)} | {
    "a": 1, "an": 1, "couple": 2, "couple of": 2, "few": 3, "several": 3, "thirty": 30,
}  # fmt: skip
_VAGUE: Final = frozenset({"couple", "couple of", "few", "several", "几"})
_COUNT: Final = rf"\d{{1,3}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))}"
_ORDINALS: Final = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth",
    "eighteenth", "nineteenth", "twentieth", "twenty-first", "twenty-second", "twenty-third",
    "twenty-fourth", "twenty-fifth", "twenty-sixth", "twenty-seventh", "twenty-eighth",
    "twenty-ninth", "thirtieth", "thirty-first",
)  # fmt: skip
_DAY: Final = rf"\d{{1,2}}|{'|'.join(sorted(_ORDINALS, key=len, reverse=True))}"
_CHINESE_NUMBER: Final = r"\d{1,3}|[一二两三四五六七八九十]{1,3}"
_CHINESE_DIGITS: Final = {"〇": 0, "零": 0, "两": 2, "几": 3} | {
    digit: number for number, digit in enumerate("一二三四五六七八九", start=1)
}

_YEAR: Final = re.compile(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
_CHINESE_YEAR: Final = re.compile(r"([一二][九〇零][〇零一二三四五六七八九]{2})年")
_WRITTEN: Final = re.compile(
    r"(?<!\d)((?:19|20)\d\d)([-/.])(\d{1,2})(?:\2(\d{1,2}))?(?!\d)"
    r"|(?<![\d/])(\d{1,2})/(\d{1,2})/((?:19|20)\d\d)(?!\d)"
)
_DAY_OF_MONTH: Final = re.compile(
    rf"\b({_DAY})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b"
    rf"|\b({_MONTH})\.? (?:the )?({_DAY})(?:st|nd|rd|th)?\b(?!\d)"
)
_CHINESE_MONTH: Final = re.compile(
    rf"(?<!\d)({_CHINESE_NUMBER})月(?:份|({_CHINESE_NUMBER})[日号])?"
)
_MONTH_ALONE: Final = re.compile(rf"\b({_MONTH})\b")
_SEASON: Final = re.compile(
    r"\b(last|this|past|previous) (spring|summer|autumn|fall|winter)\b"
    r"|\b(spring|summer|autumn|fall|winter)(?: of|,)? ((?:19|20)\d\d)\b"
    r"|(去年|今年|前年|(?:19|20)\d\d年)的?([春夏秋冬])"
)
_AGO: Final = re.compile(
    rf"(?<!half )\b({_COUNT}) (day|week|fortnight|month|year)s? (?:ago|back)\b"
)
_HALF_A_YEAR: Final = re.compile(r"\bhalf a year ago\b|半年(?:之|以)?前")
_CHINESE_AGO: Final = re.compile(
    rf"(?<![月年\d])({_CHINESE_NUMBER}|几)(天|日|周|年|个?星期|个?礼拜|个月)(?:之|以)?前"
)
_LAST: Final = re.compile(
    rf"\b(?:last|past|previous) (?:({_COUNT}) )?(week|weekend|month|year)s?\b"
)
_LAST_DAYS: Final = re.compile(
    rf"\b(?:last|past|previous) ({_COUNT}) days\b|(?:最近|过去|近)({_CHINESE_NUMBER}|几)天"
)
_WEEKDAY: Final = re.compile(rf"\b(last|on|this past) ({'|'.join(_WEEKDAYS)})\b")
_CHINESE_WEEKDAY: Final = re.compile(r"(上个?|这个?|本)(?:周|星期|礼拜)([一二三四五六日天末])")
_LENGTHS: Final = {
    "day": (1, 0.5), "week": (7, 2), "fortnight": (14, 3), "month": (30, 8), "year": (365, 60),
    "天": (1, 0.5), "日": (1, 0.5), "周": (7, 2), "星期": (7, 2), "礼拜": (7, 2),
    "个星期": (7, 2), "个礼拜": (7, 2), "个月": (30, 8), "年": (365, 60),
}  # fmt: skip
"""Days, and how many on either side are meant as well."""
_NAMED_YEARS: Final = {"前年": -2, "去年": -1, "今年": 0}
_HAPPENED: Final = re.compile(r"\b(?:did|was|were|had|happened|told|said|talked)\b")

# Without one of these nothing below finds a date, and most questions have none.
_MAY_DATE: Final = re.compile(
    r"\d|ago|back|last|past|previous|yesterday|today|tonight|this|on |[昨今上前去年月周天这本]"
    rf"|summer|winter|autumn|spring|fall|other|recent|{_MONTH}"
)


def spans_of(text: str, asked: datetime | None, years: Sequence[int]) -> Iterator[Span]:
    """The spans that a question names. text: in small letters and simplified characters. asked:
    when, by the clock there. years: those of the turns, which a month without one may be of."""
    if _MAY_DATE.search(text) is None:
        return
    try:
        yield from _calendar(text, asked, years)
        if asked is not None:
            yield from _relative(text, datetime(asked.year, asked.month, asked.day))
    except (OverflowError, ValueError):  # before the first year, or behind the last
        return


def _calendar(text: str, asked: datetime | None, years: Sequence[int]) -> Iterator[Span]:
    """Days, months, seasons and years by their names."""
    written = list(_days_written(text))
    yield from written
    said = [int(year) for year in _YEAR.findall(text)]
    said += [_chinese_number(year) for year in _CHINESE_YEAR.findall(text)]
    if asked is not None:
        said += [asked.year + by for word, by in _NAMED_YEARS.items() if word in text]
    of = (said or list(years))[:4]
    days = [
        (MONTHS[match[2] or match[3]], _day_number(match[1] or match[4]))
        for match in _DAY_OF_MONTH.finditer(text)
    ]
    days += [
        (_chinese_number(match[1]), _chinese_number(match[2] or "0"))
        for match in _CHINESE_MONTH.finditer(text)
    ]
    if not days:
        days = [(MONTHS[month], 0) for month in _months_alone(text)]
    for month, day in days:
        for year in of:
            yield from _span(year, month, day)
    seasons = list(_seasons(text, asked))
    yield from seasons
    if not (written or days or seasons):
        for year in said:
            yield from _span(year, 0, 0)


def _span(year: int, month: int, day: int) -> Iterator[Span]:
    """A day; the month where `day` is 0, the year where `month` is; nothing where there is none."""
    try:
        begin = datetime(year, month or 1, day or 1)
        if day:
            yield begin, begin + timedelta(days=1)
        elif month:
            yield begin, datetime(year + month // 12, month % 12 + 1, 1)
        else:
            yield begin, datetime(year + 1, 1, 1)
    except (ValueError, OverflowError):
        return


def _days_written(text: str) -> Iterator[Span]:
    """2023-05-08, 2023/5 and 5/8/2023, which is a day of May or of August."""
    for match in _WRITTEN.finditer(text):
        if match[1]:
            yield from _span(int(match[1]), int(match[3]), int(match[4] or 0))
        else:
            one, other, year = int(match[5]), int(match[6]), int(match[7])
            yield from _span(year, one, other)
            if one != other:
                yield from _span(year, other, one)


def _months_alone(text: str) -> Iterator[str]:
    for match in _MONTH_ALONE.finditer(text):
        name = match[1]
        if name not in _ALSO_WORDS or re.search(
            rf"\b(?:in|of|since|last|this|during|by|until) {name}\b|{name},? (?:19|20)\d\d", text
        ):
            yield name


def _seasons(text: str, asked: datetime | None) -> Iterator[Span]:
    for match in _SEASON.finditer(text):
        if match[3]:
            name, year = match[3], int(match[4])
        elif match[5] and match[5][:4].isdigit():
            name, year = match[6], int(match[5][:4])
        elif asked is None:
            continue
        elif match[5]:
            name, year = match[6], asked.year + _NAMED_YEARS[match[5]]
        else:  # the latest that has begun, or the one before it where that is not over yet
            name = match[2]
            year = asked.year - (asked.month < _SEASONS[name])
            if match[1] != "this" and asked < _season(name, year)[1]:
                year -= 1
        yield _season(name, year)


def _season(name: str, year: int) -> Span:
    """The one that begins in that year."""
    first = _SEASONS[name]
    return datetime(year, first, 1), datetime(year + first // 12, (first + 2) % 12 + 1, 1)


def _relative(text: str, day: datetime) -> Iterator[Span]:
    """Counted from the day it is asked."""

    def days(first: float, behind: float) -> Span:
        return day + timedelta(days=first), day + timedelta(days=behind)

    for match in [*_AGO.finditer(text), *_CHINESE_AGO.finditer(text)]:
        length, wide = _LENGTHS[match[2]]
        back = _count(match[1]) * length
        wide += length * (match[1] in _VAGUE)
        yield days(-back - wide, -back + wide + 1)
    if _HALF_A_YEAR.search(text):
        yield days(-212, -152)
    for match in _WEEKDAY.finditer(text):
        if match[1] != "on" or _HAPPENED.search(text):
            back = (day.weekday() - _WEEKDAYS.index(match[2])) % 7 or 7
            yield days(-back, -back + 1)
    for match in _CHINESE_WEEKDAY.finditer(text):
        monday = -day.weekday() - (7 if match[1].startswith("上") else 0)
        if match[2] == "末":
            yield days(monday + 5, monday + 7)
        else:
            at = monday + _CHINESE_WEEKDAYS.index("日" if match[2] == "天" else match[2])
            yield days(at, at + 1)
    for match in _LAST.finditer(text):
        length = {"week": 9, "weekend": 8, "month": 45, "year": 400}[match[2]]
        yield days(-length * (_count(match[1]) if match[1] else 1), 0)
    for match in _LAST_DAYS.finditer(text):
        yield days(-_count(match[1] or match[2]) - 1, 1)
    for pattern, first, behind in _PHRASES:
        if pattern.search(text):
            yield days(first, behind)
    if re.search(r"\bthis week\b|(?:这个?|本)(?:周|星期|礼拜)(?![一二三四五六日天末])", text):
        yield days(-day.weekday(), 1)
    if re.search(r"\bthis month\b|(?:这个|本)月", text):
        yield days(1 - day.day, 1)
    if re.search(r"\bthis year\b", text):
        yield datetime(day.year, 1, 1), day + timedelta(days=1)


_PHRASES: Final = tuple(
    (re.compile(pattern), first, behind)
    for pattern, first, behind in (
        (r"(?<!before )\byesterday\b|\blast night\b|昨[天晚日夜]", -1, 0),
        (r"\bday before yesterday\b|(?<!大)前[天晚]", -2, -1),
        (r"大前天", -3, -2),
        (r"\btoday\b|\btonight\b|\bthis (?:morning|afternoon|evening)\b|今[天早晚日]", 0, 1),
        (r"\b(?:the other|recent) days?\b|前几天|前两天|前些天|这几天|这两天", -7, 1),
        (r"上(?:周|个?星期|个?礼拜)(?![一二三四五六日天末])", -14, -1),
        (r"上个?月", -62, -5),
    )
)


def _count(word: str) -> int:
    if word.isdigit():
        return int(word)
    return _COUNTS[word] if word in _COUNTS else _chinese_number(word)


def days_since_1970(moment: datetime) -> float:
    """As `Columns.day` counts them."""
    return moment.replace(tzinfo=UTC).timestamp() / 86400


def _day_number(word: str) -> int:
    return int(word) if word.isdigit() else 1 + _ORDINALS.index(word)


def _chinese_number(word: str) -> int:
    """`十二`, `二十五`, `二〇二三`, or digits; 0 for what is no number."""
    if word.isdigit() and word.isascii():
        return int(word)
    if "十" in word:
        tens, _, ones = word.partition("十")
        if len(tens) > 1 or len(ones) > 1:
            return 0
        return 10 * _CHINESE_DIGITS.get(tens, 1) + _CHINESE_DIGITS.get(ones, 0)
    number = 0
    for digit in word:
        number = 10 * number + _CHINESE_DIGITS[digit]
    return number
