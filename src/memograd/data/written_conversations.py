"""The project's own long conversations (`corpus/conversations`): one a line, in sessions.

    {"id", "speakers": [a, b], "sessions": [{"at": time, "turns": [[speaker, text], ...]}, ...],
     "questions": [{"q", "a", "evidence": ["session:turn", ...], "kind"}, ...]}

Sessions and turns are counted from 1; a question without evidence has no answer there. Invariant:
evidence names turns of the same conversation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memograd.data.conversation import NOT_MENTIONED, Conversation, Question
from memograd.data.record_files import field, iso_time, json_lines, typed
from memograd.errors import BadInput
from memograd.memory import RawTurn


def load_written_conversations(path: Path | str) -> list[Conversation]:
    """The conversations of a file; raises BadInput, with the line, for what is none."""
    conversations: dict[str, Conversation] = {}
    for number, record in json_lines(Path(path), "conversations"):
        where = f"{path}, line {number}"
        conversation = _conversation(record, where)
        if conversation.id in conversations:
            raise BadInput(f"{where} repeats the id {conversation.id!r}.")
        conversations[conversation.id] = conversation
    return list(conversations.values())


def _conversation(record: Any, where: str) -> Conversation:
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
        _question(one, turns, f"{identity}/q{number}", f"{where}, question {number}")
        for number, one in enumerate(field(record, "questions", list, where))
    ]
    return Conversation(
        id=identity,
        speakers=(speakers[0], speakers[1]),
        turns=tuple(turns.values()),
        questions=tuple(one for one in questions if not one.adversarial),
        adversarial_questions=tuple(one for one in questions if one.adversarial),
    )


def _question(record: Any, turns: dict[str, RawTurn], identity: str, where: str) -> Question:
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
