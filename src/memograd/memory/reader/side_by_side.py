"""The facts of a sentence that says several of who speaks.

    I take metformin and I go to Slimming World on Thursdays
    ->  I take metformin    I go to Slimming World on Thursdays

    我月薪三万二,我老婆在浦东    ->  我月薪三万二    我老婆在浦东

Each can be read, changed and forgotten without the others. Invariant: what is found stands in the
sentence in these letters; what leans on the fact before it ("and I hate it") stays with that. Pure
functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import language_of
from memograd.memory.reader.heads import has_verb
from memograd.memory.reader.parts import asks
from memograd.memory.reader.people_english import BARE_KIN
from memograd.memory.reader.person_chinese import KIN
from memograd.memory.statements.value_types import NUMERALS

_SUBJECT: Final = r"(?:i(?:['’]?(?:m|ve)|['’](?:d|ll))?|my) (?=[a-z\d])"
_LEADS_IN: Final = re.compile(r"^\W*[\w' ]{2,24}: ", re.IGNORECASE)
"""Says what follows: "Bit about me: I'm 58"."""
_DEPENDS: Final = re.compile(
    r"\W*(?:(?:hi|hey|ok|so|well|and|but|also)\b[\s,!.]*)*(?:if|when|whenever|because|cos|since|although"
    r"|though|while|whilst|as|after|before|unless|until|till|where|wherever|what|whatever|how|that"
    r"|which|who|once|every time|the (?:day|time|moment|minute|last time|first time|more|way|thing"
    r"|reason)|(?:please|can|could|would|will|should|may|let|help|write|tell|give|make|pretend"
    r"|imagine|suppose|say|assume|forget|delete|remember|remind|note)\b)\b",
    re.IGNORECASE,
)
_ANOTHER_FACT: Final = re.compile(
    r"(?:(?:[,;]| [-–—])? (?:and|n|&) (?:also )?|[,;] (?:also )?|  ?[-–—] |[^\x00-\x7f]? also )"
    rf"(?=(?:{_SUBJECT}|(?:{BARE_KIN}) (?=[a-z])|the (?:new|old) )"
    r"(?!(?:mean|guess|think|suppose|say|said|know|hope|swear|bet|reckon|wish|wonder|believe|feel"
    r"|tell|told|must (?:say|admit)|should (?:say|add)|sorry|afraid|sure|not sure"
    r"|just (?:want|need)|need|want|would|could|can(?:no|['’])t (?:see|tell|decide|wait)|bad"
    r"|fault)\b))",
    re.IGNORECASE,
)
_DOING: Final = (
    r"(?:have|own|drive|live|work|teach|play|speak|study|rent|bank|keep|grow|breed|coach|commute"
    r"|volunteer|love|hate|prefer|want|wear|take|drink|eat|smoke|sing|ride|manage|run|sell"
    r"|earn|make|owe|pay|see|visit|attend)"
)
_OBJECT: Final = (
    r"(?:an?|the|my|our|some|two|three|four|five|six|seven|eight|nine|ten|\d+|in|at|as|for|with|on"
    r"|near|from|by|nights?|part|full|every|to|(?-i:[A-Z])\w*|\w+ing)\b"
)
_AS_NOUN: Final = r"(?:love|drink|smoke|run|study|play|coach|work|rent|bank|drive|ride|wear|grow)"
"""Nouns as well: "the self-acceptance and love theme" tells of nothing that somebody does."""
_BEING: Final = (
    r"(?:\d{1,3}(?:['’]\d{1,2}| ?(?:lbs?|kg|kilos?|pounds|stone|cm)| years? old)"
    r"|(?:type (?:1|2) )?diabetic|vegan|vegetarian|coeliac|celiac|married|single|divorced|widowed"
    r"|pregnant|left-handed|retired|an? (?!bit|little|lot|few|mess|fan|while)[a-z]+(?: [a-z]+)?"
    r"|from (?-i:[A-Z])\w+|[a-z]+(?:er|or|ist|ian|nurse|clerk|chef) (?:at|for|in) \w[^,.;!]*)"
    r"(?=\s*(?:[,.;!]|$|and\b|&))"
)
_DOES_TOO: Final = re.compile(
    rf"(?:,|,? (?:and|n|&)) (?=(?!{_AS_NOUN} (?!{_OBJECT})){_DOING}"
    rf" (?!(?:and|or|that|it|is|was|are|were|of)\b)(?:(?<!want )|(?=to ))\w|{_BEING})",
    re.IGNORECASE,
)
"""Before what who speaks does, too: "I live in Leeds, work as a nurse and play the oboe"."""
_DOES_PLAINLY: Final = re.compile(
    r"\W*(?:i(?:['’]?m| am)(?!(?: \w+)?? (?:\w+ing|gonna)\b)"
    rf"|i (?:\w+ly )?{_DOING}) (?!(?:to|not)\b)",
    re.IGNORECASE,
)
_IS: Final = re.compile(rf"\W*(?:i['’]?m|i am)\b(?!(?: \w+)?? \w+ing\b)|{_BEING}", re.IGNORECASE)
_GOVERNS: Final = re.compile(
    r"\b(?:can|could|will|would|must|might|should|who|that|which|how|when|if|because|help|let"
    r"|watch|want|try|hope|plan|need|you|he|she|they|we|people|\w+ing to"
    rf"|(?:to|and|or) {_DOING})\b|['’]ll\b",
    re.IGNORECASE,
)
"""Verbs behind it may be somebody else's, or are only wanted: "I like to swim and ride"."""
_LEANS_BACK: Final = re.compile(
    r"\b(?:it|its|this|those|these|them|they|he|she|him|her|his|there|both|either|neither|too|same"
    r"|do|did|don['’]?t|didn['’]?t)\b|n['’]t(?=\W*$|[,;] )",
    re.IGNORECASE,
)
_DOES: Final = re.compile(rf"(?:(?:my|our) [a-z]+(?: [A-Z]\w+)?|{BARE_KIN}) [a-z]{{2,}}s (?=\w)")
"""My son plays football."""
_CORRECTS: Final = re.compile(
    r"(?P<value>(?:sorry|oops|no|wait|nope|hang on|correction|i meant)\b[^,.;!?]{3,40}),"
    r" (?P<more>(?:he|she|they)(?:['’](?:s|re)| is| are| has| have) (?:only |just |now )?\w.*)",
    re.IGNORECASE,
)
_OF_ME: Final = re.compile(
    rf"\b(?:i|i['’]?m|i['’]?ve|my|me|we|our)\b|^\W*(?:{BARE_KIN})\b", re.IGNORECASE
)
_OWN_PERSON: Final = re.compile(rf"(?:(?:my|our) [a-z]|(?:{BARE_KIN})\b)", re.IGNORECASE)
LEAST_TOLD: Final = 2  # words


_DEPENDS_ZH: Final = re.compile(
    "(?:如果|要是|假如|假设|假設|因为|因為|虽然|雖然|自从|自從|等|当|當|每次|只要|除非|既然|万一|请|請|帮|幫|别|別)"
)
_ANOTHER_FACT_ZH: Final = re.compile(
    r"(?:(?:[,，;；]|…+|(?<=[\U0001f300-\U0001faff]))\s*(?:顺便|順便|对了|對了|还有|還有|另外)?"
    rf"|(?<=[^\x00-\x7f])\s+(?=我(?:{KIN})))"
    r"(?=(?:我|俺|咱)(?!觉得|覺得|想[说說问問]|说|說|看[这這那你]|也|还|還|都|就|才|又|怕|猜|估计|以为|以為|知道|记得"
    r"|記得|听|聽|问|問|建议|希望|真|好|太|是[说說不]|的(?:天|妈|错)|自己|俩|倆|们俩|不知|该|應|应))"
)
_LEANS_BACK_ZH: Final = re.compile(
    "[他她它这這]|那(?![么麼时時])|所以|因为|因為|但|不过|不過|结果|結果|而且|于是|就是"
)
LEAST_TOLD_ZH: Final = 4  # characters


_DOING_ZH: Final = (
    rf"(?:(?:今年)?[\d{NUMERALS}]{{1,3}}[岁歲](?!的|时|時|那)|在(?=[^，,]{{1,14}}(?:工作|上班|[做当當干]|读|念|上学|住|开))"
    r"|[住租](?=[在了的])|养(?=[了着一两只条猫狗])|有(?=[一两二三个個只辆过])|开(?=[着的一辆])|月薪|年薪|工资"
    r"|[对對](?=[^，,]{1,10}(?:过敏|過敏))|喜欢|喜歡|爱(?=[吃喝看听玩])|老家|单身|已婚|离异|吃素|信(?=[佛教基天])"
    r"|会(?=[弹说拉做])|平时|平時|每[天早晚周](?=[^，,]{0,4}[吃喝跑打])|血[压壓糖脂]|身高|体重|體重|血型|[属屬](?=[鼠牛虎兔龙蛇马羊猴鸡狗猪])|坐标|坐標)"
)
_DOES_TOO_ZH: Final = re.compile(rf"[,，;；](?={_DOING_ZH})")
_DOES_PLAINLY_ZH: Final = re.compile(
    rf"(?:你好|大家好|您好)?[，,！!\s]*(?:我|俺|本人)(?!们|們|[家的]|[那这這]|[住买買用开開养養租]的|{KIN}"
    r"|[^，,]{0,4}(?:朋友|同[事学]|老板|闺蜜))"
)
_GOVERNS_ZH: Final = re.compile(
    "觉得|覺得|认为|認為|感觉|感覺|因为|因為|所以|如果|要是|时候|時候|[他她它]|说|說|想|问|問|打算|希望|以前|曾"
)


def facts_apart(sentence: str) -> list[tuple[int, str]]:
    """The facts, each with its place; empty where there are not two."""
    chinese = language_of(sentence) == "zh"
    depends, another = (_DEPENDS_ZH, _ANOTHER_FACT_ZH) if chinese else (_DEPENDS, _ANOTHER_FACT)
    label = None if chinese else _LEADS_IN.match(sentence)
    first = label.end() if label else 0
    if asks(sentence) or depends.match(sentence, first):
        return []
    cuts = [one.span() for one in another.finditer(sentence, first)]
    cuts = _with_what_else_is_done(sentence, first, cuts, chinese=chinese)
    found: list[tuple[int, int]] = []
    starts, ends = [first, *(end for _, end in cuts)], [*(at for at, _ in cuts), len(sentence)]
    for at, end in zip(starts, ends, strict=True):
        said = sentence[at:end]
        before = sentence[slice(*found[-1])] if found else ""
        if found and (_leans(said, chinese=chinese) or _is_of_it(said, before)):
            found[-1] = (found[-1][0], end)
        else:
            found.append((at, end))
    if not chinese and not _has_verb(sentence[slice(*found[0])]):
        return []  # "Me and my wife live in Bath"
    return [(at, sentence[at:end]) for at, end in found] if len(found) > 1 else []


def _with_what_else_is_done(
    sentence: str, first: int, cuts: list[tuple[int, int]], *, chinese: bool
) -> list[tuple[int, int]]:
    """The cuts, and those before what the same speaker does, too."""
    too, plainly, governs = (
        (_DOES_TOO_ZH, _DOES_PLAINLY_ZH, _GOVERNS_ZH)
        if chinese
        else (_DOES_TOO, _DOES_PLAINLY, _GOVERNS)
    )
    begins = [first, *(end for _, end in cuts)]
    more: list[tuple[int, int]] = []
    for start, end in zip(begins, [*(at for at, _ in cuts), len(sentence)], strict=True):
        for joint in too.finditer(sentence, start, end):
            if not plainly.match(sentence, start) or governs.search(sentence, start, joint.start()):
                break
            is_too = not chinese and re.match(_BEING, sentence[joint.end() :], re.IGNORECASE)
            if not is_too or _IS.match(sentence, more[-1][1] if more else start):
                more.append(joint.span())  # but for "I own a house, a boat"
    return sorted([*cuts, *more])


def with_speaker(sentence: str, at: int, said: str) -> str:
    """What is said there, with who does it where the sentence says that before another fact."""
    chinese = language_of(sentence) == "zh"
    does = re.match(_DOING_ZH if chinese else rf"{_DOING} ", said, re.IGNORECASE)
    is_ = None if chinese else re.match(_BEING, said, re.IGNORECASE)
    if not (does or is_) or not at or at not in {place for place, _ in facts_apart(sentence)}:
        return said
    if is_:
        return f"I'm {said}"
    return f"我{said}" if chinese else f"I {said}"


_OWNER_ZH: Final = re.compile(rf"(?P<owner>[我俺咱](?:的|们)?(?:{KIN}))(?!们)")
_SUBJECT_ZH: Final = re.compile(
    rf"[我俺咱你您他她它]|(?:大夫|医生|老师|{KIN})|[\u4e00-\u9fff]{{1,4}}(?:说|是|都|也)"
)


_OF_CARE_ZH: Final = re.compile(
    "请假|請假|陪|照顾|照顧|看望|担心|擔心|打算|准备|準備|回去看|带去|送去|接回"
)
"""What the speaker does about a relative: 我妈身体不好，下周请假回老家."""


def owner_before(sentence: str, at: int, said: str) -> str | None:
    """Of whom a Chinese clause without a subject tells: of 我爸 in 我爸68,前年放了两个支架. None
    where it has one, or no relative is the last subject before it."""
    if not at or _SUBJECT_ZH.match(said) or _OF_CARE_ZH.search(said):
        return None
    for clause in reversed(re.split(r"[,，;；]", sentence[:at].rstrip(",，;； "))):
        if (owner := _OWNER_ZH.match(clause.strip())) is not None:
            return owner["owner"]
        if _SUBJECT_ZH.match(clause.strip()):
            return None
    return None


def _is_of_it(said: str, before: str) -> bool:
    """Whether "my aunt bakes the cake" tells more of what stands before it: "the wedding is in
    May"."""
    of_me = _OF_ME.search(before) or re.match(rf"{_DOING} |{_BEING}", before, re.IGNORECASE)
    return _OWN_PERSON.match(said) is not None and not of_me


def told_behind_correction(sentence: str) -> int | None:
    """Where a correction goes on with a fact: "Sorry, Lincoln Middle, he's only 12"."""
    found = _CORRECTS.match(sentence)
    return found.start("more") if found is not None else None


def _has_verb(said: str) -> bool:
    bare = re.sub(r"\bim\b", "i'm", said, flags=re.IGNORECASE)
    return has_verb(bare) or _DOES.match(said) is not None


def _leans(said: str, *, chinese: bool) -> bool:
    """Whether it says too little by itself."""
    if chinese:
        return len(said) < LEAST_TOLD_ZH or _LEANS_BACK_ZH.search(said) is not None
    own = _OWN_PERSON.match(said)
    if own is not None:  # "my son plays football and he hates school" says who he is
        said = re.sub(r"\b(?:he|she|him|her|his)\b", "", said, flags=re.IGNORECASE)
    leans = _LEANS_BACK.search(said) is not None
    short = len(said.split()) < LEAST_TOLD and re.match(_BEING, said, re.IGNORECASE) is None
    return leans or short or (own is not None and not _has_verb(said))
