"""A question that calls the user by name asks about "the user", as memories do.

Readers write "User drives a Corolla" and "User's name is Harold Cribby.", so the name in "What car
does Harold drive?" matches that one memory and no other, whatever is asked. Once a hit says that
this is the user's name, the question is asked again with "the user" (用户) in its place.

Invariants: a name that any other hit says tells memories apart and stays; so does one that is an
everyday word there, and a question that asks for nothing but the name. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memograd.memory.analysis import analyse
from memograd.memory.language import simplified
from memograd.memory.records.turns import MONTHS
from memograd.memory.search.ranker.question import telling
from memograd.memory.statements import parse_statement

_USERS: Final = {"User": "the user", "用户": "用户"}
_HAN: Final = r"[\u4e00-\u9fff]"
_LATIN: Final = r"[A-Za-zÀ-ɏ0-9_]"
_TELLS_A_NAME: Final = re.compile(r"User.{1,20}\b(?:name|called)\b|用户.{0,4}[叫名]")
_NOTE: Final = re.compile(r" \(.*\)|（.*）", re.S)
_ENGLISH: Final = re.compile(r"[A-ZÀ-Þ][\w'’-]+(?: [A-ZÀ-Þ][\w'’.-]*){0,3}")
_CHINESE: Final = re.compile(r"[\u4e00-\u9fff]{2,3}|[\u4e00-\u9fff·]{4,8}")
_SURNAMES: Final = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩冯邓曹彭曾萧田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈"
    "姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤"
)
_ASKED: Final = re.compile(r"who|what|name|call|谁|什么|名字?|叫|是")


def own_name(text: str) -> str | None:
    """The name that a memory says the user has, in simplified characters; None where it says
    none."""
    text = simplified(text)
    if _TELLS_A_NAME.match(text) is None:
        return None  # seen at once, where a statement takes longer to understand
    statement = parse_statement(_NOTE.sub("", text))
    if statement is None or statement.slot != "name" or statement.subject not in _USERS:
        return None
    name = statement.value.strip(" .。")
    if statement.ended or not statement.positive or name in MONTHS:
        return None
    if _ENGLISH.fullmatch(name):
        return name
    chinese = _CHINESE.fullmatch(name) and (len(name) > 3 or name[0] in _SURNAMES)
    return name if chinese else None


def asked_of_the_user(question: str, found: Sequence[str]) -> str | None:
    """The question with "the user" for the user's name; None where it stays as it is.

    found: the memories that the question found as it stands, which must be of one user.
    """
    plain = simplified(question)  # character for character
    for text in found:
        if (name := own_name(text)) is None:
            continue
        said = _spelled(name)
        others = [simplified(other) for other in found if own_name(other) != name]
        places = [one.span() for one in said.finditer(plain)]
        if not places or any(said.search(other) for other in others):
            continue
        user = next(
            word for subject, word in _USERS.items() if simplified(text).startswith(subject)
        )
        asked = question
        for start, end in reversed(places):
            asked = asked[:start] + user + asked[end:]
        if any(not _ASKED.fullmatch(term) for term in telling(analyse(asked))):
            return asked
    return None


def _spelled(name: str) -> re.Pattern[str]:
    """The whole name, or the first name alone: with a family name of another it is another's.

    A first word without 's may be an everyday one ("Will it rain?"). A Chinese character ends a
    word in Latin letters.
    """
    if _CHINESE.fullmatch(name):
        return re.compile(re.escape(name))
    first, *more = map(re.escape, name.split())
    whole = rf"(?<!{_LATIN}){' '.join([first, *more])}(?!{_LATIN})"
    alone = (
        rf"(?:(?<=\w )|(?<=[,;] ))(?<![A-Z][a-z] )\b{first}(?!{_LATIN})(?! [A-Z])"
        rf"|^{first}(?=['’]s\b|{_HAN})|(?<={_HAN}){first}(?!{_LATIN})"
    )
    return re.compile(f"{whole}|{alone}" if more else alone)
