"""The last number of a text, in Arabic, full-width and Chinese writing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.rewards.matching import last_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The answer is 42.", 42),
        ("first 3, then 1,234,567.5 in all", 1234567.5),
        ("x = -7", -7),
        ("5-3", 3),
        ("from 10 to -2.50 degrees", -2.5),
        ("about .5", 0.5),
        ("6.02e23", 6.02e23),
        ("１２３", 123),
        ("共３．５万人", 35000),
        ("2千", 2000),
        ("负12", -12),
        ("−8", -8),
        ("答案是三百二十五", 325),
        ("两万零五", 20005),
        ("十二", 12),
        ("二〇二五", 2025),
        ("三点一四", 3.14),
        ("负七", -7),
        ("一亿两千万", 120_000_000),
        ("一万亿", 10**12),
        ("一万五", 15_000),
        ("三百二", 320),
        ("负二十五万三", -253_000),
        ("月薪3万5千元", 35_000),
        ("2亿3千万", 230_000_000),
        ("1千5百", 1500),
        ("3万5", 35_000),
        ("-1万2千", -12_000),
        ("3万5000", 35_000),
        ("3万 5千", 5000),
        ("2千到3千", 3000),
        ("1千3万", 30_000),
        ("#### 72", 72),
        ("答案是42,一起加油", 42),
        ("no number", None),
        ("", None),
    ],
)
def test_last_number(text: str, value: float | None) -> None:
    assert last_number(text) == (None if value is None else pytest.approx(value))


def in_chinese(number: int) -> str:
    """Straightforward writing of 0 <= number < 10^12, independent of the reader."""
    if number < 10:
        return "零一二三四五六七八九"[number]
    for value, unit in ((10**8, "亿"), (10**4, "万"), (1000, "千"), (100, "百"), (10, "十")):
        if number >= value:
            high, low = divmod(number, value)
            gap = "零" if 0 < low < value // 10 else ""
            return in_chinese(high) + unit + gap + (in_chinese(low) if low else "")
    raise AssertionError


@given(st.integers(0, 10**12 - 1))
def test_chinese_writing_is_read_back(number: int) -> None:
    assert last_number(f"一共是{in_chinese(number)}。") == number
    assert last_number(f"一共是负{in_chinese(number)}。") == -number


@given(st.integers(-(10**15), 10**15))
def test_arabic_writing_is_read_back(number: int) -> None:
    assert last_number(f"so {number}, of course") == number
    assert last_number(f"so {number:,}.") == number
    wide = str(number).translate({ord(c): ord(c) + 0xFEE0 for c in "-0123456789"})
    assert last_number(wide) == number


@given(st.text(st.sampled_from("零〇一二两三百千万亿点负十1,.-e万 ５"), max_size=80))
def test_no_text_breaks_it(text: str) -> None:
    value = last_number(text)
    assert value is None or isinstance(value, float)
