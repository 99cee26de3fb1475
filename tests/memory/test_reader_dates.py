"""Words that point at a day, in both languages, and the dates they mean."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.memory.reader.dates import _RULES, resolve_english
from memograd.memory.reader.dates_chinese import number, resolve_chinese

DAY = date(2023, 6, 9)  # a Friday


@pytest.mark.parametrize(
    ("said", "meant", "day"),
    [
        ("I left yesterday", "I left on 8 June 2023", date(2023, 6, 8)),
        ("Yesterday I left", "On 8 June 2023, I left", date(2023, 6, 8)),
        ("gone since yesterday", "gone since 8 June 2023", date(2023, 6, 8)),
        ("it was the day before yesterday", "it was on 7 June 2023", date(2023, 6, 7)),
        ("it is day after tomorrow", "it is on 11 June 2023", date(2023, 6, 11)),
        ("I left three days ago", "I left on 6 June 2023", date(2023, 6, 6)),
        ("two weeks ago", "2 weeks before 9 June 2023 (26 May 2023)", date(2023, 5, 26)),
        ("three years ago", "In 2020", date(2020, 1, 1)),
        ("three years ago today", "On 9 June 2020", date(2020, 6, 9)),
        ("it is next month on the 22nd", "it is on 22 July 2023", date(2023, 7, 22)),
        ("due on the 3rd of next month", "due on 3 July 2023", date(2023, 7, 3)),
        ("due on the 31st of next month", "due on 31 July 2023", date(2023, 7, 31)),
        ("exactly two months ago", "On 9 April 2023", date(2023, 4, 9)),
        ("about five months ago", "Around January 2023", date(2023, 1, 1)),
        ("last Friday", "On Friday 2 June 2023", date(2023, 6, 2)),
        ("last Fri", "On Friday 2 June 2023", date(2023, 6, 2)),
        ("we met last Sunday", "we met on Sunday 4 June 2023", date(2023, 6, 4)),
        ("see you next Monday", "see you on Monday 12 June 2023", date(2023, 6, 12)),
        ("the last week in May", "the last week in May", None),
        ("the last week of May", "the last week of May", None),
        ("last week", "In the week before 9 June 2023", date(2023, 6, 2)),
        ("next month", "In July 2023", date(2023, 7, 1)),
        ("last year", "In 2022", date(2022, 1, 1)),
        ("off for two weeks from today", "off for two weeks from 9 June 2023", date(2023, 6, 9)),
        ("12 weeks on Thursday", "12 weeks on Thursday", None),
        ("12 June next year", "12 June 2024", date(2024, 1, 1)),
        ("last weekend", "On the weekend of 3 June 2023", date(2023, 6, 3)),
        ("this month", "In June 2023", date(2023, 6, 1)),
        ("last summer", "In summer 2022", date(2022, 1, 1)),
        ("last July", "In July 2022", date(2022, 7, 1)),
        ("next July", "In July 2023", date(2023, 7, 1)),
        ("in two weeks", "2 weeks after 9 June 2023 (23 June 2023)", date(2023, 6, 23)),
        ("it rained last night", "it rained on the night of 8 June 2023", date(2023, 6, 8)),
        ("born on 3 May 1990", "born on 3 May 1990", date(1990, 5, 3)),
        ("yesterday's paper", "yesterday's paper", None),
        ("no date", "no date", None),
    ],
)
def test_english(said: str, meant: str, day: date | None) -> None:
    resolved = resolve_english(said, DAY)
    assert (resolved.text, resolved.day) == (meant, day)


@pytest.mark.parametrize(
    ("said", "meant", "day"),
    [
        ("我昨天走了", "我2023年6月8日走了", date(2023, 6, 8)),
        ("大前天", "2023年6月6日", date(2023, 6, 6)),
        ("昨晚下雨", "2023年6月8日晚上下雨", date(2023, 6, 8)),
        ("上周五", "2023年6月2日（周五）", date(2023, 6, 2)),
        ("下周二下午两点", "2023年6月13日（周二）下午两点", date(2023, 6, 13)),
        ("只上周二周四的班", "只上周二周四的班", None),
        ("阿明年后走，小明天天来", "阿明年后走，小明天天来", None),
        ("21号做手术", "2023年6月21日做手术", date(2023, 6, 21)),
        ("15号拔智齿", "2023年6月15日拔智齿", date(2023, 6, 15)),
        ("9号要交房租", "2023年6月9日要交房租", date(2023, 6, 9)),
        ("3号确诊的", "2023年6月3日确诊的", date(2023, 6, 3)),
        ("10号确诊的", "2023年5月10日确诊的", date(2023, 5, 10)),
        ("每月5号要还", "每月5号要还", None),
        ("去2号楼", "去2号楼", None),
        ("十一月去，6号飞", "十一月去，6号飞", None),
        ("8月21号要做", "8月21号要做", None),
        ("这周日", "2023年6月11日（周日）", date(2023, 6, 11)),
        ("上个星期三", "2023年5月31日（周三）", date(2023, 5, 31)),
        ("上周", "2023年5月29日那周", date(2023, 5, 29)),
        ("上个周末", "2023年6月3日那个周末", date(2023, 6, 3)),
        ("下个月", "2023年7月", date(2023, 7, 1)),
        ("下个月三号", "2023年7月3日", date(2023, 7, 3)),
        ("下个月三十二号", "2023年7月三十二号", date(2023, 7, 1)),
        ("上个月去了", "2023年5月去了", date(2023, 5, 1)),
        ("三天前", "2023年6月6日", date(2023, 6, 6)),
        ("两个月前", "2023年4月", date(2023, 4, 1)),
        ("十二年前", "2011年", date(2011, 1, 1)),
        ("两周后", "2023年6月23日前后", date(2023, 6, 23)),
        ("明年", "2024年", date(2024, 1, 1)),
        ("去年5月", "2022年5月", date(2022, 5, 1)),
        ("2023年5月7日", "2023年5月7日", date(2023, 5, 7)),
        ("电话是2019-1234", "电话是2019-1234", None),
        ("没有日期", "没有日期", None),
    ],
)
def test_chinese(said: str, meant: str, day: date | None) -> None:
    resolved = resolve_chinese(said, DAY)
    assert (resolved.text, resolved.day) == (meant, day)


@given(st.integers(1, 99))
def test_chinese_numbers(value: int) -> None:
    digits = "零一二三四五六七八九"
    tens, units = divmod(value, 10)
    spelled = ("" if tens < 2 else digits[tens]) + ("十" if tens else "")
    spelled += digits[units] if units else ""
    assert number(spelled) == number(str(value)) == value


@given(st.text(max_size=60), st.dates())
def test_any_text_and_day(text: str, day: date) -> None:
    resolve_english(text, day)
    resolve_chinese(text, day)


def test_without_a_day_nothing_is_replaced() -> None:
    assert resolve_english("I left yesterday", None).text == "I left yesterday"
    assert resolve_chinese("我昨天走了", None).text == "我昨天走了"


POINTERS = """next month on the 22nd; the 3rd of next month
yesterday; the day before yesterday; the day after tomorrow; tomorrow night
last night; yesterday evening
tonight; this morning; a fortnight from today; three weeks from Monday; Tue week
Friday before last
the weekend after next; the end of this month; the first of the month; a fortnight ago
in a fortnight; earlier today; two weeks ago; three years now since we met; a few days ago
exactly a year ago; two weeks ago today; in four months; six days from now
this coming Sat; past Wednesday; this summer; next autumn
last March""".replace("\n", "; ").split("; ")


@pytest.mark.parametrize("change", [str, str.upper, str.title])
def test_whatever_a_rule_fits_has_a_word_that_is_looked_for_first(
    change: Callable[[str], str],
) -> None:
    for needed, pattern, _ in _RULES:
        fitting = [said for said in map(change, POINTERS) if pattern.search(said)]
        assert fitting, needed
        for said in fitting:
            assert any(word in said.casefold() for word in needed), (said, needed)
