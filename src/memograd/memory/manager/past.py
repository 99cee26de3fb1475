"""What becomes of an item's text: parts are taken out of it, and what is superseded stays readable.

    User lives in Montreal (formerly: User lives in Ottawa, until 7 May 2024).
    User sees a guy called Pascal (until 7 May 2024).
    User lives at 205 (said before by mistake: User lives at 502).
    User works at Shell (until 7 May 2024; formerly: User works at BP, until 3 May 2024).
    User has a Galaxy S22 (perhaps no longer, since 7 May 2024).
    User is on crutches (until 7 May 2024), so dinner is something that User makes sitting down.

A message may be misunderstood, so what it seems to replace or to end is not taken away: the item
keeps it as its past. Only what the user corrects, takes back or asks to forget disappears, and of
an item that is a list only the parts that are meant.

A note stands behind what it speaks of; what goes on about that ("so ...", "he's sweet") and what
else the text says stay behind the note.

Invariants: `present` of any text with a note is the text as it stood without it, but for an
exclamation mark; what is left of an item is made of its own words. Pure functions.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from typing import Final

from memograd.memory.language import is_chinese, simplified
from memograd.memory.reader.forget import asked_for
from memograd.memory.reader.person_chinese import KIN
from memograd.memory.records.notes import IN_MIDST, is_doubted
from memograd.memory.records.turns import format_date
from memograd.memory.statements import parse_statement, property_words, wording
from memograd.memory.text_caches import of_texts

LONGER_THAN: Final = 3  # characters of a part that says something
CHARACTERS: Final = 2  # of Chinese that count as a word: two texts always share some
LONGEST_PAST: Final = 240  # characters; what was so before that is left to the history

_FORMERLY: Final = re.compile(
    r" \((?:until [^();]{4,40}; )?formerly: (?P<en>.+?)\)[.!?]?$"
    r"|（(?:至[^（）；]{2,20}为止，现已不再；)?此前：(?P<zh>.+?)）[。！？]?$",
    re.S,
)
_MISTAKEN: Final = re.compile(
    r" \(said before by mistake: (?P<en>.+?)\)[.!?]?$|（此前误说：(?P<zh>.+?)）[。！？]?$", re.S
)
_NOTE: Final = re.compile(
    r"(?P<before>[.!?。！？]?)"
    r"(?: \((?:(?:formerly|said before by mistake): .+|until [^();]{4,40}(?:; formerly: .+)?"
    r"|perhaps no longer[^()]{0,40})\)"
    r"|（(?:此前(?:误说)?：.+|至[^（）；]{2,20}为止，现已不再(?:；此前：.+)?|[^（）]{0,14}或已不再)）)"
    r"(?P<stop>[.!?。！？]?)$",
    re.S,
)
_STOP: Final = re.compile(r"[\s.!?。！？]+$")
# "..., so any dinner has to be quick", "he's sweet but never plans": they go on about it.
_TAIL: Final = re.compile(
    r"(?:,? (?:because|cos|which|whose|although|so (?:if|when|whenever))"
    r"|,? so(?= (?:that )?\w+ (?:\w+ )?(?:have|has|is|are|can|can't|must|needs?|will|won't|do"
    r"|does)\b)"
    r"|[,;] (?:but |and )?(?:he|she|it|they)(?:'s|'re)?) (?!.*\bformerly: )",
)


def present(text: str) -> str:
    """What the item says of the present: the text without a note on the past."""
    if (found := _NOTE.search(text)) is not None:
        return text[: found.start()] + found["stop"]
    return IN_MIDST.sub("", text, count=1)


def ended(text: str, day: date | None, part: str | None = None) -> str:
    """What was so, until that day, with the past that it told of.

    part: of a text that says several things the one that ended.
    """
    before = formerly(text)
    if is_chinese(text):
        past = f"；此前：{before}" if before else ""
        return _noted(present(text), f"至{_day_zh(day)}为止，现已不再{past}")
    if not before:
        return _noted_behind(part, present(text), f"until {_day(day)}")
    return _noted(present(text), f"until {_day(day)}; formerly: {before}")


def doubted(text: str, day: date | None, part: str | None = None) -> str:
    """What may be so no longer, since that day; part: the one in doubt of several.

    In doubt already, or telling of its past, it stays as it is: the first doubt counts, and the
    past may be a fact that was misunderstood.
    """
    if is_doubted(text) or formerly(text):
        return text
    if is_chinese(text):
        return _noted(present(text), f"{_day_zh(day)}起或已不再")
    return _noted_behind(part, present(text), f"perhaps no longer, since {_day(day)}")


def mistaken(new: str, old: str) -> str:
    """The right statement, with the one that was wrong from the beginning.

    That one is not the past, so nothing that comes later carries it on.
    """
    was = _STOP.sub("", present(old))
    return _noted(
        present(new), ("此前误说：" if is_chinese(new) else "said before by mistake: ") + was
    )


def instead(new: str, old: str, day: date | None, part: str | None = None) -> str:
    """The new statement, with the one it took the place of.

    part: of an old one that says several things the one that was replaced; the day stands behind
    it. What the new statement says as well is not said again.
    """
    before = formerly(old)
    was = _STOP.sub("", _no_more_said(new, present(old)))
    if is_chinese(was):
        was = f"{was}，至{_day_zh(day)}" + (f"；{before}" if before else "")
    else:
        core = _core_of(was, part)
        was = f"{core}, until {_day(day)}{was[len(core) :]}" + (f"; {before}" if before else "")
    if len(was) > LONGEST_PAST and before:
        was = was.removesuffix(f"{'；' if is_chinese(was) else '; '}{before}")
    return _noted(present(new), ("此前：" if is_chinese(new) else "formerly: ") + was)


def keeping_past(new: str, old: str) -> str:
    """The statement with the past that the old one told of."""
    before = formerly(old)
    if not before:
        return new
    return _noted(present(new), ("此前：" if is_chinese(new) else "formerly: ") + before)


def formerly(text: str) -> str:
    """What a statement tells of the past, empty where nothing."""
    found = _FORMERLY.search(text)
    return (found["en"] or found["zh"] or "") if found else ""


def not_present(text: str) -> str:
    """What a statement tells beside the present: of the past, or as a mistake; empty where
    nothing."""
    found = _MISTAKEN.search(text)
    return (found["en"] or found["zh"] or "") if found else formerly(text)


def _noted(text: str, note: str) -> str:
    chinese = is_chinese(text)
    bare = text.rstrip("!！ ")  # "I'm local now (formerly: ...)!" would not read well
    stop = bare[-1] if bare[-1:] in ".?。？" else ("。" if chinese else ".")
    bare = bare.removesuffix(stop)
    return f"{bare}（{note}）{stop}" if chinese else f"{bare} ({note}){stop}"


def _no_more_said(new: str, old: str) -> str:
    """Of a statement with several parts the one that the new statement has not; all of it where
    there is no such one or it cannot be read alone."""
    parts, still = parts_of(old), {part for part, _ in parts_of(present(new))}
    gone = [n for n, (part, _) in enumerate(parts) if part not in still]
    if len(gone) != 1 or len(gone) == len(parts):
        return old
    part = parts[gone[0]][0]
    alone = _WITH_SUBJECT.match(part) or is_chinese(part)  # "A1c 6.2" says nothing alone
    return left_of(old, parts, gone) if alone and is_readable(old, part) else old


def _noted_behind(part: str | None, text: str, note: str) -> str:
    """The English text with the note behind the part, or behind its core where that is open."""
    core = _core_of(text, part)
    if re.match(r"[,; ]", text[len(core) :]) is None:
        return _noted(text, note)
    return f"{core} ({note}){text[len(core) :]}"


def _core_of(text: str, part: str | None) -> str:
    """The beginning of an English text up to the end of the part, or up to where it only goes on
    about what it says; all of it where it has no such end."""
    if part is not None and part in text:
        return text[: text.index(part) + len(part)]
    found = None if is_chinese(text) else _TAIL.search(text)
    return text[: found.start()] if found is not None else text


def _day(day: date | None) -> str:
    return format_date(day) if day else "lately"


def _day_zh(day: date | None) -> str:
    return f"{day.year}年{day.month}月{day.day}日" if day else "最近"


_FUNCTION_CHARACTERS: Final = frozenset("的了是我你他她它在有和就都给这那个条不也很说别用户")


@of_texts
@lru_cache(maxsize=2_048)  # every message is compared with the same items again
def stems(text: str) -> frozenset[str]:
    """The beginnings of content words; in Chinese characters that carry content."""
    chinese = re.findall(r"[\u4e00-\u9fff]+", text)
    latin = {term[:5] for term in wording(text).terms if len(term) > 2 and term.isascii()}
    return frozenset(latin | (set("".join(chinese)) - _FUNCTION_CHARACTERS))


def words_of(text: str) -> frozenset[str]:
    """The beginnings of content words; in Chinese, pairs of characters beside each other; and
    numbers."""
    text = simplified(text)
    numbers = re.findall(r"\d+|[①-⑨]", text)
    if not is_chinese(text):
        # "The vape thing" names "vapes", whose stem is "vap".
        shorter = (one.removesuffix("e") if len(one) > 3 else one for one in stems(text))
        return frozenset([*shorter, *numbers])
    runs = re.findall(r"[\u4e00-\u9fff]+", text.replace("用户", " "))
    pairs = [run[n : n + 2] for run in runs for n in range(len(run) - 1)]
    latin = [word.casefold() for word in re.findall(r"[A-Za-z]{2,}", text)]
    return frozenset([*pairs, *latin, *numbers])


def shared_content(one: str, other: str) -> int:
    """How many content words two texts share; in Chinese, pairs of characters beside each other."""
    if not (is_chinese(one) or is_chinese(other)):
        return len(stems(one) & stems(other))
    return len(_pairs(one) & _pairs(other))


def _pairs(text: str) -> set[str]:
    runs = re.findall(r"[\u4e00-\u9fff]+", text.replace("用户", " "))
    pairs = {run[n : n + 2] for run in runs for n in range(len(run) - 1)}
    return {pair for pair in pairs if not set(pair) & (_FUNCTION_CHARACTERS | _NUMERALS)}


_NUMERALS: Final = frozenset("零〇一二两三四五六七八九十百千万年月日号天")
_OF_NOTES: Final = stems(
    "profile memory record notes files take leave drop keep kept wipe forget delete remove strike"
    " scrap store save saved write written wrote get rid want please would could"
)
"""What requests to forget are worded with; it names nothing."""


def named_in(message: str, text: str) -> int:
    """How many words of a statement a request to forget names.

    The words of its properties count too: "my address" names where somebody lives.
    """
    message, found = asked_for(message), 0
    for part, _ in parts_of(present(text)):
        words = property_words(part).split()[1:]  # behind the subject
        if is_chinese(part):
            found += len(stems(message) & stems(part)) // CHARACTERS
            found += sum(len(word) > 1 and word in message for word in words)
        else:
            found += len((stems(message) - _OF_NOTES) & (stems(part) | stems(" ".join(words))))
    return found


def speaks_of(message: str, text: str) -> bool:
    """Whether the message has a word of a statement, or of one of its properties."""
    return bool(stems(message) & stems(text)) or named_in(message, text) > 0


def negates(message: str, text: str) -> bool:
    """Whether a clause of the message both has a negation and speaks of the statement."""
    clauses = re.split(r"[,.;!?，。；！？]+", message)
    return any(wording(one).negated and speaks_of(one, text) for one in clauses)


# A part that speaks of what is taken out says nothing without it.
LEANS: Final = re.compile(
    r"\b(?:it|its|it's|he|she|her|him|they|them|that|this)\b|[它她他]|[这那](?![天周年月日])", re.I
)
_JOINT: Final = re.compile(
    r"\s*(?:(?:(?!(?<=\d),\d)[,，]|[;；、])(?:\s*and\b)?|\band\b(?! others\b)|。"
    r"|(?<= )[&+](?= (?![A-Z])| User\b)"  # the Dog & Duck is one
    r"|(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bDr)(?<!\bSt)\. )\s*"
)
SUBJECT: Final = re.compile(
    r"User said: (?:[\w ]+: )?|About [\w' -]{3,40}: |关于[^：]{2,10}："
    r"|User(?:'s)? (?:\w+s )?|用户说：|用户(?:的)?[有是在]?"
)


def parts_of(text: str) -> list[tuple[str, str]]:
    """The parts of a statement that is a list, each with what joins it to the next."""
    parts, start = [], 0
    for found in _JOINT.finditer(text.rstrip(" .。")):
        parts.append((text[start : found.start()], found[0]))
        start = found.end()
    parts.append((text[start:].rstrip(" .。"), ""))
    return parts if all(len(part) > 1 for part, _ in parts) else [(text, "")]


def with_subject(text: str, part: str) -> str:
    """A part of a statement that a model can read by itself: whose it is stands before it."""
    if (owner := _owner_of(text, part)) is not None:
        return f"{owner}{part}" if is_chinese(text) else f"{owner} {part}"
    if is_chinese(text) and re.match("用户(?!说：)", text) and "用户" not in part:
        return f"用户{part}"
    return part


def _owner_of(text: str, part: str) -> str | None:
    """Who does what a later part says: "User's ex" in "User's ex owes User money and lives in
    Naas"; None for the first part, and where the part has a subject."""
    predicate = _PREDICATE_ZH if is_chinese(text) else _PREDICATE
    if text.startswith(part) or predicate.match(part) is None:
        return None
    if re.match(r"(?:he|she|it|who|that)['’]?s\b", part, re.IGNORECASE):
        return None
    owner = _WHOSE.match(text)
    return owner[0] if owner is not None else None


def stands_alone(text: str, part: str) -> bool:
    """Whether a part can be read without the rest, or its pronoun is known to be whose."""
    bare = _STARTS.sub("", part, count=1) if _WHOSE.match(text) else part
    return LEANS.search(bare) is None


def is_readable(text: str, part: str) -> bool:
    """Whether a part says something by itself: it is no mere word, and stands alone."""
    return len(part) > LONGER_THAN and stands_alone(text, part)


def goes_on(part: str, joint: str) -> bool:
    """Whether a part goes on about the one before it, which `joint` joins it to.

    "I've applied at the mill, but nobody knows"; "my wife's pregnant, eight weeks".
    """
    if _FOLLOWS.match(part):
        return True
    return (
        joint.strip() == ","
        and not is_chinese(part)
        and _AGAIN.match(part) is None
        and _PREDICATE.match(part) is None
        and _AT_PRESENT.match(part) is None
    )


def is_list(parts: Sequence[tuple[str, str]]) -> bool:
    """Whether the parts stand side by side, rather than being the clauses of one thought."""
    return all(
        re.search(r"[;；、&+]|and|。|\.", joint) or _AGAIN.match(after)
        for (_, joint), (after, _) in itertools.pairwise(parts)
    )


_LEADS_ON: Final = re.compile(
    r"(?:and|also|plus) |(?:还有|還有|另外|而且|并且|並且|以及)(?=用户|我)", re.I
)
_PREDICATE: Final = re.compile(r"(?:is|has|was|had|did|can|\w{2,}s|\w{2,}ed)\b", re.IGNORECASE)
"""Of "User is 51, rents in Leeds"."""
_VERB_FIRST: Final = re.compile(r"\w{2,}s (?:in|at|on|to|with|for|by|near|from|a|an|the)\b")
"""Of "rents in Leeds", where "dogs" has the verb of what stands before it."""
_THEY: Final = re.compile(r"(?:they|he|she|it)\b", re.IGNORECASE)
_PREDICATE_ZH: Final = re.compile(
    r"[还還也都已正刚剛才又就只在做是有没沒不带帶住爱愛叫会會要想去来來搬开開读讀]"
    r"|喜欢|喜歡|经常|經常|天天|每[天周月年]|[现現]在|今年|平时|平時|以前|脾气|脾氣"
)
_WITH_SUBJECT: Final = re.compile(rf"User\b|their\b|{_VERB_FIRST.pattern}", re.IGNORECASE)
_FOLLOWS: Final = re.compile(
    r"(?:their|which|who|whose|where|because|so|but|nobody|not|no one|though|although|since|then"
    r"|until|till|about)\b|因为|所以|但|不过|只是|结果|没人|谁都",
    re.IGNORECASE,
)
_AT_PRESENT: Final = re.compile(r"(?:currently|presently|at present|right now|meanwhile)\b", re.I)
"""Begins another fact: "has an interview at Siemens, currently an engineer at a competitor"."""
_AGAIN: Final = re.compile(r"(?:I|my|we|our|User|also)\b|[我也还并另]|用户|同时", re.I)


# "User's son stutters, he is called Leo": he is User's son when the first part is gone.
_WHOSE: Final = re.compile(r"User's (?:\w+ )?\w+(?= (?:is|has|was|\w+s)\b)|用户的?(?:" + KIN + ")")
_STARTS: Final = re.compile(r"(?:and |but )?(?:he|she|it)\b|[他她它](?!们)", re.IGNORECASE)


def least_length(part: str) -> int:
    """How long a part is at least that stands for itself."""
    return 5 if is_chinese(part) else 12


def left_of(text: str, parts: Sequence[tuple[str, str]], stay: Sequence[int]) -> str:
    """The item's text with those parts alone, its subject before them."""
    left = ""
    for n in stay:
        left += parts[n][0] + (parts[n][1] if n != stay[-1] else "")
    owner = _WHOSE.match(text)
    if owner is not None and stay and stay[0] > 0 and _STARTS.match(left):
        left = owner[0] + _STARTS.sub("", left, count=1)
    elif stay and (does := _owner_of(text, parts[stay[0]][0])) is not None:
        left = f"{does}{left}" if is_chinese(text) else f"{does} {left}"
    elif not left.startswith(text[:4]) and (subject := SUBJECT.match(text)):
        bare = _LEADS_ON.sub("", left).removeprefix("User ").removeprefix("用户")
        clause = is_chinese(text) and re.search(r"[,，;；]", parts[stay[0] - 1][1])
        # A Chinese clause has a verb of its own; whose it is, is not known behind 用户的.
        whose = "用户" if re.match(r"用户(?!的|说：)", text) else "用户说："
        if not is_chinese(text) and _THEY.match(bare):
            return f"User said: {bare}".rstrip(" ,;.") + "."
        # "loves jazz" has its verb, "dogs" takes the one before it.
        own_verb = subject[0].startswith("User ") and (
            parse_statement(f"User {bare}") or _VERB_FIRST.match(bare)
        )
        left = (whose if clause else "User " if own_verb else subject[0]) + bare
    return left.rstrip(" ,;，；、。.") + ("。" if is_chinese(text) else ".")
