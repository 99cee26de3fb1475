"""A message that corrects itself as it goes, as it was meant.

    on the 14th, no, I tell a lie, the 15th of July   ->  on the 15th of July
    he just turned thirteen no sorry thirty           ->  he just turned thirty
    我家有十二亩地，噢不是，十一亩                     ->  我家有十一亩地

Who speaks or dictates leaves the wrong value standing before the right one. Invariant: what goes is
one value and the words that take it back, only where a value of the same form, or what is said
with the same word before it, stands right behind them; all else stays as it is. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memograd.memory.language import is_chinese
from memograd.memory.records.turns import RawTurn
from memograd.memory.statements.value_types import AROUND_UNIT, NUMERALS, TYPES

LONGEST: Final = 8  # characters behind the word that both begin with
LONGEST_BEHIND: Final = 16  # characters that stand behind both values
_DATES: Final = TYPES[1]
_LIES: Final = r"i (?:tell a )?lied?|i mean(?:t)?|i'm wrong|that's wrong"
_TAKES_BACK: Final = re.compile(
    r"(?P<gap>\s*(?:[,;(–—-]|\.\.+|…)?\s*)\b(?:"
    rf"(?:no|nope|wait|hang on|hold on|sorry|oops|scratch that|correction|{_LIES})"
    r"(?:[\s,.…–—-]+(?:no|wait|sorry|actually|scratch that|hang on|hold on|make that|it'?s"
    rf"|it was"
    rf"|{_LIES}|(?:that'?s|that was) (?:the|my|our|his|her) old (?:\w+ )?\w+|it'?s|typo))+"
    rf"|scratch that|correction|make that|or rather|i (?:tell a )?lie|i mean|(?<=, )no(?=,)"
    r"|(?<=[–—-] )no(?=,))[\s,:.…–—-]+"
    # Who says so stands between: "no scratch that, the lawyer just texted, June 13th".
    r"(?:(?:(?:the|my|our|his|her|it|that) )?(?:[\w'’]+ )?(?:just |now )?(?:texted|called|rang"
    r"|emailed|messaged|said|says|heard|wrote|typed|put|spelled|changed)"
    r"(?: (?:me|it|that|this|us))?(?: wrong)?(?:[,:]\s+|\s+(?=it'?s |its ))(?:it'?s |its )?)?",
    re.IGNORECASE,
)
_TAKES_BACK_ZH: Final = re.compile(
    r"[\s，,。.…—]+(?:[哦噢啊呃额诶哎欸]+\s*)?(?:(?<=[哦噢啊呃额诶哎欸])不(?![对對是])|不对不对|不对|不對"
    r"|不是不是|不是|不不不?|[说說记記打讲講写寫搞][错錯]了?"
    r"|(?:语音(?:识别|输入)?|語音|输入法|手机|打字)?[又总老]?[搞弄识打听写][错錯]了?|[错錯]了|口误|口誤|更正(?:一下)?)(?:[\s，,。.！!…—]+(?:应该)?是?|(?:应该)是|(?<=不对不对))"
)
# "from 58 to 71. I typed a 71, it should be a 77": what was wrong is named once more.
_NAMED: Final = re.compile(
    r"[\s,.;–—-]*\b(?:well,? )?I (?:say|said|typed|wrote|put) (?:an? )?(?P<old>[\w'’]+),? (?:but )?"
    r"(?:it'?s|it should(?:'ve| have)? (?:be|been)|I meant?|make that)(?: an?| the)?"
    r" (?P<new>[\w'’]+)(?:,? not \w+)?",
    re.IGNORECASE,
)
# "My flight is at 6pm. No, 7pm.": a sentence that is nothing but the right value.
_SAID_AGAIN: Final = re.compile(
    r"(?<=[.!])\s+(?P<cue>(?:(?:no|nope|sorry|oops|wait|correction|scratch that|make that|actually"
    rf"|{_LIES}|typo)[\s,:.–—-]+(?:(?:i|had|looked|wrong|read)\b[^.!?,;]{{2,32}},\s+)?)*"
    r"|well, (?=[^.!?,]{1,16}, i (?:always|keep|nearly|almost) ))"
    r"(?P<value>[^.!?,;\n]{1,24}?)"
    r"(?P<late>(?:,? (?:sorry|i mean|oops|actually|my bad))*)"
    r"(?=[.!](?:\s|$)|$|,(?= (?:i|he|she|his|her|my|we|our|it'?s|they|that|cos|because) ))",
    re.IGNORECASE,
)
_SPELT: Final = re.compile(
    r"\b(?P<word>[A-Za-z]{3,})(?:,| spelt| spelled| thats| that's)*"
    r" (?P<letters>(?:[A-Za-z][ .-]){2,}[A-Za-z])(?![\w'’])"
)
_MEANT: Final = re.compile(
    r"(?<=[.!?])\s+[^.!?]{0,48}?\bI meant (?P<value>[^.!?,;\n]{1,24})[.!]?", re.IGNORECASE
)
_CAN_LEAD: Final = re.compile(
    r"(?:(?:on|in|at|to|from|by|for|the|a|an|about|around|nearly|my|is|are|it'?s)\s+){0,2}", re.I
)
_ORDINAL: Final = re.compile(r"\b\d{1,2}(?:st|nd|rd|th)\b", re.IGNORECASE)
_NAME: Final = re.compile(
    r"(?:\d+[a-z]? )?[A-Z][\w'’-]+(?: (?:[A-Z][\w'’-]+|\d+)){0,2}"  # 1620 Fairlane Drive, Van 9
)
_COUNTED_ZH: Final = re.compile(rf"(?:[{NUMERALS}万亿半]+|\d[\d.,]*)[\u4e00-\u9fff]?")
_NOUN: Final = re.compile(r" [a-z]{3,12}$|(?<=[\u4e00-\u9fff])[\u4e00-\u9fff]$")
_NOUN_ZH: Final = re.compile(r"(?<=[只条个位台辆本部间])[\u4e00-\u9fff]{2,3}$")
_NOUN_LAST: Final = re.compile(r"\b(?:an?|to|on|in|at|my|is|of) (?P<noun>[a-z]{4,})$")
_NOUN_ALONE: Final = re.compile(
    r"(?!(?:seriously|really|actually|never|nothing|listen|what|that|this|maybe|please|again|later|look"
    r"|well|just|still|even|also|then|they|there|here|like|think|know|sorry|wait|hold|have|should)\b)"
    r"[a-z]{4,}(?<!ly)(?=\s*[,.;!]|$)"
)
_STANDS_ALONE: Final = re.compile(r"\s*(?:[,.;!?，。；！？]|$)")
_SAME_WORD_ZH: Final = re.compile(r"[在是去到叫姓住]")


def turn_as_meant(turn: RawTurn) -> RawTurn:
    """What a user said, without what the same message takes back; others' words as they are."""
    meant = as_meant(turn.text) if turn.said_as == "user" else turn.text
    return turn if meant == turn.text else replace(turn, text=meant)


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


def as_meant(text: str) -> str:
    """The message without the values that it takes back itself."""
    text = _without_spelling(text)
    for takes_back, resolved in ((_TAKES_BACK, _english), (_TAKES_BACK_ZH, _chinese)):
        start = 0
        while (found := takes_back.search(text, start)) is not None:
            meant = resolved(text[: found.start()], text[found.end() :])
            start = found.end() if meant is None else len(meant[0])
            text = text if meant is None else meant[0] + meant[1]
    return text if is_chinese(text) else _told_again(text)


def _told_again(text: str) -> str:
    """The message where what was wrong and what is right are sentences apart."""
    if (named := _NAMED.search(text)) is not None:
        old = re.compile(rf"(?<!\w){re.escape(named['old'])}(?!\w)", re.IGNORECASE)
        before = text[: named.start()]
        if len(old.findall(before)) == 1 and named["old"].casefold() != named["new"].casefold():
            text = old.sub(lambda _: named["new"], before) + text[named.end() :]
    for pattern in (_SAID_AGAIN, _MEANT):
        for said in pattern.finditer(text):
            cued = pattern is _MEANT or (said["cue"] + said["late"]).strip()
            meant = _in_its_place(text[: said.start()], said["value"]) if cued else None
            if meant is not None:
                text = meant + text[said.end() :].lstrip(".!,")
                break
    return text


def _in_its_place(before: str, value: str) -> str | None:
    """What was said with the value for the only one of its type; None where there is not one."""
    lead = _CAN_LEAD.match(value)
    value = value[lead.end() :] if lead else value
    for pattern in (AROUND_UNIT, *TYPES, _ORDINAL):
        if pattern.fullmatch(value) is None:
            continue
        last = max(before.rstrip(".!? ").rfind(stop) for stop in (". ", "! ", "? ")) + 1
        found = list(pattern.finditer(before, last)) or list(pattern.finditer(before))
        if len(found) != 1 or found[0][0].casefold() == value.casefold():
            return None
        stop = "." if found[0][0].endswith(".") and not value.endswith(".") else ""  # of "6pm."
        return before[: found[0].start()] + value + stop + before[found[0].end() :]
    return None


def _english(left: str, right: str) -> tuple[str, str] | None:
    """What is left of both sides, where one value takes another one's place."""
    lead = _CAN_LEAD.match(right)
    at = lead.end() if lead else 0
    for pattern in (*TYPES, _ORDINAL):
        new = pattern.match(right, at)
        old = _at_end(pattern, left)
        if new is None and pattern is _ORDINAL:  # "the 14th, no, the 15th of July"
            new = _DATES.match(right, at)
        if new is None or old is None or new[0].casefold() == old.casefold():
            continue
        return left[: len(left) - len(old)], right[at:]
    if (whole := _beside_its_noun(TYPES, left, right[at:])) is not None:
        return whole
    if (same := _before_the_same(left, right, at)) is not None:
        return same
    name = _NAME.match(right, at)
    named = _at_end(_NAME, left)
    if name is not None and named is not None and left[: len(left) - len(named)].strip():
        return left[: len(left) - len(named)], right[at:]
    other, noun = _NOUN_ALONE.match(right, at), _NOUN_LAST.search(left)
    if other is None or noun is None or other[0] == noun["noun"]:
        return None
    if other[0].endswith("s") == noun["noun"].endswith("s"):
        return left[: noun.start("noun")], right[at:]  # "to cashews, no hang on, pistachios"
    return None


def _before_the_same(left: str, right: str, at: int) -> tuple[str, str] | None:
    """Both sides where the same stands behind both values: "Wednesday at 3, no, Thursday at 3"."""
    for pattern in TYPES:
        new = pattern.match(right, at)
        old = list(pattern.finditer(left))
        if new is None or not old:
            continue
        behind = left[old[-1].end() :]
        if 0 < len(behind.strip()) <= LONGEST_BEHIND and right[new.end() :].startswith(behind):
            return left[: old[-1].start()], right[at:]
    return None


def _chinese(left: str, right: str) -> tuple[str, str] | None:
    for pattern in (AROUND_UNIT, *TYPES, _COUNTED_ZH):  # 一米七三，不对，一米七六
        for lead in range(2):
            new, old = pattern.match(right, lead), _at_end(pattern, left)
            if new is None or old is None or new[0] == old:
                continue
            if pattern is _COUNTED_ZH and old[-1:] != new[0][-1:]:
                continue  # 六岁 and 三年级 are no two values of one thing
            before = left[: len(left) - len(old)]
            if lead and not before.endswith(right[0]):
                continue
            return before, right[lead:]
    if (whole := _beside_its_noun((*TYPES, _COUNTED_ZH), left, right)) is not None:
        return whole
    if (placed := _place_chinese(left, right)) is not None:
        return placed
    word = _SAME_WORD_ZH.match(right)
    at = left.rfind(word[0]) if word is not None else -1
    said = left[at + 1 :]
    if at < 0 or not 0 < len(said) <= LONGEST or re.search(r"[\s，,。！？!?]", said):
        return None
    told = re.split(r"[\s，,。！？!?]", right[1:])[0]
    if len(told) < len(said):  # 去厦门出差，不对，去福州
        return left[: at + 1] + told + said[len(told) :], right[1 + len(told) :]
    return left[:at], right


def _place_chinese(left: str, right: str) -> tuple[str, str] | None:
    """我家在常州，搞错了，是漳州: a short value behind such a word, for one as long."""
    at = max(left.rfind(word) for word in "在是去到叫姓住")
    said, told = left[at + 1 :], re.split(r"[\s，,。！!？?]", right)[0]
    plain = all(re.fullmatch("[\u4e00-\u9fff]{1,4}", one) for one in (said, told))
    if at < 0 or not plain or len(said) != len(told) or said == told:
        return None
    return left[: at + 1] + told, right[len(told) :]


def _beside_its_noun(
    patterns: Sequence[re.Pattern[str]], left: str, right: str
) -> tuple[str, str] | None:
    """Both sides with the value that stands alone on the right before the noun on the left."""
    noun = _NOUN_ZH.search(left) or _NOUN.search(left)
    for pattern in patterns:
        new = pattern.match(right)
        if noun is None or new is None or not _STANDS_ALONE.match(right, new.end()):
            continue
        bare = left[: noun.start()]
        old = _at_end(pattern, bare)
        if old is not None and old != new[0]:
            return bare[: len(bare) - len(old)] + new[0] + noun[0], right[new.end() :]
    return None


def _at_end(pattern: re.Pattern[str], text: str) -> str | None:
    """The value that a text ends with."""
    places = list(pattern.finditer(text))
    return places[-1][0] if places and places[-1].end() == len(text) else None
