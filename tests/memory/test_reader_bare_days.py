"""Weekdays and days of the month without more, and on which side of the telling they lie."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.memory.reader.bare_days import bare_days
from memograd.memory.reader.dates import resolve_english
from memograd.memory.reader.dates_chinese import resolve_chinese

DAY = date(2025, 4, 12)  # a Saturday


@pytest.mark.parametrize(
    ("said", "meant", "day"),
    [
        ("they can take it Thursday", "they can take it Thursday 17 April 2025", (4, 17)),
        ("I start on Monday", "I start on Monday 14 April 2025", (4, 14)),
        (
            "seeing the physio on Thursday then",
            "seeing the physio on Thursday 17 April 2025 then",
            (4, 17),
        ),
        ("she's the boss from Monday", "she's the boss from Monday 14 April 2025", (4, 14)),
        (
            "he's having his knee done on friday",
            "he's having his knee done on Friday 18 April 2025",
            (4, 18),
        ),
        ("last shift is Sunday", "last shift is Sunday 13 April 2025", (4, 13)),
        ("I work there since Monday", "I work there since Monday 7 April 2025", (4, 7)),
        ("I told Bev on friday", "I told Bev on Friday 11 April 2025", (4, 11)),
        (
            "They asked me to come on sat",
            "They asked me to come on Saturday 19 April 2025",
            (4, 19),
        ),
        ("We moved out on Saturday", "We moved out on Saturday 5 April 2025", (4, 5)),
        (
            "I have to go on the 20th for a scan",
            "I have to go on 20 April 2025 for a scan",
            (4, 20),
        ),
        ("moves in on the 1st", "moves in on the 1st", None),
        ("she's moving in on the 1st", "she's moving in on 1 May 2025", (5, 1)),
        ("It's the 12th and I haven't paid", "It's 12 April 2025 and I haven't paid", (4, 12)),
        ("rent is due on the 12th", "rent is due on 12 April 2025", (4, 12)),
        ("her 90th is on the 15th", "her 90th is on 15 April 2025", (4, 15)),
        ("we met on the 12th", "we met on 12 March 2025", (3, 12)),
        (
            "she signed me off for two weeks from Monday",
            "she signed me off for two weeks from Monday 14 April 2025",
            (4, 14),
        ),
        ("The wedding is the 28th", "The wedding is 28 April 2025", (4, 28)),
        (
            "I start on Monday 28th in Belfast",
            "I start on Monday 28 April 2025 in Belfast",
            (4, 28),
        ),
        ("sunday going home for pooja", "Sunday 13 April 2025 going home for pooja", (4, 13)),
        ("I left on the 10th", "I left on 10 April 2025", (4, 10)),
        ("most likely I've to go on the 20th", "most likely I've to go on 20 April 2025", (4, 20)),
        (
            "she's moving out on the 31st, half marathon in May",
            "she's moving out on 31 May 2025, half marathon in May",
            (5, 31),
        ),
        (
            "what I want when I go in Tuesday",
            "what I want when I go in Tuesday 15 April 2025",
            (4, 15),
        ),
        ("in May I'm moving on the 31st", "in May I'm moving on the 31st", None),
        # A habit, a list, a label, another date, and where no verb says which side.
        ("I swim on Fridays", "I swim on Fridays", None),
        ("choir is Monday evenings", "choir is Monday evenings", None),
        ("raid night passed, it is Sunday now", "raid night passed, it is Sunday now", None),
        ("I can only run on Tuesday and Sunday", "I can only run on Tuesday and Sunday", None),
        ("I like to swim on Friday", "I like to swim on Friday", None),
        ("Tuesday: cod, we moved it", "Tuesday: cod, we moved it", None),
        ("we sing on Saturday the 9th of August", "we sing on Saturday the 9th of August", None),
        ("he will be in the 4th grade", "he will be in the 4th grade", None),
        ("nobody had told me till the Thursday", "nobody had told me till the Thursday", None),
        ("No cod on Friday", "No cod on Friday", None),
    ],
)
def test_english(said: str, meant: str, day: tuple[int, int] | None) -> None:
    resolved = resolve_english(said, DAY)
    assert resolved.text == meant
    assert resolved.day == (date(2025, *day) if day else None)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("all gone in 2 days", "all gone in 2 days"),
        ("we're 38, which is the most in 20 years", "we're 38, which is the most in 20 years"),
        ("she's been 8 since last march 1st", "she's been 8 since 1 March 2025"),
        ("she leaves at the end of the month", "she leaves at the end of April 2025"),
    ],
)
def test_what_stood_wrong_in_lives(said: str, meant: str) -> None:
    assert resolve_english(said, DAY).text == meant


def test_a_year_in_a_reason_is_not_the_day_of_the_item() -> None:
    assert resolve_english("I send 8k home every month, dad passed in 2019 so", DAY).day is None
    assert resolve_english("I live here, since 2019", DAY).day == date(2019, 1, 1)
    assert resolve_english("I moved here in 2019", DAY).day == date(2019, 1, 1)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("我改到周四了", "我改到2025年4月17日（周四）了"),
        ("说是有雨 挪到三十号了", "说是有雨 挪到2025年4月30日了"),
        ("推到5号", "推到2025年5月5日"),
        ("今儿去医院了", "2025年4月12日去医院了"),
        ("我这月起打太极", "我2025年4月起打太极"),
        ("我们约在周四", "我们约在周四"),
        ("今儿子要来", "今儿子要来"),
    ],
)
def test_chinese(said: str, meant: str) -> None:
    assert resolve_chinese(said, DAY).text == meant


WORDS = "I met will go to on the 3rd 31st Friday sat by from is moved , . you"


@given(
    st.lists(st.sampled_from(WORDS.split()), max_size=14),
    st.dates(date(2000, 1, 1), date(2100, 1, 1)),
)
def test_days_do_not_overlap_and_are_written(words: list[str], day: date) -> None:
    text = " ".join(words)
    found = sorted(bare_days(text, day))
    resolved = resolve_english(text, day).text
    assert all(one[1] <= other[0] for one, other in pairwise(found))
    assert all(said in resolved for _, _, said, _ in found)
