"""Days as people point at them: what is said means what is written."""

from __future__ import annotations

import random
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.data.lifelog.world import coming_day, past_day, past_words, write_date

WEDNESDAY = date(2024, 5, 8)


@pytest.mark.parametrize(
    ("back", "by_weekday", "english", "chinese"),
    [
        (1, True, "yesterday", "昨天"),
        (2, False, "two days ago", "前天"),
        (5, True, "last Friday", "上周五"),  # the Friday of the week before in both
        (3, True, "last Sunday", "上周日"),
        (9, True, "on 29 April", "上周一"),
        (7, True, "a week ago", "一周前"),
        (14, False, "two weeks ago", "两周前"),
        (20, True, "on 18 April", "4月18日"),
    ],
)
def test_days_gone_by(back: int, by_weekday: bool, english: str, chinese: str) -> None:
    day = WEDNESDAY - timedelta(days=back)
    assert past_words(day, WEDNESDAY, "en", by_weekday) == english
    assert past_words(day, WEDNESDAY, "zh", by_weekday) == chinese


days = st.dates(date(2020, 1, 1), date(2030, 1, 1))


@given(days, st.integers(0, 2**32), st.sampled_from(["en", "zh"]))
def test_the_written_date_is_the_day(today: date, seed: int, language: str) -> None:
    gone = past_day(random.Random(seed), today, language)
    ahead = coming_day(random.Random(seed), today, language)
    assert gone.day is not None and ahead.day is not None
    assert gone.day < today < ahead.day
    for value in (gone, ahead):
        assert value.day is not None
        assert value.answer == write_date(value.day, language)
        assert value.answer in value.text
        for name, number in zip("一二三四五六日", range(7), strict=True):
            if value.said == f"上周{name}" or value.said == f"下周{name}":
                monday = today - timedelta(days=today.weekday())
                week = timedelta(days=-7 if value.said[0] == "上" else 7)
                assert value.day == monday + week + timedelta(days=number)


def test_dates_are_written_without_the_machine_s_language() -> None:
    assert write_date(WEDNESDAY, "en") == "8 May 2024"
    assert write_date(WEDNESDAY, "zh") == "2024年5月8日"
