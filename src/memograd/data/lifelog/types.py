"""What a memory policy learns from: a life told in small statements, and questions that come later.

A `Lifelog` is a conversation with two things more than any transcript has: the *statements* that a
reader finds in it, one by one, in the order in which they were told, and *probes*, questions that
know which statements they need and which would mislead. Generated logs also know the gold
operation of each statement. A real conversation becomes a log by `lifelog_of`: every turn is a
statement, every question with evidence a probe, and `gold` is None.

Invariants: statements stand in the order of telling; a probe's statements exist and were told
before it is asked; a gold target is an earlier statement; the needed statements of a real
conversation's probe are exactly its evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from memograd.data.conversation import Conversation, Question
from memograd.errors import BadInput
from memograd.memory import RawTurn
from memograd.memory.records.operations import OpKind


@dataclass(frozen=True, slots=True)
class GoldOp:
    """What a careful keeper of the memory does with a statement.

    target: for UPDATE and DELETE, the earlier statement whose item is rewritten or closed; for a
    NONE that repeats, the statement that said it already; else None.
    """

    kind: OpKind
    target: str | None = None


@dataclass(frozen=True, slots=True)
class ToldStatement:
    """One thing that was said, as a reader writes it down: speakers named, dates absolute.

    id: unique in its log. turn_id: the raw turn that says it. retracts: it asks to forget what
    `text` names, or takes it back. subject: who or what it is about, empty where unknown.
    """

    id: str
    turn_id: str
    text: str
    told_at: datetime
    gold: GoldOp | None = None
    retracts: bool = False
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """A question with what a memory must hold, and must not hold, to answer it.

    needed: statements that together hold the answer; none where the right answer is that nothing
    is known. misleading: statements that spoil the answer when they are found: superseded values,
    hearsay that was wrong, what was asked to be forgotten. `question.asked_at` is never None.
    """

    question: Question
    needed: tuple[str, ...]
    misleading: tuple[str, ...] = ()

    @property
    def asked_at(self) -> datetime:
        """When the question is asked; what was told later does not count."""
        assert self.question.asked_at is not None  # a log refuses others
        return self.question.asked_at


@dataclass(frozen=True)
class Lifelog:
    """One life told over weeks: turns, the statements in them, the questions that come later.

    language: `en` or `zh`. Raises BadInput where the parts do not fit each other.
    """

    id: str
    language: str
    speakers: tuple[str, str]
    turns: tuple[RawTurn, ...]
    statements: tuple[ToldStatement, ...]
    probes: tuple[Probe, ...]

    def __post_init__(self) -> None:
        turns = {turn.id for turn in self.turns}
        told: dict[str, datetime] = {}
        last: datetime | None = None
        for statement in self.statements:
            where = f"The statement {statement.id!r} of the log {self.id!r}"
            if statement.id in told:
                raise BadInput(f"{where} is there twice: give every statement its own id.")
            if statement.turn_id not in turns:
                raise BadInput(f"{where} names the turn {statement.turn_id!r}, which is missing.")
            if last is not None and statement.told_at < last:
                raise BadInput(f"{where} was told before the one above it: order them by time.")
            target = statement.gold.target if statement.gold else None
            if target is not None and target not in told:
                raise BadInput(f"{where} has the target {target!r}, which is no earlier statement.")
            told[statement.id] = last = statement.told_at
        for probe in self.probes:
            where = f"The question {probe.question.id!r} of the log {self.id!r}"
            if probe.question.asked_at is None:
                raise BadInput(f"{where} has no time: say when it is asked.")
            for name in (*probe.needed, *probe.misleading):
                if name not in told or told[name] > probe.asked_at:
                    raise BadInput(f"{where} names {name!r}, which is no statement told before it.")

    def conversation(self) -> Conversation:
        """The same as a conversation with questions, as every other task takes it."""
        asked = [probe.question for probe in self.probes]
        return Conversation(
            self.id,
            self.speakers,
            self.turns,
            tuple(question for question in asked if not question.adversarial),
            tuple(question for question in asked if question.adversarial),
        )


UNDATED = datetime(2000, 1, 1)  # where no turn of a conversation has a time


def lifelog_of(conversation: Conversation, language: str) -> Lifelog:
    """The conversation as a life log without gold operations.

    A statement's text is what is embedded of its turn (`RawTurn.index_text`), its id the turn's.
    Turns keep their order: one without a time, or dated before the one ahead of it (some sets'
    clocks run backwards), counts as told when the one before it was. In the same way, a question is
    asked at its time, but never before its evidence; at the end where it has none. Questions
    without evidence are left out, and adversarial ones too: nobody says which turns would mislead
    there, so every memory, even an empty one, would hold all that they need, and they could not
    tell a good memory from a bad one.
    Raises BadInput where ids are there twice.
    """
    statements = []
    asked = (question.asked_at for question in conversation.questions)
    known = [time for time in (*(turn.time for turn in conversation.turns), *asked) if time]
    # Times with a time zone can be compared with their like only.
    undated = UNDATED.replace(tzinfo=known[0].tzinfo) if known else UNDATED
    last = next((turn.time for turn in conversation.turns if turn.time), undated)
    for turn in conversation.turns:
        last = max(turn.time or last, last)
        statements.append(
            ToldStatement(turn.id, turn.id, turn.index_text(), last, subject=turn.speaker)
        )
    told = {statement.id: statement.told_at for statement in statements}
    probes = []
    for question in conversation.questions:
        if question.evidence:
            told_last = max(told[name] for name in question.evidence)
            asked_at = max(question.asked_at or last, told_last)
            probes.append(Probe(replace(question, asked_at=asked_at), question.evidence))
    return Lifelog(
        id=conversation.id,
        language=language,
        speakers=conversation.speakers,
        turns=conversation.turns,
        statements=tuple(statements),
        probes=tuple(probes),
    )
