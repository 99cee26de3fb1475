"""A message that corrects itself as it goes, as it was meant.

    on the 14th, no, I tell a lie, the 15th of July   ->  on the 15th of July
    I make 19.50 an hour sorry 20.50                  ->  I make 20.50 an hour
    我家有十二亩地，噢不是，十一亩                     ->  我家有十一亩地

Who speaks or dictates leaves the wrong value standing before the right one. What stands before a
word of correcting is to the pointer at values (`relations/values.py`) an item, and what stands
behind it the message that corrects it. Invariant: only where a word of correcting stands between
both does a value take the place of another one; all else stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from memograd.memory.language import is_chinese
from memograd.memory.records.turns import RawTurn
from memograd.memory.statements.value_types import (
    AROUND_UNIT,
    NUMERALS,
    TYPES,
    next_word,
    of_one_type,
)

if TYPE_CHECKING:
    from memograd.memory.relations import RelationModel

Place = tuple[int, int]

SURE: Final = 0.1  # of the pointer where nothing else is said around the right value,
SURE_ELSE: Final = 0.2  # and where something is
SEEN_BEFORE: Final = 160  # characters before the cue in which the wrong value is looked for
MOST_CUES: Final = 8  # of a message; each is a reading of the model
LEAST_SAID: Final = 2  # words; "Sligo, what am I saying. Roscommon." corrects what came before it
LONGEST_ZH: Final = 8  # characters of a value that is found by the word before it
EXPLAINS: Final = 48  # characters that may stand between the cue and the right value

_SAID: Final = r"i(?: just| always)? (?:say|said|typed?|wrote|put) (?:an? )?(?P<old>[\w'’]+)[,.?]*"
_CUE: Final = re.compile(
    r"(?:(?<=[^\s?])[\s,;:.!…–—(-]+(?P<cue>\*(?=\w)|"
    r"(?:(?:(?:oh|ah|ugh|er+|um+|argh?|agh|actually|well|but)\b[\s,.…]+)?(?:"
    rf"{_SAID} (?:but )?(?:it['’]?s|its|is|it should|i meant?|make that)\b"
    # "milk, no sugar" takes nothing back.
    r"|no(?=\s*[,!…–—]|\.(?! ?\d)|\s+(?:wait|sorry|actually|scratch|hang|hold|i (?:mean|lie|tell)"
    r"|make|it['’]?s))"
    r"|(?:nope|nah|wait|soz|oops|whoops|typo+|nvm|never ?mind|duh|agh man|argh?|agh|make that"
    r"|or rather|(?:scratch|strike|scrap) that|correction|i mean(?!,)|(?<=[,.;!?…–—-] )i mean"
    r"|i (?:meant|lied?)|i (?:tell|told) a lie|i['’]?m wrong|that['’]?s wrong|what am i saying"
    r"|h(?:ang|old) on|my (?:bad|mistake)|misread|mistyped|wrong (?:way|one|line|row|key)"
    r"|excuse me|(?:i beg your )?pardon(?: me)?|forgive me)\b"
    r"|edit:|(?<=[,.;!?–—-] )ac\w{3,4}l+y\b"
    r"|well(?=, [^.!?,]{1,16}, i (?:always|keep|nearly|almost))"
    r"|sorry\b(?! ?[.!?]| (?:for|to|about|if|but|that|i['’]?m|i am)\b))[\s,.…–—!:-]*)+)"
    # "The car is a 2015 Golf. 2016, sorry."
    r"|(?<=[.!] )(?=[^\s.!?,;]+(?: [^\s.!?,;]+)?,? (?:sorry|i mean|oops|actually|my bad)\b))",
    re.IGNORECASE,
)
_CUE_ZH: Final = re.compile(
    r"[\s，,。.…—！!；;]+(?P<cue>(?:[哦噢啊呃额诶哎欸唉嗯]+[\s，,]*(?:不对|不對|不是|不)"
    # 房租2800，不是3000 takes nothing back.
    r"|(?:不对|不對|不是|等等|等一下)(?=[，,。.！!…—]|\s*(?:应该|應該|是)|\s+在|不对|不對)"
    r"|(?:不对|不對)(?=\s)"
    r"|(?<=不对|不對)(?:不对|不對)"
    r"|(?:[哦噢啊呃额诶哎欸唉嗯]+[\s，,]*)?(?:(?:语音|語音|输入法|手机|打字)?(?:识别|输入)?[又总老都]?"
    r"[說说記记打讲講写寫搞弄听聽念看识敲][错錯岔反混]|[错錯]了|口误|口誤|嘴瓢|手滑|手快|更正|纠正|糾正"
    r"|应该是|應該是|我是[說说]))(?:[\s，,。.！!…—]*(?:了|不对|不對|应该|應該|是))*[\s，,。.！!…—]*)"
)
# What is said around the right value and names nothing itself.
_FILLER: Final = re.compile(
    r"\b(?:no|wait|sorry|that['’]?s?|i['’]?m|i|mean|meant|says?|said|typed?|wrote|put|wrong|what"
    r"|beg|your|pardon|change|there['’]?s?|phone|voice|h(?:i|ello|ey)|an?|on|way|line|row|key"
    r"|it['’]?s|its?|is|was|are|the|in|at|to|from|for|by|should|be|been|have|read|look(?:ed|ing)?"
    r"|checked|well|so|and|but|man|lol|haha|god|lord|now|really|we['’]?re|we|always|just|make)\b"
    r"|[^\w\s]+|语音|語音|输入法?|识别|手机|打字"
    r"|[哦噢啊呃额诶哎欸唉嗯不对對是說说記记打讲講写寫搞弄听聽念看识敲错錯了应该應該等又总老都的吧呢哈]"
    r"|[在去到从叫姓住每下上这]",
    re.IGNORECASE,
)
_NO_VALUE: Final = re.compile(
    r"(?:who|what|when|where|why|how|it|that|this|one|yes|no|not|right|you|he|she|they|we|i)"
    r"|.*[“”\"「」].*",
    re.IGNORECASE,
)
_REFUSED: Final = re.compile(r"\b(?:not|n['’]?t|never|yes|yeah|idea)\b|不是|没|沒", re.IGNORECASE)
_GOES_ON: Final = re.compile(r" (?:is|was|are|were|did|does|has|had|can|could)\b", re.IGNORECASE)
"""Behind a value of which something else is told: "sorry, thursday is the theory resit"."""
_DENIED: Final = re.compile(
    r"(?:\b(?:not|never|dont|isnt|wasnt)|n['’]t)(?: [\w'’]+){0,2} $|(?:不是|没有?|沒有?|别|別)$",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(r" [A-Z]")
_EARLIER: Final = re.compile(r"\bdid i (?:say|write|type|put)\b", re.IGNORECASE)
_QUOTES: Final = tuple("“”‘’'\"「『")
_SENTENCE_ENDS: Final = re.compile(r"[.!?](?=\s|$)|[。！？\n]")
_APOLOGY: Final = re.compile(
    r"[\s,.;!…–—-]*(?:(?:sorry|oops|i mean|actually|my bad|lol|haha|typo|duh"
    r"|不好意思|抱歉|哈+)\b[\s,.!…]*)+",
    re.IGNORECASE,
)
_ORDINAL: Final = re.compile(r"\b\d{1,2}(?:st|nd|rd|th)\b", re.IGNORECASE)
_COUNTED_ZH: Final = re.compile(rf"(?:[{NUMERALS}万亿半]+|\d[\d.,]*)[\u4e00-\u9fff]?")
_AGAIN: Final = re.compile(
    r"(?P<word>[\w'’]+) (?P<value>[\w'’-]+(?: [\w'’-]+){0,2})(?=[,.;!?]|$)", re.IGNORECASE
)
_AGAIN_ZH: Final = re.compile(
    r"(?P<word>[在去到叫姓住是]?)(?P<value>[^\s，,。！!？?在去到叫姓住是]{1,8})(?=[\s，,。！!？?]|$)"
)
_EXPLAINED: Final = re.compile(rf"^.{{0,{EXPLAINS}}}\b(?:it['’]?s|its|i meant?) $", re.IGNORECASE)
"""What may stand before the right value: "no wait that's the old house it's 1620"."""
_FORMS: Final = (AROUND_UNIT, *TYPES, _ORDINAL, _COUNTED_ZH)
_SPELT: Final = re.compile(
    r"\b(?P<word>[A-Za-z]{3,})(?:,| spelt| spelled| thats| that's)*"
    r" (?P<letters>(?:[A-Za-z][ .-]){2,}[A-Za-z])(?![\w'’])"
)


def turn_as_meant(
    model: RelationModel, turn: RawTurn, before: Sequence[tuple[str, str]]
) -> RawTurn:
    """What a user said, without what the same message takes back; others' words as they are."""
    meant = as_meant(model, turn.text, before) if turn.said_as == "user" else turn.text
    return turn if meant == turn.text else replace(turn, text=meant)


def as_meant(model: RelationModel, text: str, before: Sequence[tuple[str, str]] = ()) -> str:
    """The message with the right value in the place of each that it takes back itself.

    before: what was said before it, as `RelationModel.relate` takes it.
    """
    text = _without_spelling(text)
    cues = _CUE_ZH if is_chinese(text) else _CUE
    if cues.match(f".{'，' if is_chinese(text) else ' '}{text}", 1):
        return text  # it corrects what was said before it
    start = 0
    for _ in range(MOST_CUES):
        if (cue := cues.search(text, start)) is None:
            break
        meant = _put_right(model, text, before, cue)
        start = max(cue.end(), start + 1) if meant is None else meant[1]
        text = text if meant is None else meant[0]
    return text


def _put_right(
    model: RelationModel, text: str, before: Sequence[tuple[str, str]], cue: re.Match[str]
) -> tuple[str, int] | None:
    """The text with the value that stands behind the cue for the one before it, and where what is
    left of the correction begins; None where there are no such two."""
    ends = _SENTENCE_ENDS.search(text, cue.end())
    end = ends.start() if ends else len(text)
    told = cue.groupdict().get("old")
    said = text[: cue.start()]
    bare = len(said) < LEAST_SAID if is_chinese(said) else len(said.split()) < LEAST_SAID
    if bare or not _says(said) or _EARLIER.search(said[-SEEN_BEFORE:]):
        return None
    wrong = re.search(rf"(?<!\w){re.escape(told)}(?!\w)", said, re.IGNORECASE) if told else None
    if told and not wrong:
        return None
    right = Right(text[cue.end() : end], text[cue.start("cue") if cue["cue"] else cue.end() : end])
    found = _of_one_form(said, right.text, named=wrong is not None)
    if cue["cue"]:
        pointed = _pointed_at(model, said, right, before)
        found = pointed or found or _behind_the_same(said, right.text)
    if found is None or _GOES_ON.match(right.text, found[1][1]):
        return None
    if _DENIED.search(said[: found[0][0]]):
        return None
    old, new = found
    old = wrong.span() if wrong else old  # "from 51 to 60. I wrote 60, it should be 66"
    behind, rest = _joined(said[old[1] :], right.text[new[1] :])
    more = text[end:]
    if not cue["cue"]:
        more, rest, behind = more.lstrip(".!"), rest.rstrip(), behind.rstrip()  # it has its own
    put = said[: old[0]] + right.text[slice(*new)] + behind
    return put + rest + more, len(put)


def _joined(behind: str, rest: str) -> tuple[str, str]:
    """What follows the wrong value, and what follows the right one, as they go on together."""
    if (apology := _APOLOGY.match(rest)) is not None:
        rest = rest[apology.end() :]
        rest = f" {rest}" if rest[:1].isalnum() else rest
    up_to = re.match(r"[^,.;!?，。；！？]*", rest)
    along = up_to[0].rstrip() if up_to else ""
    chinese = is_chinese(behind + rest)
    same = sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(behind, rest, strict=False)))
    if same and (chinese or same in (len(along), len(behind))):
        return behind, rest[same:]  # "at 3, no, Thursday at 3"
    if not behind or not along or chinese:
        return behind, rest
    named = all(map(_NAMED.match, (along, behind)))
    if behind.strip() and (named or len(along.split()) == len(behind.split())):
        return "", rest  # "12 Elm Road, no, 14 Oak Lane"
    return behind, f", {rest.lstrip()}"


@dataclass(frozen=True)
class Right:
    """What corrects, up to the end of its sentence. whole: with the cue."""

    text: str
    whole: str


def _pointed_at(
    model: RelationModel, said: str, right: Right, before: Sequence[tuple[str, str]]
) -> tuple[Place, Place] | None:
    """The places of the two values that the model points at."""
    seen = max(0, len(said) - SEEN_BEFORE)
    found = model.other_value(right.whole, before, said[seen:])
    if found is None or _NO_VALUE.fullmatch(found.new):
        return None
    first, last = (seen + place for place in found.old)
    at = right.text.casefold().find(found.new.casefold())
    old = said[first:last]
    if at < 0 or _NO_VALUE.fullmatch(old) or not of_one_type(old, found.new):
        return None
    between = re.sub(re.escape(old), " ", right.text[:at], flags=re.IGNORECASE)
    says = _says(between)
    if _REFUSED.search(between) or (says and (is_chinese(said) or len(between) > EXPLAINS)):
        return None
    new = at, at + len(found.new)
    if right.text[at - 1 : at] in _QUOTES or not _go_alike(said[last:], right.text[new[1] :]):
        return None
    return ((first, last), new) if found.sure >= (SURE_ELSE if says else SURE) else None


def _of_one_form(said: str, right: str, *, named: bool) -> tuple[Place, Place] | None:
    """The places of two values of one form: the right one with nothing but words of correcting
    before it, the wrong one as the last or the only one of its form in its sentence.

    named: the correction says which is wrong.
    """
    for form in _FORMS:
        begins = max((m.end() for m in _SENTENCE_ENDS.finditer(said[:-1])), default=0)
        olds = list(form.finditer(said, begins)) or list(form.finditer(said))
        if not olds or not (len(olds) == 1 or olds[-1].end() == len(said)):
            continue
        old = olds[-1]
        for new in form.finditer(right):
            between = re.sub(re.escape(old[0]), " ", right[: new.start()], flags=re.IGNORECASE)
            if _says(between) and not _EXPLAINED.search(between):
                break
            if form is _COUNTED_ZH and old[0][-1] != new[0][-1]:
                continue  # 六岁 and 三年级 are no two values of one thing
            alike = _go_alike(said[old.end() :], right[new.end() :])
            words = {next_word(said, old.end()), next_word(right, new.end())} - {""}
            streets = _NAMED.match(said, old.end()) and _NAMED.match(right, new.end())
            alike = alike and bool(named or streets or is_chinese(said) or len(words) < 2)
            if alike and old[0].casefold() != new[0].casefold():
                return old.span(), new.span()
    return None


def _go_alike(behind: str, rest: str) -> bool:
    """Whether what follows both values in Chinese is the same: 三年级 and 九月 are not."""
    chinese = [bool(re.match("[\u4e00-\u9fff]", one)) for one in (behind, rest)]
    return not all(chinese) or behind[0] == rest[0]


def _behind_the_same(said: str, right: str) -> tuple[Place, Place] | None:
    """The places of what stands last behind a word, and of what stands behind that word again:
    "at a bank, no sorry, a bakery", 在长沙，不对，在株洲. In Chinese the word may be left out."""
    chinese = is_chinese(right)
    new = (_AGAIN_ZH if chinese else _AGAIN).match(right)
    if new is None or (not chinese and _NO_VALUE.fullmatch(new["word"])):
        return None
    if chinese:
        word = re.escape(new["word"]) or "[在去到叫姓住是]"
        long = LONGEST_ZH if new["word"] else len(new["value"])
        old = re.search(rf"{word}(?P<value>[^\s，,。！!？?]{{1,{long}}})$", said)
        alike = old is not None and (bool(new["word"]) or len(old["value"]) == long)
    else:
        behind = r"(?P<value>[\w'’-]+(?: [\w'’-]+)?)$"
        old = re.search(rf"(?<!\w){re.escape(new['word'])} {behind}", said, re.IGNORECASE)
        alike = True
    if old is None or not alike or old["value"] == new["value"]:
        return None
    return old.span("value"), new.span("value")


def _says(text: str) -> bool:
    return bool(_FILLER.sub(" ", text).strip())


def _without_spelling(text: str) -> str:
    """Without a name's letters one by one behind it: "its Mariah M A R I A H"."""
    return _SPELT.sub(
        lambda m: (
            m["word"]
            if re.sub(r"[^A-Za-z]", "", m["letters"]).casefold() == m["word"].casefold()
            else m[0]
        ),
        text,
    )
