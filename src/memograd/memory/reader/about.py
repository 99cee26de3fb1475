"""Who "she" is: the person of the user's that a sentence speaks of and only points at.

    My wife Luz bought a cooler. She's from El Salvador.     my wife Luz
    我妈5月来住。她61，退休会计。                              我妈

    Declan's packed in the boats. He's starting with Translink.     Declan
    小蒋下个月结婚。她说蜜月去三亚。                          小蒋

A stranger who reads "She's from El Salvador" alone knows nothing. A relation ("my wife") says whose
person it is and mostly whether she or he; a name, a title or a calling ("the physio") says who. A
pronoun at the head of a sentence is resolved where one such person or animal alone was spoken of:
earlier in the message, or else in the one before it.

Invariant: nobody is named where two may be meant. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

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
# "His daughter Philippa", "Garth's boy Colt": somebody else's, so that the name says who.
_OTHERS: Final = re.compile(
    rf"\b(?:his|her|their|[A-Z]\w+['’]s|a|the) (?:[a-z]+ ){{0,2}}?"
    rf"(?:(?P<her>{_HER}|woman|lady)|(?P<him>{_HIM}|man|guy|fella|bloke)|(?P<either>{_EITHER}|dog"
    rf"|cat|horse"
    r"|hamster|puppy|kitten))(?: called| named|,? name of|,)? (?-i:(?P<name>[A-Z][a-z]+))",
    re.IGNORECASE,
)
_TITLED: Final = re.compile(
    r"\b(?P<name>(?:(?P<her>Mrs|Ms|Miss)|(?P<him>Mr)|(?P<either>Dr|Prof|Professor))\.? [A-Z][a-z]+)"
)
_CALLING: Final = re.compile(
    r"\b(?P<name>(?:the|a|an|that|this) (?:(?!my|our)[a-z]+ )?(?:doctor|physio\w*|surgeon|nurse"
    r"|neurologist"
    r"|dentist|vet|optician|therapist|tutor|teacher|boss|manager|landlord|plumber|electrician"
    r"|conductor"
    r"|mechanic|builder|agent|lawyer|solicitor|(?P<her>landlady|girl|woman|lady)|(?P<him>boy|man"
    r"|guy|fella|bloke"
    r"|lad)))(?![\w'’-])(?! (?:called|named)\b)",
    re.IGNORECASE,
)
# A name that is no place: "met Anna", but not "in Omaha" or "the Alpicool".
_NAMED: Final = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?=[\s,.!?;:'’]|$)")
_NO_PERSON: Final = re.compile(
    r"(?:\b(?:in|at|from|to|the|a|an|on|of|near|like|for|since|by|this|next|last|every|via|into)"
    r"|[.!?:]) $",
    re.IGNORECASE,
)
# Whoever does this is a person or an animal: "Garth called", "Declan's packed in the boats".
_DOES: Final = re.compile(
    r"(?:(?:^|[.!?;:,]|\b(?:and|but|so|cos|because|that|said|says))\s+|^)(?P<name>[A-Z][a-z]{2,})"
    r"(?=(?:['’]s (?:\w+ed|\w+ing|got|gone|not|been|a|an|my|our|off|put|in|\d+)\b"
    r"| (?:(?:just|also|only|has|had|is|was) )?(?:says?|said|told|called|rang|phoned|wants?|wanted"
    r"|got|had|has"
    r"|took|takes|lives?|lived|works?|worked|likes?|liked|loves?|hates?|thinks?|reckons?|bought"
    r"|quit|left|died"
    r"|came|come|went|moved|started|starts|passed|failed|retired|married|expecting|pregnant|gave"
    r"|asked|made|broke"
    r"|lost|won|ran|fell|put|threw|turned|turns|teaches|studies|owes|plays|plans|hauled|brought"
    r"|proposed)\b))"
)
_NO_NAME_WORDS: Final = """
    i we he she it they you this that there the a an my our his her their its and but or
    so if when while after before because since also then now just not no yes yeah still
    already never finally what who where how why which some somebody someone everyone
    nobody monday tuesday wednesday thursday friday saturday sunday january february march
    april may june july august september october november december work school god doctor
    everything nothing something anyway today tomorrow yesterday tonight life money time
    traffic weather truck car house christmas easter hes shes
"""
_NO_NAMES: Final = frozenset(_NO_NAME_WORDS.split())


class _Person(NamedTuple):
    said: str  # as the speaker words it
    name: str
    her: bool
    him: bool


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
_NAME_ZH: Final = (
    r"(?:[小老阿](?![大二三四五六七八时心区学孩吃火组程红说声家师板是公婆伴头大伙鼠虎姨年人百姓实早鸡猫狗拉])[\u4e00-\u9fff](?=[其也就都下上这那个说去来要想在"
    r"是有把被跟和结怀离生转提回刚已还又不没今明昨，,。！!？?、的]|$)"
    r"|(?P<twice>[\u4e00-\u9fff])(?<![天刚慢常偷好早哈人妈爸哥姐弟妹爷奶叔婶舅姑姨公婆太宝星谢试看想说聊等多少久年月日次个处家事样时往渐仅])(?P=twice))"
)
_PERSON_ZH: Final = re.compile(
    r"(?:我们?|俺|咱)(?:家|的)?(?:大|小|二)?"
    rf"(?:(?P<her>{_HER_ZH})|(?P<him>{_HIM_ZH})|(?P<either>{_EITHER_ZH}))(?P<name>{_NAME_ZH})?"
)
_NAMED_ZH: Final = re.compile(
    rf"(?:我家|[叫猫狗事娃]|(?<![\u4e00-\u9fff])|(?<=[，,。！!？? 送跟和给带对])){_NAME_ZH}"
)
_BARE_ZH: Final = re.compile(r"^(?:我家|[叫猫狗事娃])")
_WITH_ZH: Final = re.compile(r"[和跟与與同、](?=$|[^，,。]{1,4})")
_HEAD_ZH: Final = re.compile(r"(?:(?P<her>她)|(?P<him>他))(?![们們俩倆])")


def person_meant(sentence: str, earlier: str, message_before: str) -> str | None:
    """Whom the pronoun at the head of the sentence means, in the speaker's words ("my wife Luz").

    earlier: the message up to the sentence. message_before: what the same person said before it.
    None where the sentence begins with no pronoun, or where nobody or more than one is possible.
    """
    chinese = language_of(sentence) == "zh"
    head = (_HEAD_ZH if chinese else _HEAD).match(sentence.lstrip())
    if head is None:
        return None
    for text in (earlier, message_before):
        people = _people_zh(text) if chinese else _people(text)
        meant = [one for one in people if (one.her if head["her"] else one.him)]
        if meant:
            return meant[0].said if len({one.name for one in meant}) == 1 else None
        if people:
            return None  # of whoever was spoken of last, the pronoun cannot speak
    return None


def _people(text: str) -> list[_Person]:
    """The people and animals that are spoken of, each under one name however it is worded."""
    found: list[_Person] = []
    callings: list[_Person] = []
    for pattern in (_PERSON, _OTHERS, _TITLED, _CALLING, _DOES):
        for one in pattern.finditer(text):
            parts = one.groupdict()
            name = parts.get("name") or one[0]
            if name.casefold() in _NO_NAMES:
                continue
            her, him = bool(parts.get("her")), bool(parts.get("him"))
            said = one[0] if pattern is _PERSON else name
            person = _Person(said, name, her or not him, him or not her)
            (callings if pattern is _CALLING else found).append(person)
    if not any(_TITLED.fullmatch(one.name) for one in found):
        found += callings  # "We saw the neurologist. Dr Abernethy." is one person
    known = {word for one in found for word in one.name.split()}
    first = next(iter(_PERSON.finditer(text)), None)
    for other in _NAMED.finditer(text, first.end() if first else 0):
        if other[0] in known or other[0].casefold() in _NO_NAMES:
            continue
        if not _NO_PERSON.search(text[: other.start()]):
            found.append(_Person(other[0], other[0], her=True, him=True))  # may be meant as well
    return _one_each(found)


def _people_zh(text: str) -> list[_Person]:
    found = []
    for one in _PERSON_ZH.finditer(text):
        either = bool(one["either"])
        name = one["name"] or one[0]
        found.append(_Person(one[0], name, either or bool(one["her"]), either or bool(one["him"])))
        if _WITH_ZH.search(text[: one.start()]) or _WITH_ZH.match(text[one.end() :]):
            found.append(_Person("", "", her=True, him=True))  # 晓蕾和我妈: the other one
    for one in _NAMED_ZH.finditer(text):
        name = _BARE_ZH.sub("", one[0])
        found.append(_Person(name, name, her=True, him=True))
    return _one_each(found)


def _one_each(people: list[_Person]) -> list[_Person]:
    """Each once: somebody with a sex known from a relation or a title is so under the bare name."""
    kept: list[_Person] = []
    for one in people:
        same = [
            other for other in kept if one.name and one.name in [*other.name.split(), other.name]
        ]
        if not same:
            kept.append(one)
    return kept
