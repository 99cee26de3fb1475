from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memograd.data.generator.plan import (
    WEEKDAYS,
    future_spans,
    past_spans,
    recent_days,
)

FRIDAY = date(2023, 6, 9)


def test_recent_days_of_a_friday() -> None:
    assert {when.phrase: when.answer for when in recent_days(FRIDAY)} == {
        "yesterday": "8 June 2023",
        "two days ago": "7 June 2023",
        "three days ago": "6 June 2023",
        "last Wednesday": "The Wednesday before 9 June 2023",
        "last Tuesday": "The Tuesday before 9 June 2023",
        "last Monday": "The Monday before 9 June 2023",
        "last Sunday": "The Sunday before 9 June 2023",
        "last Saturday": "The Saturday before 9 June 2023",
    }


def test_spans_around_a_day() -> None:
    assert {when.phrase: when.answer for when in past_spans(FRIDAY)} == {
        "last week": "The week before 9 June 2023",
        "two weeks ago": "Two weeks before 9 June 2023",
        "last month": "May 2023",
        "last weekend": "The weekend before 9 June 2023",
    }
    assert {when.phrase: when.answer for when in future_spans(FRIDAY)} == {
        "tomorrow": "10 June 2023",
        "next week": "The week after 9 June 2023",
        "next month": "July 2023",
        "in two weeks": "Two weeks after 9 June 2023",
    }


def test_months_at_the_turn_of_a_year() -> None:
    past = {when.phrase: when.answer for when in past_spans(date(2024, 1, 31))}
    future = {when.phrase: when.answer for when in future_spans(date(2023, 12, 31))}
    assert past["last month"] == "December 2023"
    assert future["next month"] == "January 2024"
    assert future["tomorrow"] == "1 January 2024"


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)))
def test_a_weekday_points_to_one_day_of_the_week_before(day: date) -> None:
    names = [when.phrase.removeprefix("last ") for when in recent_days(day)[3:]]
    days = {WEEKDAYS[(day - timedelta(days=back)).weekday()] for back in range(2, 7)}
    assert set(names) == days
    assert WEEKDAYS[day.weekday()] not in names
