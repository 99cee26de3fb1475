"""Two values of an item that a message says were taken for each other: "gah, other way round".

    User's twins: Idris plays cello and Noor does judo.
    ->  User's twins: Noor plays cello and Idris does judo.

Invariant: the item keeps every word and only two of its stretches change places, or the answer is
None: where it does not say two things of two. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.manager.past import parts_of
from memograd.memory.reader.person_chinese import KIN
from memograd.memory.statements.value_types import TYPES

LONGEST: Final = 60  # characters; what goes on longer says itself what is right
_SWAPS: Final = re.compile(
    r"\b(?:other way (?:a?round|about)|wrong way (?:a?round|about)|vice versa|back to front"
    r"|(?:mixed|muddled|switched|swapped|crossed) (?:them|these|those|the two|both)"
    r"(?: (?:up|round|around|over))?"
    r"|(?:got|have|had) (?:them|these|those|the two|both) (?:mixed(?: up)?|muddled(?: up)?"
    r"|backwards?|reversed|swapped|switched|crossed)"
    r"|(?:swap|switch|flip|reverse) (?:them|those|these|the two)(?: (?:a?round|over))?"
    r"|(?:it'?s|that'?s|is|was) (?:reversed|backwards|swapped|flipped))\b"
    r"|[说說记記写寫搞弄讲講](?:刚好|正好|全)?(?:[反倒]|颠倒|顛倒)了?"
    r"|(?:刚好|正好|^\W*(?:[哎呀额呃啊哦]+\W*)?)(?:(?:相?反|颠倒|顛倒|倒过来)了?)+\W*$"
    r"|反过来|反過來|倒过来才对|[对對互调調][换換]一?下|(?:俩|两个|兩個)[^，,。]{0,3}(?:[反混]了|[换換]过来|颠倒)",
    re.IGNORECASE,
)
_PAIRS: Final = (
    "older|younger elder|younger oldest|youngest eldest|youngest big|little bigger|smaller"
    " first|second left|right morning|evening upstairs|downstairs brother|sister mum|dad mom|dad"
    " mother|father son|daughter husband|wife boy|girl inside|outside front|back"
    " weekdays|weekends summer|winter cat|dog"
    " 老大|老二 哥哥|弟弟 哥哥|妹妹 姐姐|弟弟 姐姐|妹妹 哥|弟 姐|妹 大的|小的"
    " 大儿子|小儿子 大女儿|小女儿 儿子|女儿 爸爸|妈妈 爸|妈 爷爷|奶奶 外公|外婆 爷|奶 左|右"
    " 上午|下午 早上|晚上 楼上|楼下 公公|婆婆 老公|老婆 夏天|冬天 周中|周末 前面|后面 猫|狗"
)
_KIN: Final = (
    r"(?i:mum|mom|mother|dad|father|son|daughter|brother|sister|husband|wife|partner|uncle|aunt|cousin"
    r"|nephew|niece|gran(?:ny|dma|dad|dpa|ny)?|nan|boss|flatmate|roommate|boyfriend|girlfriend)"
)
_NAME: Final = re.compile(
    rf"(?<![\w'’])(?!User\b|I\b|(?:{_KIN})\b)[A-Z][a-z][\w’-]*(?:'(?!s\b)\w+)?"
)
_IS_CALLED: Final = re.compile(r"(?: is|'s)?(?: called| named)? ")
_NICKNAME: Final = re.compile("[小老阿大][\u4e00-\u9fff](?![\u4e00-\u9fff]?[的岁])")


def asks_to_swap(message: str) -> bool:
    """Whether a short message says that two things were taken for each other."""
    return len(message) <= LONGEST and _SWAPS.search(message) is not None


def swapped(text: str) -> str | None:
    """The item with two names, two words of a pair or two values of one type in each other's place;
    None where it has no two of them, or where it is not clear which are meant.

    The names stand in two clauses: "Tom lives in Leeds" has no two to swap.
    """
    parts = [span for span in _parts(text) if span[0] < span[1]]
    if len(parts) != 2:
        return None
    names = [[m.span() for m in _NAME.finditer(text, *part)] for part in parts]
    pair = _pair_in(text)
    if all(len(found) == 1 for found in names):
        subjects = [found[0] for found in names]
        if pair is not None:
            between = [text[word[1] : name[0]] for word, name in zip(pair, subjects, strict=True)]
            if between == [" ", " "]:  # "my son Tom likes trains": who it is goes with the name
                subjects = [(word[0], name[1]) for word, name in zip(pair, subjects, strict=True)]
            elif not all(_IS_CALLED.fullmatch(one) for one in between):
                return None
        return _swapped_words(text, subjects)
    if all(len(found) == 2 for found in names):  # who, and where or with whom
        return _swapped_words(text, [found[1] for found in names])
    if any(names):
        return None
    nicknames = [m.span() for m in _NICKNAME.finditer(text)]
    return _swapped_words(text, pair or nicknames) or _of_one_type(text)


def swapped_between(one: str, other: str) -> tuple[str, str] | None:
    """The same of two statements, of which each tells of one: 我妈属龙 and 我爸属虎."""
    joint = "; "
    if joint in one or joint in other:
        return None
    first, second = one.rstrip(" .。"), other.rstrip(" .。")
    both = swapped(f"{first}{joint}{second}")
    if both is None or both.count(joint) != 1:
        return None
    told = both.split(joint)
    return told[0] + one[len(first) :], told[1] + other[len(second) :]


def _parts(text: str) -> list[tuple[int, int]]:
    spans, start = [], 0
    for part, joint in parts_of(text):
        spans.append((start, start + len(part)))
        start += len(part) + len(joint)
    return spans


def _pair_in(text: str) -> list[tuple[int, int]] | None:
    """The places of two words of one pair, or of two people, in the order of the text."""
    for pair in _PAIRS.split():
        found = []
        for word in pair.split("|"):
            edge = r"\b" if word.isascii() else ""
            found.append(
                [m.span() for m in re.finditer(f"{edge}{word}{edge}", text, re.IGNORECASE)]
            )
        if all(len(places) == 1 for places in found):
            return sorted(places[0] for places in found)
    kin = [m.span() for m in re.finditer(rf"\b{_KIN}\b|{KIN}", text)]
    return kin if len(kin) == 2 else None


def _of_one_type(text: str) -> str | None:
    rest = text
    for pattern in TYPES:
        places = [m.span() for m in pattern.finditer(rest)]
        if len(places) == 2:
            return _swapped_words(text, places)
        rest = pattern.sub(lambda m: " " * len(m[0]), rest)
    return None


def _swapped_words(text: str, places: list[tuple[int, int]]) -> str | None:
    if len(places) != 2:
        return None
    (a, b), (c, d) = sorted(places)
    if b > c or text[a:b].casefold() == text[c:d].casefold():
        return None
    return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]
