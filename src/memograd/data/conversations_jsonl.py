"""Conversations in JSON, an object a line: those of your own, and the project's own long ones.

    {"id": "a", "turns": [{"speaker": "Ann", "text": "I moved to Oslo."}],
     "questions": [{"question": "Where does Ann live?", "answer": "Oslo", "evidence": ["t1"]}]}

(on one line). Every key is described in `docs/data.md`; what may be left out has these defaults:
turn ids `t1`, `t2`,...; the session of the turn before, from 1; the first two who speak as
speakers; question ids `<conversation>/q<position>`; category `question`.

The project's own (`corpus/conversations`) stand in sessions, and are read only:

    {"id", "speakers": [a, b], "sessions": [{"at": time, "turns": [[speaker, text], ...]}, ...],
     "questions": [{"q", "a", "evidence": ["session:turn", ...], "kind"}, ...]}

Sessions and turns are counted from 1; a question without evidence has no answer there.

Invariants: evidence names turns of the same conversation; what is written is read back equal, or
nothing is written; a key that the format of your own does not know is BadInput that names line and
field, so a misspelt one is never lost in silence.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from memograd.data.conversation import NOT_MENTIONED, Conversation, Question
from memograd.data.record_files import (
    answer_text,
    field,
    iso_time,
    json_lines,
    optional,
    texts,
    typed,
    write_whole,
)
from memograd.errors import BadInput
from memograd.memory import RawTurn
from memograd.memory.language import is_chinese

CATEGORY: Final = "question"
_CONVERSATION_KEYS: Final = ("id", "speakers", "turns", "questions")
_TURN_KEYS: Final = ("id", "speaker", "text", "time", "session", "caption")
_QUESTION_KEYS: Final = (
    *("id", "question", "answer", "category", "evidence", "asked_at", "choices", "accepted"),
    *("adversarial", "adversarial_answer"),
)


def load_conversations_jsonl(path: Path | str) -> list[Conversation]:
    """The conversations of a file, which may be gzipped; raises BadInput with line and field."""
    path = Path(path)
    conversations: dict[str, Conversation] = {}
    for number, record in json_lines(path, "JSONL"):
        where = f"{path}, line {number}"
        conversation = _parse(record, where)
        if conversation.id in conversations:
            raise BadInput(
                f"{where} has the id {conversation.id!r}, as a line above it: change it."
            )
        conversations[conversation.id] = conversation
    if not conversations:
        raise BadInput(f"The file {path} holds no conversation: give one object a line.")
    return list(conversations.values())


def write_conversations_jsonl(conversations: Sequence[Conversation], path: Path | str) -> None:
    """Write the format; raises BadInput when it cannot hold the conversations without loss."""
    lines = []
    for number, conversation in enumerate(conversations, start=1):
        record = _to_json(conversation)
        if _parse(record, f"conversation {number}") != conversation:
            raise BadInput(
                f"The conversation {conversation.id!r} does not fit into the format without loss:"
                " adversarial questions, and only they, belong to adversarial_questions, and no"
                " text may begin or end with spaces where it is a question or an answer."
            )
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    if len({conversation.id for conversation in conversations}) != len(conversations):
        raise BadInput("Two of the conversations have the same id: give each its own.")
    try:
        written = "".join(lines).encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"A text holds half of a character ({error}): mend it.") from None
    try:
        write_whole(Path(path), written)
    except OSError as error:
        raise BadInput(f"The file {path} cannot be written ({error.strerror}).") from None


def _parse(record: Any, where: str) -> Conversation:
    _only(record, _CONVERSATION_KEYS, where)
    identity = field(record, "id", str, where)
    turns: dict[str, RawTurn] = {}
    session = 1
    for place, one in enumerate(field(record, "turns", list, where)):
        turn = _parse_turn(one, place, session, f"{where}, turns[{place}]")
        if turn.id in turns:
            raise BadInput(f"{where}, turns[{place}] has the id {turn.id!r} of a turn before it.")
        turns[turn.id] = turn
        session = turn.session
    if not turns:
        raise BadInput(f"{where} has no turns: a conversation needs at least one.")
    listed: list[Any] = optional(record, "questions", list, where, [])
    questions = [
        _parse_question(one, f"{identity}/q{place}", turns, f"{where}, questions[{place}]")
        for place, one in enumerate(listed)
    ]
    if len({question.id for question in questions}) != len(questions):
        raise BadInput(f"{where} has two questions with the same id: give each its own.")
    times = [*(turn.time for turn in turns.values()), *(one.asked_at for one in questions)]
    if len({time.tzinfo is None for time in times if time}) > 1:
        raise BadInput(f"{where} has times with and without a time zone: write all of one kind.")
    speakers = _speakers(record, list(turns.values()), where)
    return Conversation.asked(identity, speakers, turns.values(), questions)


def _parse_turn(record: Any, place: int, session: int, where: str) -> RawTurn:
    _only(record, _TURN_KEYS, where)
    return RawTurn(
        id=optional(record, "id", str, where, f"t{place + 1}"),
        speaker=field(record, "speaker", str, where),
        text=field(record, "text", str, where),
        time=_time(record, "time", where),
        session=optional(record, "session", int, where, session),
        caption=optional(record, "caption", str, where, None),
    )


def _parse_question(record: Any, name: str, turns: dict[str, RawTurn], where: str) -> Question:
    _only(record, _QUESTION_KEYS, where)
    adversarial = optional(record, "adversarial", bool, where, False)
    evidence = texts(record, "evidence", where)
    for turn_id in evidence:
        if turn_id not in turns:
            raise BadInput(f"'evidence' in {where} names {turn_id!r}, which is the id of no turn.")
    return Question(
        id=optional(record, "id", str, where, name),
        text=field(record, "question", str, where).strip(),
        answer=(
            NOT_MENTIONED
            if adversarial and "answer" not in record
            else answer_text(record, "answer", where)
        ),
        category=optional(record, "category", str, where, CATEGORY),
        evidence=evidence,
        adversarial=adversarial,
        adversarial_answer=(
            answer_text(record, "adversarial_answer", where)
            if "adversarial_answer" in record
            else None
        ),
        asked_at=_time(record, "asked_at", where),
        choices=texts(record, "choices", where),
        accepted=texts(record, "accepted", where),
    )


def _speakers(record: Any, turns: list[RawTurn], where: str) -> tuple[str, str]:
    """The two that are named, else the first two who speak, else one and the assistant."""
    if "speakers" in record:
        named = texts(record, "speakers", where)
        if len(named) != 2:
            raise BadInput(f"'speakers' in {where} must be two names, not {len(named)}.")
        return named[0], named[1]
    heard = list(dict.fromkeys(turn.speaker for turn in turns))
    listener = "助手" if is_chinese(" ".join(turn.text for turn in turns)) else "assistant"
    return heard[0], heard[1] if len(heard) > 1 else listener


def _time(record: Any, key: str, where: str) -> datetime | None:
    return None if record.get(key) is None else iso_time(record, key, where)


def _only(record: Any, known: Sequence[str], where: str) -> None:
    for key in typed(record, dict, where):
        if key not in known:
            raise BadInput(f"{where} has the unknown key {key!r}: known are {', '.join(known)}.")


def _to_json(conversation: Conversation) -> dict[str, Any]:
    questions = (*conversation.questions, *conversation.adversarial_questions)
    return {
        "id": conversation.id,
        "speakers": list(conversation.speakers),
        "turns": [turn.to_json() for turn in conversation.turns],
        "questions": [
            _question_to_json(question, f"{conversation.id}/q{place}")
            for place, question in enumerate(questions)
        ],
    }


def _question_to_json(question: Question, name: str) -> dict[str, Any]:
    record: dict[str, Any] = {"question": question.text, "answer": question.answer}
    if question.id != name:
        record = {"id": question.id, **record}
    record["category"] = question.category
    more = {
        "evidence": list(question.evidence),
        "adversarial": question.adversarial,
        "adversarial_answer": question.adversarial_answer,
        "asked_at": question.asked_at.isoformat() if question.asked_at else None,
        "choices": list(question.choices),
        "accepted": list(question.accepted),
    }
    return record | {key: value for key, value in more.items() if value not in (None, False, [])}


def load_written_conversations(path: Path | str) -> list[Conversation]:
    """The conversations of a file; raises BadInput, with the line, for what is none."""
    conversations: dict[str, Conversation] = {}
    for number, record in json_lines(Path(path), "conversations"):
        where = f"{path}, line {number}"
        conversation = _written_conversation(record, where)
        if conversation.id in conversations:
            raise BadInput(f"{where} repeats the id {conversation.id!r}.")
        conversations[conversation.id] = conversation
    return list(conversations.values())


def _written_conversation(record: Any, where: str) -> Conversation:
    identity = field(record, "id", str, where)
    speakers = field(record, "speakers", list, where)
    if len(speakers) != 2 or not all(isinstance(name, str) for name in speakers):
        raise BadInput(f"{where} needs two names as speakers.")
    turns: dict[str, RawTurn] = {}
    for session, said in enumerate(field(record, "sessions", list, where), start=1):
        here = f"{where}, session {session}"
        time = iso_time(said, "at", here)
        for place, turn in enumerate(field(said, "turns", list, here), start=1):
            if not (isinstance(turn, list) and len(turn) >= 2):
                raise BadInput(f"{here}, turn {place} must be [speaker, text].")
            speaker = typed(turn[0], str, f"the speaker of {here}, turn {place}")
            text = typed(turn[1], str, f"the text of {here}, turn {place}")
            turns[f"{session}:{place}"] = RawTurn(
                f"{session}:{place}", speaker, text, time, session
            )
    questions = [
        _written_question(one, turns, f"{identity}/q{number}", f"{where}, question {number}")
        for number, one in enumerate(field(record, "questions", list, where))
    ]
    return Conversation.asked(identity, (speakers[0], speakers[1]), turns.values(), questions)


def _written_question(
    record: Any, turns: dict[str, RawTurn], identity: str, where: str
) -> Question:
    evidence = field(record, "evidence", list, where)
    unknown = [one for one in evidence if one not in turns]
    if unknown:
        raise BadInput(f"{where} names evidence that is not there: {unknown[0]!r}.")
    answerless = not evidence
    return Question(
        id=identity,
        text=field(record, "q", str, where),
        answer=NOT_MENTIONED if answerless else field(record, "a", str, where),
        category=field(record, "kind", str, where),
        evidence=tuple(evidence),
        adversarial=answerless,
    )
