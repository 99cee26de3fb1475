"""The last number of a text, however it is written.

Arabic digits of any width, with thousands separators, decimals, a sign, an exponent, and the
Chinese multipliers (3.5万, 2千) behind them. Chinese numerals (三百二十五, 两万, 三点五, 负七) are
read only where a text has no Arabic digit, because 一 is also a part of ordinary words (一起).

Invariant: the Chinese writing of a whole number is read back as that number (property test in
`tests/rewards/test_numbers.py`).
"""

from __future__ import annotations

import re

_ARABIC = re.compile(
    r"(?P<sign>负|(?<![0-9A-Za-z)])[-+])?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|(?<![\w.])\.\d+)"
    r"(?P<exponent>[eE][-+]?\d{1,3}(?![0-9A-Za-z]))?"
    r"(?P<unit>[十百千万亿]*)",
)
# Bounded, so that the largest one is still a float.
_CHINESE = re.compile(
    r"负?[零〇一二两三四五六七八九十百千万亿]{1,30}(?:点[零〇一二三四五六七八九]{1,30})?"
)
_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")}
_DIGITS |= {"〇": 0, "两": 2}
_SMALL_UNITS = {"十": 10, "百": 100, "千": 1000}
_LARGE_UNITS = {"万": 10**4, "亿": 10**8}
_HALF_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x2212: ord("-")}


def last_number(text: str) -> float | None:
    """The number that `text` ends with, wherever that is; None if it has none."""
    plain = text.translate(_HALF_WIDTH)
    arabic = list(_ARABIC.finditer(plain))
    if arabic:
        return _arabic_value(arabic[-1])
    chinese = _CHINESE.findall(plain)
    return _chinese_value(chinese[-1]) if chinese else None


def _arabic_value(match: re.Match[str]) -> float:
    value = float(match["digits"].replace(",", "") + (match["exponent"] or ""))
    for unit in match["unit"]:
        value *= (_SMALL_UNITS | _LARGE_UNITS)[unit]
    return -value if match["sign"] in ("-", "负") else value


def _chinese_value(text: str) -> float:
    whole, _, decimals = text.removeprefix("负").partition("点")
    value = float(_chinese_whole(whole))
    if decimals:
        value += float("0." + "".join(str(_DIGITS[digit]) for digit in decimals))
    return -value if text.startswith("负") else value


def _chinese_whole(text: str) -> int:
    """A whole number in Chinese numerals; a row of bare digits (二〇二五) is read one by one."""
    if all(character in _DIGITS for character in text):
        return int("".join(str(_DIGITS[character]) for character in text))
    for unit in ("亿", "万"):
        if unit in text:
            high, _, low = text.rpartition(unit)
            rest = _chinese_whole(low) if low else 0
            return (_chinese_whole(high) if high else 1) * _LARGE_UNITS[unit] + rest
    total, digit = 0, 0
    for character in text:
        if character in _SMALL_UNITS:
            total += (digit or 1) * _SMALL_UNITS[character]
            digit = 0
        else:
            digit = _DIGITS[character]
    return total + digit
