"""The stretches of time that questions name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memograd.memory.search.ranker.question import read_question

WEDNESDAY = datetime(2024, 6, 5, 12, tzinfo=UTC)


def spans(text: str, *, asked_at: datetime = WEDNESDAY, names: tuple[str, ...] = ()) -> list[str]:
    found = read_question(text, asked_at=asked_at, names=names, years=(2023, 2024)).spans
    return [f"{begin:%Y-%m-%d}..{end:%Y-%m-%d}" for begin, end in found]


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("What happened on 2023-05-08?", "2023-05-08..2023-05-09"),
        ("What happened on 2023/5/8?", "2023-05-08..2023-05-09"),
        ("Who called on the fifth of May?", "2024-05-05..2024-05-06"),
        ("What did I eat the day before yesterday?", "2024-06-03..2024-06-04"),
        ("What did I eat last night?", "2024-06-04..2024-06-05"),
        ("What did I buy on Friday?", "2024-05-31..2024-06-01"),
        ("What did we plant last spring?", "2024-03-01..2024-06-01"),
        ("What did we plant last winter?", "2023-12-01..2024-03-01"),
        ("Where were we in the summer of 2022?", "2022-06-01..2022-09-01"),
        ("What did I say a couple weeks ago?", "2024-05-13..2024-06-01"),
        ("What did I say eleven days ago?", "2024-05-24..2024-05-26"),
        ("What did I do this week?", "2024-06-03..2024-06-06"),
        ("三天前我做了什么？", "2024-06-01..2024-06-03"),
        ("两个星期前我说了什么？", "2024-05-20..2024-05-25"),
        ("前天晚上吃了什么？", "2024-06-03..2024-06-04"),
        ("大前天呢？", "2024-06-02..2024-06-03"),
        ("我上周五去了哪里？", "2024-05-31..2024-06-01"),
        ("我上週五去了哪裡？", "2024-05-31..2024-06-01"),
        ("上周末做了什么？", "2024-06-01..2024-06-03"),
        ("去年我买了什么？", "2023-01-01..2024-01-01"),
        ("去年夏天我们去了哪儿？", "2023-06-01..2023-09-01"),
        ("去年五月三号我在哪？", "2023-05-03..2023-05-04"),
        ("二〇二三年十二月二十五日呢？", "2023-12-25..2023-12-26"),
    ],
)
def test_a_span_is_named(text: str, span: str) -> None:
    assert span in spans(text)


@pytest.mark.parametrize(
    "text",
    [
        "What is on Friday?",  # what is to come was told some other day
        "5月3日前要交什么？ 2023年前呢？",
        "How many weeks does it take?",
        "Is there an ISO 9001-13-40?",
        "Did I fall?",
    ],
)
def test_no_day_is_counted_back(text: str) -> None:
    assert not [span for span in spans(text) if span > "2024-05-06"]


def test_half_a_year_is_not_a_year() -> None:
    assert spans("What did I do half a year ago?") == spans("半年前我做了什么？")


def test_a_month_that_is_somebody_is_no_date() -> None:
    assert spans("What did June say?")
    assert not spans("What did June say?", names=("june",))


@pytest.mark.parametrize("asked_at", [datetime(1, 1, 1), datetime(9999, 12, 31)])
@pytest.mark.parametrize(
    "text", ["last winter", "前年冬天", "三天前", "this week", "last year", "in December 9999"]
)
def test_the_ends_of_the_calendar_are_no_error(text: str, asked_at: datetime) -> None:
    spans(text, asked_at=asked_at)
