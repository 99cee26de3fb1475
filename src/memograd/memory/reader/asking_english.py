"""What only asks for help is left off a sentence that tells something as well.

    I'm on lisinopril, is it normal to feel dizzy?  ->  I'm on lisinopril.
    I'm the secretary of our club, minutes template please.  ->  I'm the secretary of our club.

People tell facts in passing, beside a task. The task is done within the answer; in a memory it only
stands between the fact and its reader.

Invariant: a clause is left off only where, beside its question or order, it names nobody, counts
nothing and says nothing of the speaker, and only where a clause that tells something is left.
Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.reader.person_english import is_past

_EMOJI: Final = "\U0001f300-\U0001faff\u2600-\u27bf\ufe0f"
_BOUNDARY: Final = re.compile(
    rf"(?:[,;](?!\d)|[.!?…]+(?=\s)|\s[-–—](?=\s)|—|\s?[{_EMOJI}]+(?=\s))\s*"
)
_LOOSE_END: Final = re.compile(rf"[\s,;\-–—{_EMOJI}]+$")
_BEGINS: Final = r"^\W*(?:(?:and|but|so|ok(?:ay)?|also|or|then|now|just|please|pls|plz)\b,? ?)*"
_QUESTION: Final = re.compile(
    _BEGINS + r"(?:how\b(?!ever)|wh(?:at|ere|o|y|en|ich)(?:['’]?s)?\b"
    r"|(?:is|are|am|was|do|does|did|should|shall|can|could|would|will|may|have|has)(?:n['’]t)?"
    r" (?:i|we|you|u|ya|it|this|that|there|these|those|they|he|she|the|a|an)\b"
    r"|(?:got |have you (?:got )?)?any (?:\w+ )?(?:ideas?|tips?|advice|suggestions?|thoughts"
    r"|recs|recommendations?|recipes?|alternatives)\b"
    r"|(?:ideas|thoughts|suggestions|tips|advice)\b(?=\W*$))",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(r"\?\s*$")
_CLAUSE_OF_TIME: Final = re.compile(_BEGINS + r"wh(?:en|ere|ich|o|at|y)\b", re.IGNORECASE)
"""May tell as well: "I faint, when I stand", "she moved, which is sad"; only a mark makes it ask,
or an inverted verb."""
_NOUNS: Final = r"(?: (?!(?:i|we|it|he|she|they|you|is|was|are)\b)\w+)"
_AUXILIARY: Final = r"(?:is|are|do|does|did|should|can|could|would|will)"
_INVERTED: Final = re.compile(
    rf"^\W*(?:and |so |but )?(?:wh(?:at|ere|y|en){_NOUNS}{{0,3}}?|which{_NOUNS}{{1,3}}?)"
    rf"(?: {_AUXILIARY} (?:i|we|you|u|it|he|she|they|the|a|an|this|that|there|safe|best|good)\b"
    rf"|['’]s\b|(?<!what)(?<!where)(?<!when)(?<!why) {_AUXILIARY}\b)",
    re.IGNORECASE,
)
_ORDER: Final = re.compile(
    _BEGINS + r"(?:(?:help|give|tell|suggest|recommend|write|explain|show|find|quiz|draft|teach"
    r"|list|redo|summari[sz]e|translate|rewrite|proofread|rephrase|plan|make)"
    r" (?:me|us|it|this|that|some|a|an|the|them|out|up)\b"
    r"|(?:need|want|looking for|after) (?:a|an|some|help|ideas|tips|advice|something)\b"
    r"|hold (?:me|us) to (?:it|that)\b|(?:thanks|thank you|thx|ta|cheers)\b)",
    re.IGNORECASE,
)
_PLEASE: Final = re.compile(r"\b(?:please|pls|plz)\W*$", re.IGNORECASE)
_FINITE: Final = re.compile(
    r"\b(?:is|are|was|were|am|has|have|had|do|does|did|got|\w+n['’]t|i|we|he|she|they)\b"
    r"|['’](?:s|m|ve|re) ",
    re.IGNORECASE,
)
_ASKER: Final = re.compile(
    r"\b(?:do|can|should|could|would|will|shall|may|am|must) (?:i|we)\b(?! have\b)", re.IGNORECASE
)
_TELLS: Final = re.compile(
    r"(?i:\b(?:i|i['’]?m|i['’]?ve|my|mine|we|our|ours|he|she|his|her|him|they|their|who)\b)|\d"
    r"|(?<=[a-z,] )[A-Z][a-z]|[\"“”]|['’]s\b(?<!what['’]s)(?<!how['’]s)(?<!where['’]s)"
    r"|\b(?:because|since|without|allerg\w+|birthday|instead|vegan|vegetarian)\b",
)
_SUBJECT: Final = re.compile(
    r"\b(?:i|i['’]?m|i['’]?ve|my|we|we['’]re|we['’]ve|our)\b", re.IGNORECASE
)
_POINTS_BACK: Final = re.compile(r"\b(?:it|this|them|those|these|one)\b", re.IGNORECASE)


def without_asking(text: str) -> str:
    """The text without the clauses that only ask, the whole where nothing else is told."""
    clauses = _clauses(text)
    if len(clauses) < 2:
        return text
    asks = [_only_asks(clause + mark) for clause, mark in clauses]
    told = [one for one, only_asks in zip(clauses, asks, strict=True) if not only_asks]
    if len(told) == len(clauses) or not any(_tells(clause) for clause, _ in told):
        return text
    first = asks.index(True)
    behind = zip(clauses[first:], asks[first:], strict=True)
    if any(_POINTS_BACK.search(clause) for (clause, _), only_asks in behind if not only_asks):
        return text  # "What helps with psoriasis, I've had it for years"
    left = _LOOSE_END.sub("", "".join(clause + mark for clause, mark in told))
    left = left if left[-1:] in ".!?" else left + "."
    return left[:1].upper() + left[1:] if text[:1].isupper() else left


def _clauses(text: str) -> list[tuple[str, str]]:
    """The clauses, each with the mark behind it."""
    found, start = [], 0
    for end in _BOUNDARY.finditer(text):
        found.append((text[start : end.start()], end[0]))
        start = end.end()
    found.append((text[start:], ""))
    return [(clause, mark) for clause, mark in found if clause.strip() or mark.strip()]


def _only_asks(clause: str) -> bool:
    marked = _ASKS.search(clause) is not None
    asks = _QUESTION.match(clause) is not None
    if asks and not marked and _CLAUSE_OF_TIME.match(clause):
        asks = _INVERTED.search(clause) is not None
    orders = _ORDER.match(clause) or (_PLEASE.search(clause) and not _FINITE.search(clause))
    if not (asks or orders):
        return False
    said = _ASKER.sub("", clause, count=1)
    bare = re.sub(_BEGINS, "", said)
    return _TELLS.search(bare[:1].lower() + bare[1:]) is None


def _tells(clause: str) -> bool:
    words = clause.split()
    if len(words) < 3:
        return False
    return _SUBJECT.search(clause) is not None or any(is_past(word) for word in words[:4])
