"""How two statements stand to each other by their words: the same, contradictory, or neither.

Embeddings do not tell "Rex is 4" from "Rex is 5"; the words do. Where both sentences are understood
(`memory.statements`), property and value decide. Where they are not, two sentences that share most
of their words contradict each other when one says no and the other yes, or when each has a number
or a name that the other lacks; the first name is the subject, and other subjects never contradict.

Invariants: both relations are symmetric up to what one text adds (`says_already` asks about the
first), and no pair is both the same and contradictory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from memograd.memory.language import is_chinese
from memograd.memory.statements import (
    Statement,
    Wording,
    agreement,
    parse_statement,
    same_text,
    wording,
)
from memograd.memory.statements.statement import plain

OVERLAP: Final = 0.6  # share of common words, names and numbers apart, from which two texts compare

_NAME = re.compile(r"[A-ZÀ-Þ][\wÀ-ÿ'-]*")
_FIRST_WORD = re.compile(r"\W*(?:(?:The|A|An|My|Our|His|Her|Their|In|On|At) )?")


@lru_cache(maxsize=65_536)  # all operations on one state compare the same pairs
def says_already(known: str, fact: str) -> bool:
    """Whether `known` says all that `fact` says: in the same words, or the same value and more."""
    if same_text(known, fact):
        return True
    theirs, ours = _understood(known), _understood(fact)
    if theirs is None or ours is None or theirs.ended != ours.ended:
        return False
    if not (ours.same_slot(theirs) and ours.same_value(theirs)):
        return False
    its, mine = wording(known), wording(fact)
    return (
        ours.positive == theirs.positive
        and mine.numbers <= its.numbers
        and wording(ours.rest).terms <= its.terms
    )


@lru_cache(maxsize=65_536)
def contradicts(first: str, second: str) -> bool:
    """Whether both cannot be true at once, by polarity, number or name at high overlap."""
    if same_text(first, second):
        return False
    one, other = _understood(first), _understood(second)
    if one is not None and other is not None:
        return _opposed(one, other)
    mine, its = _SpokenWords.of(first), _SpokenWords.of(second)
    if mine.subject and its.subject and mine.subject != its.subject:
        return False
    if agreement(mine.common, its.common) < OVERLAP:
        return False
    if mine.all.negated != its.all.negated:
        return mine.all.numbers == its.all.numbers and mine.names == its.names
    return _each_has_its_own(mine.all.numbers, its.all.numbers) or _each_has_its_own(
        mine.names, its.names
    )


@lru_cache(maxsize=16_384)
def _understood(text: str) -> Statement | None:
    return parse_statement(text)


def _opposed(one: Statement, other: Statement) -> bool:
    if not one.same_slot(other):
        return False
    holds, held = one.positive and not one.ended, other.positive and not other.ended
    if one.same_value(other):
        return holds != held
    if not (holds and held and one.single_valued):
        return False
    longer, shorter = sorted((plain(one.value), plain(other.value)), key=len, reverse=True)
    # "Boston" and "Boston, Massachusetts" agree; 4 and 14 do not.
    return shorter[-1:].isdigit() or not longer.startswith(shorter)


def _each_has_its_own(ours: frozenset[str], theirs: frozenset[str]) -> bool:
    return bool(ours - theirs) and bool(theirs - ours)


@dataclass(frozen=True, slots=True)
class _SpokenWords:
    """The wording of a text; its subject and other names, folded; its common words alone."""

    all: Wording
    subject: str
    names: frozenset[str]
    common: Wording

    @classmethod
    @lru_cache(maxsize=16_384)
    def of(cls, text: str) -> _SpokenWords:
        said = wording(text)
        start = _FIRST_WORD.match(text)
        at = start.end() if start else 0
        first = _NAME.match(text, at)
        subject = first[0].casefold() if first and not is_chinese(text) else ""
        names = frozenset(
            name.casefold().removesuffix("'s")
            for name in _NAME.findall(text, first.end() if first else at)
        )
        apart = wording(" ".join(names)).terms
        common = replace(said, terms=said.terms - apart, numbers=frozenset())
        return cls(said, subject.removesuffix("'s"), names, common)
