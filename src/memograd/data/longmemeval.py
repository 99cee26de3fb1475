"""Reading the official LongMemEval file format (arXiv 2410.10813).

A file is a JSON list of questions, each with its own history: `haystack_sessions` (lists of
messages with role, content and, where they hold the answer, `has_answer: true`),
`haystack_dates` and `haystack_session_ids`. Every question becomes one Conversation between
`user` and `assistant`. Turn ids are the official ones: session id, underscore, place in the
session from 1.

Invariants: evidence is exactly the messages that the file marks; what marks none is reported, never
in silence; anything else out of the ordinary is BadInput.

The format's traps, each with a test: some answers are integers; the oracle file does not sort its
sessions by time; messages outside answer sessions may carry no `has_answer`; a question whose id
ends in `_abs` has no answer in its history.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from memograd.data.conversation import Conversation, LoadReport, Question
from memograd.data.record_files import answer_text, field, moment, read_json, typed
from memograd.errors import BadInput
from memograd.memory import RawTurn

ROLES: Final = ("user", "assistant")
ABSTENTION: Final = "_abs"  # end of a question's id: the right answer is that nobody said it
DATE_PATTERN: Final = r"(\d+)/(\d+)/(\d+) \(\w+\) (\d+):(\d+)"
DATE_EXAMPLE: Final = "2023/05/30 (Tue) 23:40"


def load_longmemeval(path: Path | str) -> list[Conversation]:
    """One conversation a question; raises BadInput, in one sentence, when it is not in the format.

    What `load_longmemeval_with_report` finds peculiar is logged as a warning.
    """
    conversations, report = load_longmemeval_with_report(path)
    report.warn(path)
    return conversations


def load_longmemeval_with_report(path: Path | str) -> tuple[list[Conversation], LoadReport]:
    """The conversations of a file, and what was peculiar in it."""
    where = str(path)
    conversations: dict[str, Conversation] = {}
    for number, record in enumerate(typed(read_json(Path(path), "LongMemEval"), list, where)):
        conversation = _parse_record(record, f"{where}, question {number}")
        if conversation.id in conversations:
            raise BadInput(f"{where} has two questions with the id {conversation.id!r}.")
        conversations[conversation.id] = conversation
    without_evidence = [
        question.id
        for conversation in conversations.values()
        for question in conversation.questions
        if not question.evidence
    ]
    return list(conversations.values()), LoadReport(without_evidence=without_evidence)


def _parse_record(record: Any, where: str) -> Conversation:
    identity = field(record, "question_id", str, where)
    where = f"{where} ({identity})"
    turns: dict[str, RawTurn] = {}
    evidence: list[str] = []
    times: Counter[str] = Counter()
    for number, (name, time, messages) in enumerate(_sessions(record, where), start=1):
        # 13 of the official questions have a session twice: both are heard, the second as name~2.
        times[name] += 1
        if times[name] > 1:
            name = f"{name}~{times[name]}"
        for place, message in enumerate(messages, start=1):
            here = f"{where}, session {name!r}, message {place}"
            turn = RawTurn(
                id=f"{name}_{place}",
                speaker=_role(message, here),
                text=field(message, "content", str, here),
                time=time,
                session=number,
            )
            if turn.id in turns:
                raise BadInput(f"{where} has two turns with the id {turn.id!r}.")
            turns[turn.id] = turn
            if "has_answer" in message and field(message, "has_answer", bool, here):
                evidence.append(turn.id)
    question = Question(
        id=f"{identity}/q0",
        text=field(record, "question", str, where).strip(),
        answer=answer_text(record, "answer", where),
        category=field(record, "question_type", str, where),
        evidence=tuple(evidence),
        adversarial=identity.endswith(ABSTENTION),
        asked_at=moment(
            field(record, "question_date", str, where),
            DATE_PATTERN,
            f"'question_date' in {where}",
            DATE_EXAMPLE,
        ),
    )
    return Conversation.asked(identity, (ROLES[0], ROLES[1]), turns.values(), [question])


def _sessions(record: Any, where: str) -> list[tuple[str, datetime, list[Any]]]:
    """Id, time and messages of each session, earliest first."""
    columns = [
        field(record, f"haystack_{column}", list, where)
        for column in ("session_ids", "dates", "sessions")
    ]
    if len({len(column) for column in columns}) != 1:
        raise BadInput(
            f"{where} has {len(columns[0])} session ids, {len(columns[1])} dates and"
            f" {len(columns[2])} sessions: there must be as many of each."
        )
    sessions = []
    for number, (name, date, messages) in enumerate(zip(*columns, strict=True)):
        here = f"{where}, session {number}"
        time = moment(typed(date, str, f"the date of {here}"), DATE_PATTERN, here, DATE_EXAMPLE)
        sessions.append((typed(name, str, f"the id of {here}"), time, typed(messages, list, here)))
    return sorted(sessions, key=lambda session: session[1])


def _role(message: Any, where: str) -> str:
    role = field(message, "role", str, where)
    if role not in ROLES:
        raise BadInput(f"{where} has the role {role!r}: it must be one of {', '.join(ROLES)}.")
    return role
