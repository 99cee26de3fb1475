"""The clauses of a text that each say something of their own.

`I live in Boston and I love jazz` is two statements, and what changes one must not touch the other.
A text is divided only where every part can stand alone: parts that point back ("it", 它), that
depend ("because", 如果) or that have no subject and no clear verb stay with what is before them.

Invariant: the clauses are stretches of the text in order, none overlapping. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from memograd.memory.language import language_of
from memograd.memory.statements.parse import parse_statement
from memograd.memory.statements.statement import Statement

Understand = Callable[[str], Statement | None]


@dataclass(frozen=True, slots=True)
class Clause:
    """A stretch `text[start:end]`; `said` is what it says with the subject that it shares."""

    start: int
    end: int
    said: str


def clauses(text: str, understand: Understand = parse_statement) -> tuple[Clause, ...]:
    """The clauses of the text; one that is the whole text where it cannot be divided.

    understand: the statement of a clause, None where no form fits.
    """
    chinese = language_of(text) == "zh"
    joint, dependent = (_JOINT_ZH, _DEPENDENT_ZH) if chinese else (_JOINT, _DEPENDENT)
    continued = _continued_chinese if chinese else _continued_english
    body = text.rstrip(_ENDS)
    whole = (Clause(0, len(text), text),)
    if len(text) > LONGEST or not joint.search(body) or dependent.search(body):
        return whole
    said = understand(text)
    if said and said.instead_of:
        return whole  # "I switched hobbies! I started chess" is one change
    parts: list[Clause] = []
    start = 0
    for found in [*joint.finditer(body), None]:
        end = found.start() if found else len(body)
        parts = _joined(parts, Clause(start, end, body[start:end]), body, continued, understand)
        start = found.end() if found else end
    understood = [part for part in parts if understand(part.said)]
    return tuple(parts) if len(parts) > 1 and understood else whole


LONGEST: Final = 300  # characters; a longer text is a story
_ENDS: Final = " .!。！;；~…"

Continued = Callable[[str, str, Statement | None, Understand], str | None]


def _joined(
    parts: list[Clause], new: Clause, body: str, continued: Continued, understand: Understand
) -> list[Clause]:
    """The parts with one more, which is a clause of its own or belongs to the last one."""
    if not parts:
        return [new]
    last = parts[-1]
    if (said := continued(last.said, new.said, understand(last.said), understand)) is not None:
        return [*parts, Clause(new.start, new.end, said)]
    more = body[last.end : new.end]
    return [*parts[:-1], Clause(last.start, new.end, last.said + more)]


_JOINT: Final = re.compile(r"\s*[,;]\s+(?:and\s+)?|\s+and\s+|[.!]+\s+")
_DEPENDENT: Final = re.compile(
    r"\b(?:because|but|so|if|when|whenever|which|who|whose|whom|that|while|although|though|until"
    r"|till|unless|where|whether|either|neither|both|not only|than|as soon as|'cause|since"
    r"|think|thinks|hope|hopes|guess|wish|wishes|believes?|knows?|knew|says?|said|tells?|told"
    r"|hears?|heard|imagines?|feels? like|realized|sure|glad|asked|means?|like to)\b|[\"“”:]",
    re.IGNORECASE,
)
_POINTS_BACK: Final = re.compile(
    r"\b(?:it|it's|its|them|they|they're|this|these|those|he|she|he's|she's|him|her|his|hers|there"
    r"|here|one|ones|too|also|then|same|such|each|other|another|else|again|either|together)\b",
    re.IGNORECASE,
)
_FIRST_PERSON: Final = re.compile(r"(?:I|I'm|I've|I'd|I'll|[Mm]y|[Ww]e|[Ww]e're|[Oo]ur)(?= )")
_VERBS = "live work love like enjoy hate drive play speak own have prefer use drink eat teach study"
_SHARING: Final = {
    "I": frozenset([*_VERBS.split(), "am"]),
    "": frozenset([*(f"{verb}s" for verb in _VERBS.split()), "has", "studies", "teaches", "is"]),
}


def _continued_english(
    last: str, new: str, before: Statement | None, understand: Understand
) -> str | None:
    """What the new part says on its own, None where it belongs to the last one."""
    words = new.split()
    if len(words) < 2 or _POINTS_BACK.search(new):
        return None
    mine = _FIRST_PERSON.match(last) is not None
    if not mine and before is None:
        return None  # what is before is no clause yet
    if _FIRST_PERSON.match(new) and len(words) > 2:
        return new
    if before is None:
        return None
    named = not mine and before.subject
    if understand(new) and words[0][0].isupper():
        return new
    subject = "I" if mine and last.startswith("I") else named
    if not subject or words[0] not in _SHARING["I" if subject == "I" else ""]:
        return None
    said = f"{subject} {new}"
    return said if understand(said) else None


_JOINT_ZH: Final = re.compile(r"\s*[，,；;。！]+\s*")
_DEPENDENT_ZH: Final = re.compile(
    r"因为|所以|但|不过|虽然|如果|要是|的时候|[时后]\s*[，,]|然后|于是|因此|为了|觉得|认为|希望|听说|知道|只要"
    r"|除非|即使|不是|而是|一边|越来越|原来|当时|说(?!.{0,3}[语话文])|问|[：:“”\"]"
)
_POINTS_BACK_ZH: Final = re.compile(r"^(?:它|他|她|这|那|其|就|都|才|又|挺|很|真)")
_LEAD_ZH: Final = re.compile(r"^(?:并且|而且|同时|还有|还|也)")
_PREDICATE_ZH: Final = re.compile(
    r"^(?:最?喜欢|热爱|酷爱|爱|不喜欢|不爱|讨厌|住在|住(?=\w)|在.+?(?:上班|工作|任职)|是|养了?|对.+过敏|今年\d"
    r"|来自|会说|不吃|每天)"
)


def _continued_chinese(
    last: str, new: str, before: Statement | None, understand: Understand
) -> str | None:
    """The Chinese twin of `_continued_english`."""
    if len(new) < 3 or _POINTS_BACK_ZH.match(new) or (before is None and not last.startswith("我")):
        return None
    if new.startswith("我"):
        return new
    bare = _LEAD_ZH.sub("", new)
    if _PREDICATE_ZH.match(bare):
        # 我有一只猫，喜欢睡觉: of whom, the words do not tell.
        if before is None or before.slot == "has":
            return None
        said = f"{before.subject}{bare}"
        return said if understand(said) else None
    statement = understand(new)
    if before is None or statement is None:
        return None
    known = statement.subject == before.subject or statement.subject.startswith(before.subject)
    return new if known else None
