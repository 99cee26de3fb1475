"""Chinese words that point at a day (昨天, 上周五, 下个月), replaced by the day they mean.

Invariant: the dates follow from the words and the day of speaking alone. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

from memograd.memory.language import simplified
from memograd.memory.reader.dates import Resolved, shift_month

_DIGITS: Final = {c: i for i, c in enumerate("零一二三四五六七八九十")} | {"两": 2, "半": 0}
_NUMBER = r"(?P<n>\d{1,3}|[一二两三四五六七八九十]{1,3})"
_WEEKDAY = r"(?:周|星期|礼拜)(?P<w>[一二三四五六日天])"
_DAYS: Final = {
    "昨儿": -1, "今儿": 0, "明儿": 1, "后儿": 2,
    "大前天": -3, "前天": -2, "昨天": -1, "昨日": -1, "今天": 0, "今日": 0, "明天": 1, "明日": 1,
    "后天": 2, "大后天": 3,
    "大前日": -3, "前日": -2, "寻日": -1, "噚日": -1, "琴日": -1, "听日": 1, "后日": 2, "大后日": 3,
}  # fmt: skip
_PARTS: Final = {
    "昨晚": (-1, "晚上"), "昨夜": (-1, "夜里"), "今早": (0, "早上"), "今晨": (0, "早上"),
    "今晚": (0, "晚上"), "明早": (1, "早上"), "明晚": (1, "晚上"), "前晚": (-2, "晚上"),
}  # fmt: skip
_YEARS: Final = {"大前年": -3, "前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2}


def number(text: str) -> int:
    """The value of a small Chinese or Arabic number: 十二 is 12, 两 is 2."""
    if text.isdigit():
        return int(text)
    tens, ten, units = text.partition("十")
    if not ten:
        return _DIGITS[text[-1]]
    return (_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[units] if units else 0)


def format_chinese(day: date) -> str:
    """The date as it is written in Chinese: `2023年5月7日`."""
    return f"{day.year}年{day.month}月{day.day}日"


def _step(word: str) -> int:
    steps = {"上": -1, "下": 1}.get(word[0], 0)
    return 2 * steps if word[:2] in ("上上", "下下") else steps


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _weekday(found: re.Match[str], day: date) -> tuple[str, date]:
    index = 6 if found["w"] in "日天" else _DIGITS[found["w"]] - 1
    target = _monday(day) + timedelta(weeks=_step(found["which"]), days=index)
    return f"{format_chinese(target)}（周{found['w']}）", target


_MOVED = r"(?:(?<=[改挪推移调延排定约订])(?P<to>到|至|成|为)|(?<=[改挪移排定])(?P<at>在))了?"


def _coming_weekday(found: re.Match[str], day: date) -> tuple[str, date]:
    """改到周四: the next one."""
    index = 6 if found["w"] in "日天" else _DIGITS[found["w"]] - 1
    target = day + timedelta(days=(index - day.weekday()) % 7 or 7)
    return f"{found['to'] or found['at']}{format_chinese(target)}（周{found['w']}）", target


def _coming_day(found: re.Match[str], day: date) -> tuple[str, date]:
    """挪到三十号: of this month, or else of the first that has it.

    Raises ValueError where no month has it.
    """
    wanted = (
        number(found["n"])
        if found["n"].isdigit() or "十" in found["n"]
        else _DIGITS[found["n"][-1]]
    )
    for away in range(1, 63):
        target = day + timedelta(days=away)
        if target.day == wanted:
            return f"{found['to'] or found['at']}{format_chinese(target)}", target
    raise ValueError("no such day")


_MONTH_SAID = re.compile(r"(?:\d|[一二三四五六七八九十])月|[上下这本]个?月|每|平时|一般|通常|月子")
_AHEAD = re.compile(
    r"要|会|去|得|准备|打算|之前|以前|前|截止|到期|开始|出发|飞|考试|见面|婚|手术|演出|葬礼|最后一天|报到|发工资|开学|交|回|拔|检查|复查|体检|面试"
)
_OVER = re.compile(r"[了的过]$|确诊|出生")


def _nth(found: re.Match[str], day: date) -> tuple[str, date]:
    """21号做手术: the coming one; 3号确诊的: the last.

    Raises ValueError where another month may be meant, or no word says which side.
    """
    clause = re.split(r"[，。！？,.!?；;\s]", found.string[: found.start()])[-1]
    clause += found[0] + re.split(r"[，。！？,.!?；;\s]", found.string[found.end() :])[0]
    if _MONTH_SAID.search(found.string) or re.search("今天|今儿", clause):
        raise ValueError("another month, or today")
    over = _OVER.search(clause) is not None
    if not over and not _AHEAD.search(clause):
        raise ValueError("before or after")
    for away in range(over, 63):
        target = day + timedelta(days=-away if over else away)
        if target.day == int(found["n"]):
            return format_chinese(target), target
    raise ValueError("no such day")


_HABIT = re.compile(
    r"[每都]|一般|平时|经常|通常|老是|总是|习惯|才能|[天日号號周月年]|星期|礼拜|以前|那时"
)


def _today(found: re.Match[str], day: date) -> tuple[str, date]:
    """下午要去拔牙: of today.

    Raises ValueError where it may be a habit, or another day is named before it.
    """
    if _HABIT.search(found.string[: found.start()]) or _HABIT.search(
        re.split(r"[，。！？,.!?；;\s]", found.string[found.end() :])[0]
    ):
        raise ValueError("a habit, or of another day")
    return f"{format_chinese(day)}{found['part']}", day


def _week(found: re.Match[str], day: date) -> tuple[str, date]:
    monday = _monday(day) + timedelta(weeks=_step(found["which"]))
    return f"{format_chinese(monday)}那周", monday


def _weekend(found: re.Match[str], day: date) -> tuple[str, date]:
    saturday = _monday(day) + timedelta(weeks=_step(found["which"]), days=5)
    return f"{format_chinese(saturday)}那个周末", saturday


def _month(found: re.Match[str], day: date) -> tuple[str, date]:
    target = shift_month(day, _step(found["which"]))
    return f"{target.year}年{target.month}月", target


def _day_of_month(found: re.Match[str], day: date) -> tuple[str, date]:
    """下个月三号. Raises ValueError where that month has no such day."""
    target = shift_month(day, _step(found["which"])).replace(day=number(found["n"]))
    return format_chinese(target), target


def _part_of_month(found: re.Match[str], day: date) -> tuple[str, date]:
    target = shift_month(day, _step(found["which"]) if found["which"] else 0)
    return f"{target.year}年{target.month}月{found['part']}", target


def _ago(found: re.Match[str], day: date) -> tuple[str, date]:
    count = number(found["n"]) * (-1 if found["side"] in ("前", "以前", "之前") else 1)
    unit = found["unit"]
    if unit == "天":
        target = day + timedelta(days=count)
        return format_chinese(target), target
    if unit == "年":
        target = date(day.year + count, 1, 1)
        return f"{target.year}年", target
    if "月" in unit:
        target = shift_month(day, count)
        return f"{target.year}年{target.month}月", target
    target = day + timedelta(weeks=count)
    return f"{format_chinese(target)}前后", target


_Rule = tuple[re.Pattern[str], Callable[[re.Match[str], date], tuple[str, date]]]
_RULES: Final[tuple[_Rule, ...]] = (
    # 只上周二周四的班 is about work.
    (re.compile(rf"(?P<which>上上个?|上个?|下下个?|下个?|这个?|本){_WEEKDAY}"
                r"(?!(?:[、和到至]?(?:周|星期|礼拜)?[一二三四五六日天])*的?[早中晚夜白]?班)"),
     _weekday),
    (re.compile(rf"{_MOVED}{_WEEKDAY}(?![到至和、一二三四五六日])"), _coming_weekday),
    (re.compile(rf"{_MOVED}{_NUMBER}[号日](?![楼线院店])"), _coming_day),
    (re.compile(r"(?<![\dA-Za-z第初到至、和.-])(?P<n>[12]?\d|3[01])号"
                r"(?![到至、和那楼线院店门桌机车房球床位选手电库仓厅馆台口坑井弄栋幢座铺档室员字码公馆段区])"),
     _nth),
    (re.compile(r"(?P<which>上上个?|上个?|下个?|这个?|本)周末"), _weekend),
    (re.compile(r"(?P<which>上上个?|上个?|下个?|这个?|本)(?:周|星期|礼拜)(?![一二三四五六日天末])"),
     _week),
    (re.compile(rf"(?P<which>上上个|上个?|下个?|这个?|本)月的?{_NUMBER}[号日](?![楼线院店])"),
     _day_of_month),
    (re.compile(r"(?P<which>上上个|上个?|下个?|这个?|本)月(?!份?[饼球亮])"), _month),
    (re.compile(rf"(?<![\d{''.join(_DIGITS)}])(?P<which>上个?|下个?|这个?|本)?月(?P<part>底|初(?![一二三四五六七八九十])|中旬)(?!部)"),
     _part_of_month),
    # 住过两年 tells how long somebody lived there.
    (re.compile(rf"(?:再[过熬等有忍]|(?:(?<![\u4e00-\u9fff])|(?<=[得要想就只说计能会])|(?<=打算))过){_NUMBER}"
                r"(?P<unit>天|年|个月|个?周|个?星期|个?礼拜)(?P<side>)"),
     _ago),
    (re.compile(rf"{_NUMBER}(?P<unit>天|年|个月|个?周|个?星期|个?礼拜)"
                r"(?P<side>以前|之前|前|以后|之后|后)(?!面|天)"),
     _ago),
    (re.compile(r"(?<![^，。！？,.!?；;\s])(?P<part>上午|中午|下午|傍晚|晚上)"
                r"(?=(?:我|还|就|可能|应该)*(?:要|得|约了|准备|打算)(?:去|带|陪|送|接|见|跟|和|飞|考|面试|做|打|看|回|赶|搬|开会))"),
     _today),
    (re.compile("|".join(_PARTS)),
     lambda m, d: (format_chinese(d + timedelta(_PARTS[m[0]][0])) + _PARTS[m[0]][1],
                   d + timedelta(_PARTS[m[0]][0]))),
    (re.compile("[昨今明后]儿(?:个(?!个))?(?=[^子女歌童媳科])"),
     lambda m, d: (format_chinese(d + timedelta(_DAYS[m[0][:2]])), d + timedelta(_DAYS[m[0][:2]]))),
    (re.compile("大前[天日]|大后[天日]|[前昨今后]天|(?<![小老阿])明天|[前昨今后]日|明日|[寻噚]日|(?<!钢)琴日|听日(?![记语本剧文])"),
     lambda m, d: (format_chinese(d + timedelta(_DAYS[m[0]])), d + timedelta(_DAYS[m[0]]))),
    # 阿明年后要走, 小明天天迟到: a name.
    (re.compile("大前年|前年|去年|今年|(?<![小老阿])明年|后年"),
     lambda m, d: (f"{d.year + _YEARS[m[0]]}年", date(d.year + _YEARS[m[0]], 1, 1))),
)  # fmt: skip
_ABSOLUTE: Final = re.compile(
    r"(?<!\d)(?P<y>(?:19|20)\d{2})(?:年(?:(?P<m>\d{1,2})月(?:(?P<d>\d{1,2})[日号])?)?"
    r"|-(?P<m2>\d{2})-(?P<d2>\d{2})(?!\d))"
)


def resolve_chinese(text: str, day: date | None) -> Resolved:
    """The text with absolute dates, and the day of the first; without `day` nothing is replaced."""
    first = _absolute(text)
    if day is None:
        return Resolved(text, first)
    plain = simplified(text)  # character for character
    earliest = len(text)
    pieces: list[tuple[int, int, str]] = []
    for pattern, resolve in _RULES:
        for found in pattern.finditer(plain):
            if any(found.start() < end and start < found.end() for start, end, _ in pieces):
                continue
            try:
                words, target = resolve(found, day)
            except (OverflowError, ValueError):
                continue  # a number of years that no calendar has
            pieces.append((found.start(), found.end(), words))
            if found.start() < earliest:
                earliest, first = found.start(), target
    for start, end, words in sorted(pieces, reverse=True):
        # 去年5月 has the month behind it already: 2022年5月.
        text = text[:start] + words + text[end:]
    later = _absolute(text)
    return Resolved(text, later if first and later and later.year == first.year else first)


def _absolute(text: str) -> date | None:
    if found := _ABSOLUTE.search(text):
        try:
            month, day = found["m"] or found["m2"] or 1, found["d"] or found["d2"] or 1
            return date(int(found["y"]), int(month), int(day))
        except ValueError:
            return None
    return None
