"""Values by their form: dates, times, days of the week, numbers, in English and Chinese.

Invariant: a number is found whole, however it is written: no half of 两万五 or of "two hundred
and fifty" stands for the value. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

_DAYS = "mon|tues?|wednes|thurs?|fri|satur|sun"
MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
_UNITS = "two|three|four|five|six|seven|eight|nine"
_NUMBER_WORDS = (
    rf"(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[ -](?:one|{_UNITS}))?"
    rf"|{_UNITS}|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    "|first|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
)
_GREAT = r"(?:hundred|thousand|million|billion|grand|dozen)\b"
# Behind "two" it is one number with it: hundred, "and fifty", "and a half", 1/2.
_GOES_ON = (
    rf" {_GREAT}(?: (?:and )?(?:{_NUMBER_WORDS}|one)\b)?"
    r"| (?:and )?(?:an? )?(?:half\b|(?:three )?quarters?\b|\d/\d(?![/\d]))|[½¼¾]"
)
NUMERALS = "零〇一二两三四五六七八九十廿卅百千壹贰叁肆伍陆柒捌玖拾佰仟"
# In this order: what one type has taken, the next ones do not see.
TYPES: Final = (
    re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    re.compile(
        rf"(?<!\w)\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?:{MONTHS})\b(?: \d{{4}})?"
        rf"|\b(?:{MONTHS}) \d{{1,2}}(?:st|nd|rd|th)?(?!\d)(?:,? \d{{4}})?"
        r"|(?<!\d)\d{4}-\d\d-\d\d(?!\d)"
        rf"|(?:\d{{4}}年)?[\d{NUMERALS}]{{1,3}}月[\d{NUMERALS}]{{1,3}}[日号]?",
        re.I,
    ),
    re.compile(rf"(?<=[月，,。\s])初[{NUMERALS}]|^初[{NUMERALS}]"),
    re.compile(
        rf"\b(?:{MONTHS})\b(?! \d)|(?<!\d)[\d{NUMERALS}]{{1,3}}月(?![\d{NUMERALS}]|份?饼)", re.I
    ),
    re.compile(
        r"(?<![\d.])\d{1,2}[:.：]\d{2}(?!\.?\d)(?: ?[ap]\.?m\b\.?)?|(?<!\d)\d{1,2} ?[ap]\.?m\b\.?"
        rf"|[上下]午[\d{NUMERALS}]{{1,3}}点半?"
        # 周二两点 is two o'clock.
        rf"|(?:(?<=[周期拜][一二三四五六日天])|(?<![周期拜\d{NUMERALS}]))"
        rf"[\d{NUMERALS}]{{1,3}}点(?:半|[\d{NUMERALS}]{{1,3}}分?)?",
        re.I,
    ),
    re.compile(
        r"\b(?:once|twice|(?:\d+|two|three|four|five|six) times)(?: an?| per| every)? "
        r"(?:day|week|month|year|night|hour|fortnight)\b|每[天周月年日晚][\d一二两三四五六]+次",
        re.I,
    ),
    re.compile(rf"\b(?:{_DAYS})(?:days?)?\b|(?:周|星期|礼拜)[一二三四五六日天]", re.I),
    # B2071, as on a ticket; Sl0thKnight77, as somebody calls himself.
    re.compile(r"(?<![A-Za-z\d])(?:[A-Za-z]{1,3}-?\d{2,}|[A-Za-z]+\d+[A-Za-z])[A-Za-z\d]*"),
    re.compile(r"\+?\d[\d\-]*(?: [\d\-]+)+"),
    re.compile(
        rf"(?:\+?\d(?:[\d.\-]|,(?=\d{{3}}(?!\d)))*\d|\d+)(?:(?:k|st|nd|rd|th)\b|[万亿千](?![克米瓦卡])(?:[\d{NUMERALS}]{{1,5}})?)?"
        rf"(?:{_GOES_ON})*"
        rf"|\b(?:(?:{_NUMBER_WORDS})\b|(?:an?|one)(?= {_GREAT}))(?:{_GOES_ON})*",
        re.I,
    ),
    re.compile(
        rf"[{NUMERALS}]{{1,6}}[万亿][{NUMERALS}]{{0,6}}"
        rf"|(?!一个[零〇字数])[{NUMERALS}]{{1,5}}(?=[个岁年月天号楼层元块公斤只辆亩米台间套棵桌节])"
        rf"|(?<![{NUMERALS}\w])[{NUMERALS}]{{2,5}}(?=[!！,，。?？\s]|$)"
    ),
)
TIMES: Final = 7  # of the types, the first ones
AROUND_UNIT: Final = re.compile(
    r"(?<![\d.])\d+ ?(?:quid|pounds?|euros?|dollars?|bucks|foot|feet|ft|stone|st|lbs?|hours?|hrs?|h"
    r"|m|metres?|meters?|['’]) ?\d+(?!\d|\.\d)"
    rf"|[{NUMERALS}\d]+[米块塊元斤][{NUMERALS}\d]+"
)
"""A number on both sides of its unit."""
NEGATED: Final = re.compile(
    r"(?:\bnot|\bnever|isn't|n't|instead of|rather than|不是|而不是|并非)\s*['’‘]?$", re.I
)
STAYS: Final = re.compile(
    r"(?:\W?s)?(?: \w+)?(?: (?:bit|part|one|figure|number))?"
    r"(?:(?:'s| is| are| was|s)(?: \w+)? (?:right|correct|fine|true|ok(?:ay)?)|stays?|remains?)\b"
    r"|[^\s，,。]{0,4}(?:没错|沒錯|[是倒]?对的|不变|不變)",
    re.IGNORECASE,
)
"""Behind a value: it is said to be right."""
_OF_WORDS: Final = re.compile(
    rf"(?:\b(?:{_NUMBER_WORDS}|an?|one)|(?<![\w.,])\d[\d,.]*)(?:{_GOES_ON})+"
    rf"|(?<![周期拜])(?:[{NUMERALS}]|\d(?=[万亿]))[{NUMERALS}万亿]*\d?|\d+(?:[.:]\d+|,\d{{3}}(?!\d))+",
    re.IGNORECASE,
)


def whole_number(text: str, start: int, end: int) -> tuple[int, int]:
    """The place, with the rest of a number of which it is a part: "fifty" of "a hundred and fifty",
    两万 of 两万五, 200 of 1,200."""
    for found in _OF_WORDS.finditer(text):
        if found.start() < end and start < found.end():
            start, end = min(start, found.start()), max(end, found.end())
    return start, end


def of_one_type(old: str, new: str) -> bool:
    """Whether both are a date, a time, a day of the week, ..., or neither is."""
    return all(bool(pattern.search(old)) == bool(pattern.search(new)) for pattern in TYPES[:TIMES])


def next_word(text: str, end: int) -> str:
    """The word behind a place of an English text, empty where none."""
    found = re.match(r"\s*([^\W\d_]+)", text[end:])
    return found[1].casefold()[:12] if found else ""


def plain(value: str) -> str:
    """A value as values of one type are compared: 9 for "nine", jun 3 for "3rd of June"."""
    if re.search(rf"\b(?:{MONTHS})\b", value, re.I):  # "3rd of June" is "June 3"
        words = re.findall(r"\d+|[a-z]{3,}", value.casefold())
        return " ".join(sorted(word[:3] for word in words if word not in ("the", "2nd")))
    bare = re.sub(r"[\s,.:]|(?<=\d) ?[ap]\.?m\.?$", "", value.casefold())
    # "nine floors" gives no other number than "the 9th floor".
    if (number := _IN_WORDS.get(bare)) or (number := re.sub(r"(?<=\d)(?:st|nd|rd|th)$", "", bare)):
        return re.sub(r"days?$", "", number)
    return bare


_NUMBERED = "one/first two/second three/third four/fourth five/fifth six/sixth seven/seventh"
_NUMBERED += " eight/eighth nine/ninth ten/tenth eleven/eleventh twelve/twelfth"
_IN_WORDS: Final = {
    word: str(number)
    for number, words in enumerate(_NUMBERED.split(), 1)
    for word in words.split("/")
}
