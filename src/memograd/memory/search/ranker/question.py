"""What a question asks for, as far as its wording tells: whom, when, how many, the latest or first.

English and Chinese, by patterns over the first 2,000 characters. Invariant: a function of the text,
the moment it is asked, and the names and years that the memory knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memograd.memory.analysis import ENGLISH_STOP_WORDS
from memograd.memory.language import simplified
from memograd.memory.search.ranker.asked_dates import MONTHS, Span, spans_of
from memograd.memory.state.columns import ASSISTANTS, MACHINES, USERS

READ: Final = 2000

KINDS: Final = {
    "when": r"\bwhen\b|\b(?:what|which) (?:date|day|month|year|time|season)\b|how long ago"
    r"|什么时候|几点|几号|哪[天年月]|几月|何时|时间|日期|多久|周几|星期几|礼拜几",
    "count": r"\bhow (?:many|much|often|old|long|far|big)\b|\btotal\b"
    r"|多少|(?<![前这好])几[个次岁位只本家条种天周年人块杯张件辆名门层](?!前)|多[大高重长远]|总共|一共|数量",
    "who": r"\bwho(?:m|se)?\b|\bname of\b|谁|哪位|叫什么|名字",
    "where": r"\bwhere\b|\b(?:what|which) (?:city|country|place|town|state|restaurant|store)\b"
    r"|哪里|哪儿|在哪|地点|地方|地址|哪个?[省市城]|哪家|哪所",
    "why": r"\bwhy\b|\breason\b|\bhow come\b|为什么|为何|原因",
    "pref": r"\b(?:recommend|suggest|suggestions|advice|tips|ideas?|should i|any)\b|推荐|建议",
    "you": r"\byou (?:\w+ )?(?:recommend|suggest|mention|t[oe]ll|told|said|say|gave|give|provide"
    r"|list|explain|describ|advis|wrote|write|propos|show|share|point|creat|generat|us(?:ed|e)\b)"
    r"|\b(?:did|have|had|were|would) you\b"
    r"|\byour (?:recommend|suggest|answer|list|advice|response|explan|previous)"
    r"|\bremind me (?:what|of|how|about)?"
    r"|(?:our|previous) (?:previous |last |earlier )?(?:conversation|chat|discussion)"
    r"|the assistant|[你您](?:\w{0,4})?(?:推荐|建议|说|提到|告诉|给我|介绍|列|写|讲)|助手",
    "me": r"\b(?:i|my|me|i've|i'm|mine|we|our|us|the user|user's|user)\b|我|用户",
    "now": r"\b(?:current|currently|now|latest|most recent|recent|recently|still|these days"
    r"|at the moment|last time|last)\b|现在|目前|最近|最新|如今|还在|当前",
    "first": r"\b(?:first|originally|initially|initial|previous|previously|before|used to|earliest"
    r"|formerly)\b|第一次|最初|原来|以前|之前|最早",
    "did": r"\b(?:did|was|were|had)\b|了|过|当时|那次|那天|曾",
}
_KINDS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in KINDS.items()}


@dataclass(frozen=True, slots=True)
class QuestionCues:
    """asks: the kinds it is of. named: speakers that it names. spans: [from, to) that it names."""

    asks: frozenset[str]
    named: frozenset[str]
    spans: tuple[Span, ...]


_SUBJECT: Final = frozenset({"user", "用户"})


def telling(terms: Sequence[str]) -> Sequence[str]:
    """The terms of a question that tell items apart: nearly all of them say "the user".

    None where it has no other one ("What does the user do?"), and then meaning alone tells.
    """
    return [term for term in terms if term not in _SUBJECT]


def read_question(
    text: str, *, asked_at: datetime | None, names: Sequence[str], years: Sequence[int]
) -> QuestionCues:
    """What the question asks for. names: speakers in small letters. years: those of the turns."""
    text = simplified(text[:READ])
    named = frozenset(_named(text, names))
    dated = text.lower()
    for name in named & MONTHS.keys():  # June said it
        dated = dated.replace(name, " ")
    asked = asked_at.replace(tzinfo=None) if asked_at else None
    return QuestionCues(
        frozenset(kind for kind, pattern in _KINDS.items() if pattern.search(text)),
        named,
        tuple(spans_of(dated, asked, years)),
    )


_NOBODY: Final = ASSISTANTS | USERS | MACHINES | {""}
_TITLES: Final = frozenset({"mr", "mrs", "ms", "miss", "dr", "prof", "sir", "aunt", "uncle"})
_EVERYDAY: Final = ENGLISH_STOP_WORDS | {
    "april", "art", "august", "baker", "bill", "bishop", "brook", "cash", "chase", "cliff", "cook",
    "dawn", "dean", "drew", "faith", "frank", "ginger", "grace", "grant", "guy", "hope", "iris",
    "ivy", "joy", "june", "king", "long", "major", "mark", "may", "miles", "olive", "page", "penny",
    "price", "prince", "ray", "rich", "river", "rob", "rose", "rusty", "skip", "sky", "star", "sue",
    "summer", "sunny", "van", "violet", "will", "young",
}  # fmt: skip
"""Names that are words, too: a capital letter tells them apart, but for that of the first word."""


def _named(text: str, names: Sequence[str]) -> Iterable[str]:
    """The speakers that a question names: as a whole, or by a first name that no other has."""
    low = text.lower()
    people = [name for name in names if name not in _NOBODY]
    shorts = [_short(name) for name in people]
    for name, short in zip(people, shorts, strict=True):
        if _says(text, low, simplified(name)) or (
            short != name and shorts.count(short) == 1 and _says(text, low, simplified(short))
        ):
            yield name


def _short(name: str) -> str:
    """The first name: Caroline of Caroline Baker, 伟明 of 张伟明; the name itself if it is one."""
    first, *more = name.split() or [name]
    if more and first.strip(".") in _TITLES:
        return more[-1]
    given = len(name) == 3 and all("\u4e00" <= character <= "\u9fff" for character in name)
    return name[1:] if given else first


def _says(text: str, low: str, name: str) -> bool:
    """Whether a text holds a name as a word. low: the text in small letters."""
    if name not in low:
        return False
    if not name.isascii():
        return True
    # A Chinese character ends a word in Latin letters, and \b does not know that.
    word = re.compile(rf"(?<![a-zA-Z0-9_]){re.escape(name)}(?![a-zA-Z0-9_])", re.IGNORECASE)
    if len(name) > 1 and name not in _EVERYDAY:
        return word.search(low) is not None
    return any(
        one[0][0].isupper() and (one.start() or text[one.end() : one.end() + 2] in ("'s", "’s"))
        for one in word.finditer(text)
    )
