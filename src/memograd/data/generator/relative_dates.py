"""How people point at a day, and the absolute date that it means.

Answers are worded as in LoCoMo: exact days (`7 May 2023`), months (`June 2023`), and for a vague
pointer the pointer anchored at the day of speaking (`The week before 9 June 2023`). Invariant: each
answer follows from the phrase and the day alone. Pure functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from memograd.memory import MONTHS, format_date

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class When:
    """A pointer as it is spoken (`last Friday`) and what it means (`The Friday before ...`)."""

    phrase: str
    answer: str


def recent_days(day: date) -> list[When]:
    """Pointers to one of the last days before `day`."""
    # "Last Sunday", said on a Sunday or a day later, could be two different days: leave it out.
    clear = [WEEKDAYS[(day - timedelta(days=back)).weekday()] for back in range(2, 7)]
    return [
        When("yesterday", format_date(day - timedelta(days=1))),
        When("two days ago", format_date(day - timedelta(days=2))),
        When("three days ago", format_date(day - timedelta(days=3))),
        *(When(f"last {name}", f"The {name} before {format_date(day)}") for name in clear),
    ]


def past_spans(day: date) -> list[When]:
    """Pointers to a stretch of time before `day`, for what takes longer than a day."""
    month_before = day.replace(day=1) - timedelta(days=1)
    return [
        When("last week", f"The week before {format_date(day)}"),
        When("two weeks ago", f"Two weeks before {format_date(day)}"),
        When("last month", _month(month_before)),
        When("last weekend", f"The weekend before {format_date(day)}"),
    ]


def future_spans(day: date) -> list[When]:
    """Pointers to what is planned after `day`."""
    month_after = day.replace(day=28) + timedelta(days=4)
    return [
        When("tomorrow", format_date(day + timedelta(days=1))),
        When("next week", f"The week after {format_date(day)}"),
        When("next month", _month(month_after)),
        When("in two weeks", f"Two weeks after {format_date(day)}"),
    ]


def _month(day: date) -> str:
    return f"{MONTHS[day.month - 1]} {day.year}"
