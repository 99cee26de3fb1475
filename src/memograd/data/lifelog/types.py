"""What a memory policy learns from: a life told in small statements, and questions that come later.

A `Lifelog` is a conversation with two things more than any transcript has: the *statements* that a
reader finds in it, one by one, in the order in which they were told, and *probes*, questions that
know which statements they need and which would mislead. Generated logs also know the gold
operation of each statement. A real conversation becomes a log by `lifelog_of`: every turn is a
statement, every question with evidence a probe, and `gold` is None. Files hold one log a line, in
the format of `docs/lifelog.md`.

Invariants: statements stand in the order of telling; a probe's statements exist and were told
before it is asked; a gold target is an earlier statement; the needed statements of a real
conversation's probe are exactly its evidence; what `write_lifelogs` writes, `read_lifelogs` reads
back equal, and a line that is wrong is BadInput with its number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from memograd.data.conversation import Conversation, Question
from memograd.data.record_files import (
    as_lines,
    field,
    iso_time,
    json_lines,
    optional,
    texts,
    write_whole,
)
from memograd.errors import BadInput
from memograd.memory import RawTurn
from memograd.memory.records.operations import OpKind

LANGUAGES = ("en", "zh")


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
        return Conversation.asked(self.id, self.speakers, self.turns, asked)


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


def write_lifelogs(logs: Iterable[Lifelog], path: Path | str) -> None:
    """One log a line; raises BadInput when the file cannot be written."""
    try:
        write_whole(Path(path), as_lines(map(_log_to_json, logs)).encode())
    except OSError as error:
        raise BadInput(f"The file {path} cannot be written ({error.strerror}).") from None


def read_lifelogs(path: Path | str) -> list[Lifelog]:
    """The logs of a file; raises BadInput, naming file and line, where it is not in the format."""
    if not Path(path).exists():
        raise BadInput(
            f"There is no file {path}: make one with `memograd data generate --out {path}`."
        )
    logs: dict[str, Lifelog] = {}
    for number, record in json_lines(Path(path), "life logs"):
        where = f"{path}:{number}"
        log = _log_from_json(record, where)
        if log.id in logs:
            raise BadInput(f"{where} has the id {log.id!r} of an earlier log: rename one of them.")
        logs[log.id] = log
    if not logs:
        raise BadInput(f"The file {path} holds no life log.")
    return list(logs.values())


def _log_to_json(log: Lifelog) -> dict[str, Any]:
    return {
        "id": log.id,
        "language": log.language,
        "speakers": list(log.speakers),
        "turns": [turn.to_json() for turn in log.turns],
        "statements": [_statement_to_json(statement) for statement in log.statements],
        "probes": [_probe_to_json(probe) for probe in log.probes],
    }


def _statement_to_json(statement: ToldStatement) -> dict[str, Any]:
    values: dict[str, Any] = {
        "id": statement.id,
        "turn_id": statement.turn_id,
        "text": statement.text,
        "told_at": statement.told_at.isoformat(),
    }
    if statement.gold is not None:
        values["gold"] = {"kind": statement.gold.kind.value}
        if statement.gold.target is not None:
            values["gold"]["target"] = statement.gold.target
    if statement.retracts:
        values["retracts"] = True
    if statement.subject:
        values["subject"] = statement.subject
    return values


def _probe_to_json(probe: Probe) -> dict[str, Any]:
    question = probe.question
    values: dict[str, Any] = {
        "id": question.id,
        "question": question.text,
        "answer": question.answer,
        "category": question.category,
        "asked_at": probe.asked_at.isoformat(),
        "evidence": list(question.evidence),
        "needed": list(probe.needed),
        "misleading": list(probe.misleading),
    }
    if question.adversarial:
        values["adversarial"] = True
    if question.adversarial_answer is not None:
        values["adversarial_answer"] = question.adversarial_answer
    if question.choices:
        values["choices"] = list(question.choices)
    if question.accepted:
        values["accepted"] = list(question.accepted)
    return values


def _log_from_json(record: Any, where: str) -> Lifelog:
    language = field(record, "language", str, where)
    if language not in LANGUAGES:
        raise BadInput(f"{where} has the language {language!r}: it must be en or zh.")
    speakers = texts(record, "speakers", where, needed=True)
    if len(speakers) != 2:
        raise BadInput(f"{where} has {len(speakers)} speakers: there must be two.")
    parts: dict[str, list[Any]] = {
        key: field(record, key, list, where) for key in ("turns", "statements", "probes")
    }
    turns = [_turn(one, f"{where}, turn {place}") for place, one in enumerate(parts["turns"])]
    statements = [
        _statement(one, f"{where}, statement {place}")
        for place, one in enumerate(parts["statements"])
    ]
    probes = [_probe(one, f"{where}, probe {place}") for place, one in enumerate(parts["probes"])]
    # Checked here, since a log compares the times, and everything else goes by the ids.
    times = [*(turn.time for turn in turns), *(one.told_at for one in statements)]
    times += [probe.asked_at for probe in probes]
    if len({time.tzinfo is None for time in times if time}) > 1:
        raise BadInput(f"{where} has times with and without a time zone: write all of one kind.")
    heard = {turn.id for turn in turns}
    if len(heard) < len(turns):
        raise BadInput(f"{where} has two turns with the same id: give each its own.")
    if len({probe.question.id for probe in probes}) < len(probes):
        raise BadInput(f"{where} has two questions with the same id: give each its own.")
    for probe in probes:
        for name in probe.question.evidence:
            if name not in heard:
                raise BadInput(
                    f"{where}: the evidence of {probe.question.id!r} names {name!r}, which is the"
                    " id of no turn."
                )
    try:
        return Lifelog(
            id=field(record, "id", str, where),
            language=language,
            speakers=(speakers[0], speakers[1]),
            turns=tuple(turns),
            statements=tuple(statements),
            probes=tuple(probes),
        )
    except BadInput as error:
        message = str(error)
        raise BadInput(message if where in message else f"{where}: {message}") from None


def _turn(record: Any, where: str) -> RawTurn:
    for key in ("id", "speaker", "text"):
        field(record, key, str, where)
    field(record, "session", int, where)
    if "time" in record:
        iso_time(record, "time", where)
    if "caption" in record:
        field(record, "caption", str, where)
    return RawTurn.from_json(record)


def _statement(record: Any, where: str) -> ToldStatement:
    return ToldStatement(
        id=field(record, "id", str, where),
        turn_id=field(record, "turn_id", str, where),
        text=field(record, "text", str, where),
        told_at=iso_time(record, "told_at", where),
        gold=_gold(record["gold"], where) if "gold" in record else None,
        retracts=optional(record, "retracts", bool, where, False),
        subject=optional(record, "subject", str, where, ""),
    )


def _gold(record: Any, where: str) -> GoldOp:
    kind = field(record, "kind", str, f"the gold operation of {where}")
    if kind not in OpKind.__members__:
        raise BadInput(f"{where} has the gold operation {kind!r}: {', '.join(OpKind)} are known.")
    target = optional(record, "target", str, where, None)
    if target is None and kind in (OpKind.UPDATE, OpKind.DELETE):
        raise BadInput(f"{where} has the gold operation {kind} without a target: say of what.")
    return GoldOp(OpKind(kind), target)


def _probe(record: Any, where: str) -> Probe:
    question = Question(
        id=field(record, "id", str, where),
        text=field(record, "question", str, where),
        answer=field(record, "answer", str, where),
        category=field(record, "category", str, where),
        evidence=texts(record, "evidence", where, needed=True),
        adversarial=optional(record, "adversarial", bool, where, False),
        adversarial_answer=optional(record, "adversarial_answer", str, where, None),
        asked_at=iso_time(record, "asked_at", where),
        choices=texts(record, "choices", where),
        accepted=texts(record, "accepted", where),
    )
    needed, misleading = (
        texts(record, key, where, needed=True) for key in ("needed", "misleading")
    )
    return Probe(question, needed, misleading)
