"""What is read chunk by chunk, and what a memory of it must and must not hold.

A question is judged by words: the parts of its gold answer, each told in some chunk, and statements
that mislead, known by the rare words that only they have. A question whose answer stands in none of
the statements that it needs ("which came first?") cannot be judged so; it is left out and counted.

Invariants: chunks never cross a session; a question asks for nothing that is told after it is
asked; cutting a case to its first chunks leaves exactly the questions about them, with the same
answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

import regex

from memograd.data.conversation import ConstructionCase, Question
from memograd.data.lifelog.types import Lifelog, Probe, ToldStatement
from memograd.errors import BadInput
from memograd.memory import RawTurn
from memograd.memory.analysis import analyse
from memograd.memory.language import Language, language_of
from memograd.memory.records.operations import OpKind
from memograd.rewards.matching import has_phrase

_BETWEEN_PARTS: Final = regex.compile(r"(?<=\S)(?:, |，|、|; |；)(?=\S)")


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """One thing that an answer consists of: any of `texts`, told in chunk `since`."""

    texts: tuple[str, ...]
    since: int

    def stands_in(self, text: str) -> bool:
        """Whether a text says it."""
        return any(has_phrase(text, one) for one in self.texts)


@dataclass(frozen=True, slots=True)
class Misleading:
    """A statement that spoils the answer from chunk `since` on, by the terms that give it away."""

    terms: tuple[str, ...]
    since: int

    def stands_in(self, terms: Sequence[str]) -> bool:
        """Whether a text of these terms says it."""
        return set(self.terms) <= set(terms)


@dataclass(frozen=True, slots=True)
class CaseQuestion:
    """A question, asked after chunk number `after`.

    No parts: the right answer is that nothing is known, and what misleads must not be found.
    """

    question: Question
    after: int
    parts: tuple[AnswerPart, ...]
    misleading: tuple[Misleading, ...] = ()

    def parts_at(self, now: int) -> tuple[AnswerPart, ...]:
        """What of the answer was told up to chunk `now`."""
        return tuple(part for part in self.parts if part.since <= now)

    def golds_at(self, now: int) -> tuple[str, ...]:
        """The right answers at chunk `now`: of what was told by then, where that is not all."""
        told = self.parts_at(now)
        if len(told) == len(self.parts):
            return (self.question.answer, *self.question.accepted)
        return (", ".join(part.texts[0] for part in told),)

    def misleading_at(self, now: int) -> tuple[Misleading, ...]:
        """What misleads once chunk `now` was told."""
        return tuple(one for one in self.misleading if one.since <= now)

    def open_at(self, now: int) -> bool:
        """Whether it is asked after chunk `now` or later, and can be judged by then."""
        if now > self.after:
            return False
        return bool(self.parts_at(now) if self.parts else self.misleading_at(now))

    def concerns(self, chunk: int) -> bool:
        """Whether chunk number `chunk` tells something that it is about."""
        return chunk in [part.since for part in self.parts] or chunk in [
            one.since for one in self.misleading
        ]


@dataclass(frozen=True, slots=True)
class Chunk:
    """What is read at once; `statements` with gold operations, where the data know them."""

    text: str
    statements: tuple[ToldStatement, ...] = ()


@dataclass(frozen=True)
class BuildCase:
    """Chunks in order, and the questions about them. unjudged: how many could not be judged."""

    id: str
    language: Language
    chunks: tuple[Chunk, ...]
    asked: tuple[CaseQuestion, ...]
    unjudged: int = 0

    def first_chunks(self, count: int) -> BuildCase:
        """The case cut to its first chunks, with the questions about them.

        An answer that was right later is right at the cut too if all of it was told before: a
        change in between would have made it wrong.
        """
        if count >= len(self.chunks):
            return self
        kept = []
        for one in self.asked:
            misleading = one.misleading_at(count - 1)
            told = len(one.parts_at(count - 1)) == len(one.parts)
            if told and (one.parts or misleading):
                after = min(one.after, count - 1)
                kept.append(replace(one, after=after, misleading=misleading))
        return replace(self, chunks=self.chunks[:count], asked=tuple(kept))

    @property
    def gold(self) -> bool:
        """Whether every statement has a gold operation."""
        statements = [one for chunk in self.chunks for one in chunk.statements]
        return bool(statements) and all(one.gold is not None for one in statements)


def case_of_log(log: Lifelog, *, turns_per_chunk: int) -> BuildCase:
    """A life log in chunks of so many turns of one session; every probe at its time.

    Raises BadInput for fewer than one turn.
    """
    groups = grouped_turns(log.turns, turns_per_chunk)
    chunk_of_turn = {turn.id: place for place, group in enumerate(groups) for turn in group}
    told: list[list[ToldStatement]] = [[] for _ in groups]
    for statement in log.statements:
        told[chunk_of_turn[statement.turn_id]].append(statement)
    lookup = _Lookup(log, {one.id: place for place, group in enumerate(told) for one in group})
    asked = [lookup.asked(probe) for probe in log.probes]
    return BuildCase(
        id=log.id,
        language="zh" if log.language == "zh" else "en",
        chunks=tuple(
            Chunk("\n".join(turn.render() for turn in group), tuple(statements))
            for group, statements in zip(groups, told, strict=True)
        ),
        asked=tuple(one for one in asked if one is not None),
        unjudged=sum(one is None for one in asked),
    )


def grouped_turns(turns: Sequence[RawTurn], turns_per_chunk: int) -> list[list[RawTurn]]:
    """The turns of every chunk: so many of one session, fewer at its end."""
    if turns_per_chunk < 1:
        raise BadInput(f"turns_per_chunk is {turns_per_chunk}: it must be at least 1.")
    groups: list[list[RawTurn]] = []
    for _, session in groupby(turns, key=lambda turn: turn.session):
        said = list(session)
        starts = range(0, len(said), turns_per_chunk)
        groups += [said[start : start + turns_per_chunk] for start in starts]
    return groups


def case_of_construction(case: ConstructionCase) -> BuildCase:
    """A case of public data; its questions are asked after the last chunk.

    A question without evidence may have its answer anywhere; one that has no answer to find cannot
    be judged.
    """
    judged = [
        (question, positions)
        for question, positions in zip(case.questions, case.evidence, strict=True)
        if question.answer.strip() and not question.adversarial
    ]
    return BuildCase(
        id=case.id,
        language=language_of(case.chunks[0]),
        chunks=tuple(Chunk(text) for text in case.chunks),
        asked=tuple(
            CaseQuestion(
                question,
                after=len(case.chunks) - 1,
                parts=(
                    AnswerPart((question.answer, *question.accepted), max(positions, default=0)),
                ),
            )
            for question, positions in judged
        ),
        unjudged=len(case.questions) - len(judged),
    )


class _Lookup:
    """What the statements of a log say about its probes."""

    def __init__(self, log: Lifelog, chunk_of: dict[str, int]) -> None:
        self._statements = {one.id: one for one in log.statements}
        self._chunk_of = chunk_of
        self._ordered = list(log.statements)
        self._terms = {one.id: frozenset(analyse(one.text)) for one in log.statements}
        self._spread = Counter(term for terms in self._terms.values() for term in terms)
        self._superseded: dict[str, str] = {}
        for one in log.statements:
            if one.gold and one.gold.target and one.gold.kind in (OpKind.UPDATE, OpKind.DELETE):
                self._superseded.setdefault(one.gold.target, one.id)

    def asked(self, probe: Probe) -> CaseQuestion | None:
        """The probe as it is judged here; None if words cannot judge it."""
        question = probe.question
        misleading = self._misleading(probe)
        parts = self._parts(probe)
        if parts is None or not (parts or misleading):
            return None
        before = [one.id for one in self._ordered if one.told_at <= probe.asked_at]
        after = self._chunk_of[before[-1]] if before else 0
        return CaseQuestion(question, after, parts, misleading)

    def _parts(self, probe: Probe) -> tuple[AnswerPart, ...] | None:
        if not probe.needed:
            return ()
        needed = [self._statements[name] for name in probe.needed]
        question = probe.question
        whole = AnswerPart((question.answer, *question.accepted), 0)
        split = [AnswerPart((text,), 0) for text in _BETWEEN_PARTS.split(question.answer)]
        for parts in ([whole], split):
            placed = []
            for part in parts:
                tells = [self._chunk_of[one.id] for one in needed if part.stands_in(one.text)]
                if tells:
                    placed.append(replace(part, since=min(tells)))
            if len(placed) == len(parts):
                return tuple(placed)
        return None

    def _misleading(self, probe: Probe) -> tuple[Misleading, ...]:
        """By the rarest terms that neither the question nor what it needs has."""
        known = set(analyse(probe.question.text))
        known.update(*(self._terms[name] for name in probe.needed))
        found = []
        for name in probe.misleading:
            own = sorted(self._terms[name] - known)
            if own:
                rarest = min(self._spread[term] for term in own)
                terms = tuple(term for term in own if self._spread[term] == rarest)
                since = self._chunk_of[self._superseded.get(name, name)]
                found.append(Misleading(terms, since))
        return tuple(found)
