"""Who "she" is: the person of the user's that a sentence speaks of and only points at.

    My wife Luz bought a cooler. She's from El Salvador.     my wife Luz
    我妈5月来住。她61，退休会计。                              我妈

A stranger who reads "She's from El Salvador" alone knows nothing. A relation ("my wife") says whose
person it is and mostly whether she or he, so a pronoun at the head of a sentence is resolved where
one such person alone was spoken of: earlier in the message, or else in the one before it.

Invariant: nobody is named where two may be meant. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memograd.memory.language import language_of

_HER: Final = (
    "wife|mum|mom|mother|sister|daughter|girlfriend|aunt|auntie|gran|nan|nana|grandma|grandmother"
    "|niece|granddaughter|girl|mother-in-law|sister-in-law|daughter-in-law|ex-wife|landlady|stepmum"
    "|stepmother|stepdaughter"
)
_HIM: Final = (
    "husband|dad|father|brother|son|boyfriend|uncle|grandad|granddad|grandpa|grandfather|nephew"
    "|grandson|boy|lad|father-in-law|brother-in-law|son-in-law|ex-husband|landlord|stepdad|stepfather|stepson"
)
_EITHER: Final = (
    "partner|friend|mate|boss|manager|colleague|coworker|co-worker|roommate|flatmate|housemate"
    "|neighbour|neighbor|cousin|baby|kid|child|fiancée|fiancé|fiance|fiancee|ex|teacher|tutor|coach"
    "|therapist|doctor|dentist|mentor|supervisor|assistant|client|student"
)
_PERSON: Final = re.compile(
    r"\b(?P<whose>my|our) (?:[a-z]+ ){0,2}?"
    rf"(?:(?P<her>{_HER})|(?P<him>{_HIM})|(?P<either>{_EITHER}))(?![\w'’-])"
    r"(?:,? (?-i:(?P<name>[A-Z][a-z]+)))?",
    re.IGNORECASE,
)
_HEAD: Final = re.compile(r"(?:(?P<her>she|her)|(?P<him>he|his))(?=['’ ])(?! or\b)", re.IGNORECASE)
# A name that is no place: "met Anna", but not "in Omaha" or "the Alpicool".
_NAMED: Final = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?=[\s,.!?;:'’]|$)")
_NO_PERSON: Final = re.compile(
    r"(?:\b(?:in|at|from|to|the|a|an|on|of|near|called|like|for|since|by|this|next|last|every)"
    r"|[.!?:]) $",
    re.IGNORECASE,
)

_HER_ZH: Final = (
    "妈妈|妈|母亲|老婆|妻子|媳妇|女朋友|女友|姐姐|姐|妹妹|妹|女儿|闺女|奶奶|外婆|姥姥|阿姨|姑姑|姑妈|姨妈|舅妈|婶婶"
    "|嫂子|岳母|婆婆|闺蜜|表姐|表妹|堂姐|堂妹|侄女|外甥女|孙女"
)
_HIM_ZH: Final = (
    "爸爸|爸|父亲|老公|丈夫|男朋友|男友|哥哥|哥|弟弟|弟|儿子|爷爷|外公|姥爷|叔叔|舅舅|伯父|伯伯|岳父|公公|姐夫|妹夫"
    "|表哥|表弟|堂哥|堂弟|侄子|外甥|孙子"
)
_EITHER_ZH: Final = (
    "老板|领导|上司|同事|室友|邻居|导师|老师|房东|朋友|同学|徒弟|师傅|客户|教练|爱人|对象|孩子"
)
_PERSON_ZH: Final = re.compile(
    r"(?:我们?|俺|咱)(?:家|的)?(?:大|小|二)?"
    rf"(?:(?P<her>{_HER_ZH})|(?P<him>{_HIM_ZH})|(?P<either>{_EITHER_ZH}))"
)
_WITH_ZH: Final = re.compile(r"[和跟与與同、](?=$|[^，,。]{1,4})")
_HEAD_ZH: Final = re.compile(r"(?:(?P<her>她)|(?P<him>他))(?!们)")


def person_meant(sentence: str, earlier: str, message_before: str) -> str | None:
    """Whom the pronoun at the head of the sentence means, in the speaker's words ("my wife Luz").

    earlier: the message up to the sentence. message_before: what the same person said before it.
    None where the sentence begins with no pronoun, or where nobody or more than one is possible.
    """
    chinese = language_of(sentence) == "zh"
    head = (_HEAD_ZH if chinese else _HEAD).match(sentence.lstrip())
    if head is None:
        return None
    kind = "her" if head["her"] else "him"
    for text in (earlier, message_before):
        people = list(_people(text, kind, chinese=chinese))
        if people:
            return people[0] if len(set(people)) == 1 else None
        if (_PERSON_ZH if chinese else _PERSON).search(text):
            return None  # of whoever was spoken of last, the pronoun cannot speak
    return None


def _people(text: str, kind: str, *, chinese: bool) -> Iterator[str]:
    """The people of the user's who may be meant, each as often as it was named."""
    if chinese:
        for found in _PERSON_ZH.finditer(text):
            if found[kind] or found["either"]:
                yield found[0]
                if _WITH_ZH.search(text[: found.start()]) or _WITH_ZH.match(text[found.end() :]):
                    yield ""  # 晓蕾和我妈: the other one may be meant
        return
    for found in _PERSON.finditer(text):
        if not (found[kind] or found["either"]):
            continue
        named = [
            other[0]
            for other in _NAMED.finditer(text, found.end())
            if other[0] != found["name"] and not _NO_PERSON.search(text[: other.start()])
        ]
        yield found[0]
        yield from named  # somebody else who may be meant
