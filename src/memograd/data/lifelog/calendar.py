"""How people point at a day, in both languages, and the date that a reader writes instead.

Invariant: the date follows from the words and the day of speaking alone. Pure functions.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, timedelta

from memograd.memory import format_date

ENGLISH_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CHINESE_DAYS = "一二三四五六日"
CHINESE_AGO = {2: "前天", 3: "三天前", 4: "四天前", 5: "五天前", 6: "六天前"}


@dataclass(frozen=True, slots=True)
class CalendarValue:
    """What fills a slot: as it is said, as a reader writes it, and as the answer to a question.

    day: where it is one.
    """

    said: str
    text: str
    answer: str
    day: date | None = None

    @classmethod
    def plain(cls, text: str) -> CalendarValue:
        """A value that is the same everywhere."""
        return cls(text, text, text)


def write_date(day: date, language: str) -> str:
    """`7 May 2023`, `2023年5月7日`."""
    if language == "zh":
        return f"{day.year}年{day.month}月{day.day}日"
    return format_date(day)


def dated(day: date, said: str, language: str) -> CalendarValue:
    """`said`, written as the absolute date."""
    written = write_date(day, language)
    return CalendarValue(said, written if language == "zh" else f"on {written}", written, day)


def past_day(rng: random.Random, today: date, language: str) -> CalendarValue:
    """A day of the last three weeks, as people point back at it."""
    back = rng.choice((1, 1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 16, 20))
    day = today - timedelta(days=back)
    return dated(day, past_words(day, today, language, rng.random() < 0.5), language)


def past_words(day: date, today: date, language: str, by_weekday: bool) -> str:
    """`yesterday`, `last Friday`, `on 5 May`: the words for a day before today."""
    back = (today - day).days
    if language == "zh":
        if back == 1:
            return "昨天"
        if back in (7, 14):
            return "一周前" if back == 7 else "两周前"
        # 上周五 is the Friday of the calendar week before, whatever today is.
        monday = today - timedelta(days=today.weekday())
        if by_weekday and monday - timedelta(days=7) <= day < monday:
            return f"上周{CHINESE_DAYS[day.weekday()]}"
        return CHINESE_AGO.get(back, f"{day.month}月{day.day}日")
    if back in (1, 7, 14):
        return {1: "yesterday", 7: "a week ago", 14: "two weeks ago"}[back]
    if back < 7:
        # "Last Friday", said on a Saturday, could be two different days.
        if by_weekday and back > 1:
            return f"last {ENGLISH_DAYS[day.weekday()]}"
        return {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}[back] + " days ago"
    return f"on {format_date(day).rpartition(' ')[0]}"


def coming_day(rng: random.Random, today: date, language: str) -> CalendarValue:
    """A day of the next nine weeks, as people point ahead at it."""
    day = today + timedelta(days=rng.randint(2, 60))
    ahead = (day - today).days
    monday = today - timedelta(days=today.weekday())
    by_weekday = rng.random() < 0.6
    if language == "zh":
        if by_weekday and monday + timedelta(days=7) <= day < monday + timedelta(days=14):
            return dated(day, f"下周{CHINESE_DAYS[day.weekday()]}", language)
        said = "后天" if ahead == 2 else "两周后" if ahead == 14 else f"{day.month}月{day.day}日"
        return dated(day, said, language)
    if by_weekday and ahead < 7:
        return dated(day, f"this coming {ENGLISH_DAYS[day.weekday()]}", language)
    if ahead in (2, 14):
        return dated(day, {2: "in two days", 14: "in two weeks"}[ahead], language)
    return dated(day, f"on {format_date(day).rpartition(' ')[0]}", language)
