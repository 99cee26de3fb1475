"""A corrected value put into the statement that had the wrong one: "wait, 580" into "Rent is 540".

Only where it is beyond doubt which value is meant: the statement has one value of that type (a
number, a time, a weekday, a month, a name spelt almost alike) and the message has one other.

Invariant: only the one value changes, or the answer is None. Pure functions.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final

_DAYS = "mon|tues?|wednes|thurs?|fri|satur|sun"
_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
_NUMBER_WORDS = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty"
    "|first|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
)
_ZH = "零〇一二两三四五六七八九十百千"
# In this order: what one type has taken, the next ones do not see.
TYPES: Final = (
    re.compile(
        rf"(?<!\w)\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?:{_MONTHS})\b(?: \d{{4}})?"
        rf"|\b(?:{_MONTHS}) \d{{1,2}}(?:st|nd|rd|th)?(?!\d)(?:,? \d{{4}})?"
        r"|(?<!\d)\d{4}-\d\d-\d\d(?!\d)"
        rf"|(?:\d{{4}}年)?[\d{_ZH}]{{1,3}}月[\d{_ZH}]{{1,3}}[日号]?",
        re.I,
    ),
    re.compile(
        r"(?<![\d.])\d{1,2}[:.：]\d{2}(?!\.?\d)(?: ?[ap]\.?m\b\.?)?|(?<!\d)\d{1,2} ?[ap]\.?m\b\.?"
        rf"|[上下]午[\d{_ZH}]{{1,3}}点半?|[\d{_ZH}]{{1,3}}点(?:半|[\d{_ZH}]{{1,3}}分?)?",
        re.I,
    ),
    re.compile(rf"\b(?:{_DAYS})(?:day)?\b|(?:周|星期|礼拜)[一二三四五六日天]", re.I),
    re.compile(r"\+?\d[\d\-]*(?: [\d\-]+)+"),
    re.compile(
        r"\+?\d[\d,.\-]*\d(?:k\b|th\b|st\b|nd\b|rd\b)?|\d+(?:k\b|st\b|nd\b|rd\b|th\b)?"
        rf"|\b(?:{_NUMBER_WORDS})\b",
        re.I,
    ),
    re.compile(rf"[{_ZH}]{{1,5}}(?=[个岁年月天号楼层元块万公斤只辆])"),
)
_NEGATED: Final = re.compile(
    r"(?:\bnot|\bnever|isn't|n't|instead of|rather than|不是|而不是|并非)\s*$", re.I
)
_WORD: Final = re.compile(r"[^\W\d_][\w'’-]*")
LONGEST: Final = 140  # characters; what goes on longer says more than a value


def corrected(old: str, message: str) -> str | None:
    """The statement with the value that the message gives instead, None where that is in doubt."""
    if len(message) > LONGEST:
        return None
    told = _instead(old, message)
    if told:
        return told
    rest_old, rest_new = old, message
    for pattern in TYPES:
        mine = [m for m in pattern.finditer(rest_old)]
        its = [m for m in pattern.finditer(rest_new)]
        known = {_plain(m[0]) for m in mine}
        new = [
            m
            for m in its
            if _plain(m[0]) not in known and not _NEGATED.search(rest_new[: m.start()])
        ]
        if len(mine) == 1 and len(new) == 1:
            return _put(old, mine[0].span(), new[0][0].strip())
        named = [m for m in mine if _plain(m[0]) in {_plain(n[0]) for n in its}]
        if len(named) == 1 and len(new) == 1:  # "7.20, not 6.20"
            return _put(old, named[0].span(), new[0][0].strip())
        rest_old = pattern.sub(lambda m: " " * len(m[0]), rest_old)
        rest_new = pattern.sub(lambda m: " " * len(m[0]), rest_new)
    return _respelt(old, message)


def _instead(old: str, message: str) -> str | None:
    """ "Tuesday, not Monday", "not Anna, Hanna", 不是上海是深圳: where the old one is named."""
    bare = message.strip(" .!。！*~")
    for pattern in (
        r"(?:^|[,.;:] |\bit's |\bi mean(?:t)? "
        r"|\bis )(?P<new>[\w'’ -]{1,30}?),? not (?P<old>[\w'’ -]{1,30})$",
        r"\b(?P<new>[\w'’-]+),? not (?:an? |the )?(?P<old>[\w'’-]+)\b",
        r"\bnot (?P<old>[\w'’-]{1,25}(?: [\w'’-]+)?),? (?:but |it's |i meant? "
        r"|- )?(?P<new>[\w'’ -]{1,30})$",
        r"不是(?P<old>[^，,。]{1,10}?)[，,]?(?:而?是|应该是)(?P<new>[^，,。！!的了啦哈啊]{1,10})",
        r"(?:是|应该是)(?P<new>[^，,。]{1,10}?)[，,]?(?:不是|而不是)(?P<old>[^，,。！!]{1,10})",
    ):
        for found in re.finditer(pattern, bare, re.I):
            at = old.casefold().find(found["old"].strip().casefold())
            if at >= 0 and found["new"].strip():
                return _put(old, (at, at + len(found["old"].strip())), found["new"].strip())
    return None


def _respelt(old: str, message: str) -> str | None:
    """A name that the message spells a little differently."""
    known = {word.casefold() for word in _WORD.findall(old)}
    found = []
    for written in _WORD.findall(message):
        new = re.sub(r"['’]s?$", "", written)
        plain = not new[0].isupper() and f"{new}*" not in message and f"*{new}" not in message
        if len(new) < (6 if plain else 4) or new.casefold() in known or new.casefold() in _COMMON:
            continue
        starred = f"{new}*" in message or f"*{new}" in message
        for mine in _WORD.finditer(old):
            was = re.sub(r"['’]s?$", "", mine[0])
            named = was[0].isupper() or len(was) > 4
            alike = SequenceMatcher(None, new.casefold(), was.casefold()).ratio()
            first = message.strip(" *").startswith(new) and len(new) > 5
            if alike >= (0.6 if starred or first else 0.75) and named and was.casefold() != "user":
                found.append((alike, (mine.start(), mine.start() + len(was)), new))
    if found:
        _, span, new = max(found)
        return None if new.casefold() == old[slice(*span)].casefold() else _put(old, span, new)
    return _renamed(old, message) or _respelt_chinese(old, message)


def _renamed(old: str, message: str) -> str | None:
    """The name that a message begins with, for the only name in the statement: "Wick. Sorry"."""
    names = [m for m in _NAMES.finditer(old) if m.start() and m[0] not in ("User", "I")]
    bare = _FILLERS.sub("", message.strip())
    said = re.match(r"(?P<new>[A-Z][\w'-]+(?: [A-Z][\w'-]+){0,2})(?=[.,!?;]| they| is\b|$)", bare)
    if len(names) != 1 or said is None or said["new"].casefold() in old.casefold():
        return None
    new = said["new"].title() if said["new"].isupper() and len(said["new"]) > 3 else said["new"]
    return _put(old, names[0].span(), new)


_NAMES: Final = re.compile(r"[A-Z][\w'-]*[\w](?: [A-Z][\w'-]+)*")
_FILLERS: Final = re.compile(
    r"^(?:\W*\b(?:no|nah|nope|well|sorry|actually|h+m+|hang on|wait|i mean|i lied?|my bad|ah|oh"
    r"|argh|oops"
    r"|correction|not \w+|it'?s|is|make that|in fact|dad says|mum says|she says"
    r"|he says)\b[\s,.!:-]*)+",
    re.I,
)


def _respelt_chinese(old: str, message: str) -> str | None:
    """梓轩 for 子轩: the first words of the message, of which half stand in the statement."""
    said = re.match(
        r"\W*(?:是|叫|应该是|不对是?)?(?P<new>[\u4e00-\u9fff]{2,4}?)(?:才对|[，,。!！ ]|$)", message
    )
    if said is None or said["new"] in old or "错" in said["new"]:
        return None
    new = said["new"]
    for at in range(len(old) - len(new), -1, -1):
        was = old[at : at + len(new)]
        if sum(a == b for a, b in zip(was, new, strict=True)) * 2 >= len(new):
            return _put(old, (at, at + len(new)), new)
    return None


_COMMON: Final = frozenset(
    [
        "that",
        "with",
        "name",
        "spelt",
        "spelled",
        "typo",
        "sorry",
        "mean",
        "actually",
        "wait",
        "user",
    ]
)


def _plain(value: str) -> str:
    return re.sub(r"[\s,.:]|(?<=\d) ?[ap]\.?m\.?$", "", value.casefold()).removesuffix("day")


def _put(text: str, span: tuple[int, int], value: str) -> str:
    head = text[: span[0]]
    return head + (value[:1].upper() + value[1:] if not head else value) + text[span[1] :]
