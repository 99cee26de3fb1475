"""The extent of two values, one of which is put in the other's place.

A model points at tokens, and tokens are cut elsewhere in every text: 尾号6620 beside 6602, "30" of
"30th" beside "13th", "two" beside "Half past three" where the item says "half past two". Put in
place as they are, they would leave "half past Half past three". And a value is put in place whole:
of "B+" and "B negative" no "negative+" is made, of "2 quid 40" and "4 quid 20" no "2 quid 20".

Invariants: what is left of a value is not empty and stands within whole words; both stand where
they stood. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.relations.rows import Span
from memograd.memory.statements.value_types import AROUND_UNIT, whole_number

_EDGES: Final = " \t,，.。!！?？;；:：*\"'“”‘’()（）~/"
_HAN_NUMERALS: Final = "零〇一二两三四五六七八九十廿卅百千万亿半"
_NUMBER: Final = rf"[+-]?(?:\d[\d.,:/-]*|[{_HAN_NUMERALS}]+)"
_HAN: Final = "[\u4e00-\u9fff]"
_TOKEN: Final = re.compile(rf"{_HAN}|[^\s\u4e00-\u9fff]+")
_WORDS: Final = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    "|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
    "|hundred|thousand|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
)
_COUNTS: Final = re.compile(rf"\d|[{_HAN_NUMERALS}]|\b(?:{_WORDS})\b", re.IGNORECASE)
_WEEKDAY: Final = re.compile(f"(?:周|星期|礼拜)[{_HAN_NUMERALS}日天]")
_STAYS: Final = (
    r"(?: bit)?(?:(?:'s| is| are| was)(?: \w+)? (?:right|correct|fine|true|ok(?:ay)?)"
    r"| stays?| remains?)\b"
)
_OWNS: Final = re.compile(r"['’]s\b")
_COUNTED: Final = re.compile(rf"[{_HAN_NUMERALS}\d]+[个只位条名头匹](?={_HAN})")


def of_one_extent(item: str, old: Span, message: str, new: Span) -> tuple[Span, Span] | None:
    """The spans, moved to what is put in place; None where one counts and the other does not."""
    old, new = _trimmed(item, _whole(item, old)), _trimmed(message, _whole(message, new))
    new = _name_of(message, new, old.end - old.start)
    composed = _composed(item, old, message, new)
    if composed is None:
        return None
    old, new = composed
    old, new = _without_common_edges(item, old, message, new)
    if _OWNS.match(item[old.end :]) and re.search(r"\w['’]s$", message[slice(*new)]):
        new = Span(new.start, new.end - 2)
    elif _OWNS.match(message[new.end :]) and re.search(r"\w['’]s$", item[slice(*old)]):
        old = Span(old.start, old.end - 2)
    old = _of_one_form(item, old, message[slice(*new)])
    if re.fullmatch(_NUMBER, item[slice(*old)]):  # 两万五 of 最多两万五
        new = _of_one_form(message, new, item[slice(*old)])
    old = _without_what_stays(item, old, message, new)
    if old.start >= old.end or new.start >= new.end:
        return None
    if _counts(item, old) != _counts(message, new):
        return None
    return old, new


def _name_of(message: str, new: Span, length: int) -> Span:
    """The name whose character is only explained: of 紫萱 紫色的紫 the first two for 梓萱."""
    character = message[slice(*new)]
    if length < 2 or not re.search(rf"{_HAN}的{re.escape(character)}$", message[: new.end]):
        return new
    name = rf"(?<!{_HAN}){_HAN}{{{length}}}(?!{_HAN})"
    names = [one for one in re.finditer(name, message) if character in one[0]]
    return Span(*names[0].span()) if names else new


def _whole(text: str, span: Span) -> Span:
    """Whole words and numbers: "30" of "30th" is "30th", "3" of "-3" is "-3"."""
    start, end = span
    while 0 < start < end and _joined(text[start - 1], text[start]):
        start -= 1
    while start < end < len(text) and _joined(text[end - 1], text[end]):
        end += 1
    if _COUNTS.search(text[start:end]):
        start, end = whole_number(text, start, end)
    if re.match(r"\d", text[start:end]) and re.search(r"(?<![\w])[+-]$", text[:start]):
        start -= 1
    return Span(start, end)


# A letter with its sign: B+, O negative, C#, B型阴性.
_SIGN: Final = r"positive|negative|pos|neg|plus|minus|flat|sharp|major|minor"
_SIGNED: Final = re.compile(
    rf"(?<![\w+-])[A-Za-z]{{1,2}}(?:(?P<mark>[+＋#-]{{1,2}})(?![\w+#-])| (?P<word>{_SIGN})\b)"
    rf"|(?<![A-Za-z])[A-Za-z]{{1,2}}型?(?:血)?(?P<zh>[阴陰阳陽]性)",
    re.IGNORECASE,
)
_SIGN_ALONE: Final = re.compile(rf"[+＋#-]{{1,2}}|{_SIGN}|[阴陰阳陽]性", re.IGNORECASE)


def _composed(item: str, old: Span, message: str, new: Span) -> tuple[Span, Span] | None:
    """The spans, each with the rest of the value that it is half of; None where the message has
    only the half that cannot stand beside the other one."""
    for pattern in (_SIGNED, AROUND_UNIT):
        mine, its = _around(pattern, item, old), _around(pattern, message, new)
        if its is not None:
            new = _joint_span(new, its)
        if mine is None:
            continue
        if its is not None:
            old = _joint_span(old, mine)
            if pattern is _SIGNED and (name := _of_one_letter(mine, its)) is not None:
                old, new = Span(*mine.span(name)), Span(*its.span(name))
        elif pattern is AROUND_UNIT:
            counted = re.match(r"\d+ ?([^\W\d]+)", message[new.start :])
            if counted is not None and counted[1] in mine[0]:  # "6 foot" for "5 foot 10"
                old, new = _joint_span(old, mine), Span(new.start, new.start + counted.end())
        elif _SIGN_ALONE.fullmatch(message[slice(*new)]) is None:
            old = _joint_span(old, mine)
        elif mine["mark"] or message[slice(*new)][0] in "+＋#-":
            return None  # "B+" and "negative"
        else:
            name = "word" if mine["word"] else "zh"
            old = Span(mine.start(name), mine.end(name))
    return old, new


def _of_one_letter(mine: re.Match[str], its: re.Match[str]) -> str | None:
    """In which way both are written, where only the sign is another: "A negative", "A positive"."""
    for name in ("word", "zh"):
        if mine[name] and its[name]:
            one, other = (m[0].removesuffix(m[name]).casefold() for m in (mine, its))
            return name if one == other else None
    return None


def _around(pattern: re.Pattern[str], text: str, span: Span) -> re.Match[str] | None:
    """The value of that form which a span lies in or reaches into."""
    return next(
        (
            one
            for one in pattern.finditer(text)
            if one.start() < span.end and span.start < one.end()
        ),
        None,
    )


def _joint_span(span: Span, found: re.Match[str]) -> Span:
    return Span(min(span.start, found.start()), max(span.end, found.end()))


def _joined(one: str, other: str) -> bool:
    return all(character.isascii() and character.isalnum() for character in (one, other))


def _trimmed(text: str, span: Span) -> Span:
    start, end = span
    while start < end and text[start] in _EDGES:
        start += 1
    while start < end and text[end - 1] in _EDGES:
        end -= 1
    return Span(start, end)


def _without_common_edges(item: str, old: Span, message: str, new: Span) -> tuple[Span, Span]:
    """Without the words and characters at an edge of one that stand beside the other.

    姓欧阳 and 司徒, of which the message says 姓司徒, are 欧阳 and 司徒.
    """
    one, other = _less(item, old, message, new), _less(message, new, item, old)
    return one, _less(message, new, item, one) if one != old else other


def _less(text: str, span: Span, beside: str, its: Span) -> Span:
    """The span without what it begins with and what ends just before `its`, and the other way."""
    tokens = [
        Span(span.start + found.start(), span.start + found.end())
        for found in _TOKEN.finditer(text[slice(*span)])
    ]
    before = [found[0].casefold() for found in _TOKEN.finditer(beside[: its.start])]
    behind = [found[0].casefold() for found in _TOKEN.finditer(beside[its.end :])]
    words = [_bare(text[slice(*token)]) for token in tokens]
    first = max(
        (n for n in range(len(tokens)) if n and words[:n] == [_bare(w) for w in before[-n:]]),
        default=0,
    )
    last = max(
        (n for n in range(len(tokens)) if n and words[-n:] == [_bare(w) for w in behind[:n]]),
        default=0,
    )
    left = tokens[first : len(tokens) - last]
    return Span(left[0].start, left[-1].end) if left else span


def _bare(word: str) -> str:
    return word.casefold().strip(_EDGES)


def _of_one_form(item: str, old: Span, new: str) -> Span:
    """Of 尾号6620 for 6602 the number, of 十二间 for 十一 what counts, of 两个哥哥 for 弟弟 who."""
    value = item[slice(*old)]
    if re.fullmatch(_NUMBER, new):
        if found := re.fullmatch(rf"{_HAN}*?({_NUMBER})", value):
            return Span(old.start + found.start(1), old.end)
        if found := re.fullmatch(rf"({_NUMBER}){_HAN}", value):
            return Span(old.start, old.start + found.end(1))
    counted = _COUNTED.match(value)
    if counted is not None and not _COUNTS.search(new):
        return Span(old.start + counted.end(), old.end)
    return old


def _without_what_stays(item: str, old: Span, message: str, new: Span) -> Span:
    """Without a name at its end of which the message says that it is right: "Voss is right"."""
    words = list(re.finditer(r"[^\W\d_][\w'’-]*", item[slice(*old)]))
    if len(words) < 2 or words[-1].end() != old.end - old.start:
        return old
    rest = message[new.end :]
    if not re.search(rf"\b{re.escape(words[-1][0])}{_STAYS}", rest, re.IGNORECASE):
        return old
    if re.search(rf"\b{re.escape(words[-2][0])}\b", rest, re.IGNORECASE):
        return old
    return Span(old.start, old.start + words[-2].end())


def _counts(text: str, span: Span) -> bool:
    """Whether a value has a number; a day of the week has none."""
    value = text[slice(*span)]
    if text[: span.start].endswith(("周", "星期", "礼拜")):
        value = value[1:]
    return _COUNTS.search(_WEEKDAY.sub("", value)) is not None
