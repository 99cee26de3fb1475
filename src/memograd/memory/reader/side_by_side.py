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
    r"|volunteer|love|like|hate|prefer|want|wear|take|drink|eat|smoke|sing|ride|manage|run|sell)"
)
_DOES_TOO: Final = re.compile(
    rf"(?:,|,? (?:and|n|&)) (?={_DOING} (?!(?:and|or|that|it|to)\b)\w|want to \w)", re.IGNORECASE
)
"""Before what who speaks does, too: "I live in Leeds, work as a nurse and play the oboe"."""
_DOES_PLAINLY: Final = re.compile(
    rf"\W*(?:i(?:['’]?m| am)|i (?:\w+ly )?{_DOING}) (?!(?:to|not)\b)", re.IGNORECASE
)
_GOVERNS: Final = re.compile(
    rf"\b(?:can|could|will|would|must|might|should|who|that|which|when|if|because|help|helping|let"
    rf"|make|see|watch|going|want|try|hope|plan|need|(?:to|and|or) {_DOING})\b|['’]ll\b",
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


def facts_apart(sentence: str) -> list[tuple[int, str]]:
    """The facts, each with its place; empty where there are not two."""
    chinese = language_of(sentence) == "zh"
    depends, another = (_DEPENDS_ZH, _ANOTHER_FACT_ZH) if chinese else (_DEPENDS, _ANOTHER_FACT)
    label = None if chinese else _LEADS_IN.match(sentence)
    first = label.end() if label else 0
    if asks(sentence) or depends.match(sentence, first):
        return []
    cuts = [one.span() for one in another.finditer(sentence, first)]
    cuts = cuts if chinese else _with_what_else_is_done(sentence, first, cuts)
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
    sentence: str, first: int, cuts: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The cuts, and those before what the same speaker does, too."""
    begins = [first, *(end for _, end in cuts)]
    more = []
    for start, end in zip(begins, [*(at for at, _ in cuts), len(sentence)], strict=True):
        for joint in _DOES_TOO.finditer(sentence, start, end):
            if not _DOES_PLAINLY.match(sentence, start) or _GOVERNS.search(
                sentence, start, joint.start()
            ):
                break
            more.append(joint.span())
    return sorted([*cuts, *more])


def with_speaker(sentence: str, at: int, said: str) -> str:
    """What is said there, with who does it where the sentence says that before another fact."""
    shares = re.match(rf"{_DOING} ", said, re.IGNORECASE) is not None and at > 0
    return f"I {said}" if shares and at in {place for place, _ in facts_apart(sentence)} else said


def _is_of_it(said: str, before: str) -> bool:
    """Whether "my aunt bakes the cake" tells more of what stands before it: "the wedding is in
    May"."""
    return _OWN_PERSON.match(said) is not None and not _OF_ME.search(before)


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
    return leans or len(said.split()) < LEAST_TOLD or (own is not None and not _has_verb(said))
