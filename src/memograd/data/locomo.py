"""The official LoCoMo file format (arXiv 2402.17753).

A file is a JSON list of conversations: `session_1`, `session_2`,... with one date each, and `qa`.
Invariants: all evidence that is kept names a turn, and what names none is dropped and counted,
never in silence; anything else out of the ordinary is BadInput.

The format's traps, each with a test: adversarial questions carry `adversarial_answer` instead of
`answer`; some answers are integers; one evidence string may name several turns; dates exist for
sessions that do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from memograd.data.conversation import NOT_MENTIONED, Conversation, LoadReport, Question
from memograd.data.record_files import answer_text, field, optional, read_json, typed
from memograd.errors import BadInput
from memograd.memory import RawTurn

CATEGORIES: Final = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
DATE_FORMAT: Final = "%I:%M %p on %d %B, %Y"  # 1:56 pm on 8 May, 2023


def load_locomo(path: Path | str) -> list[Conversation]:
    """The conversations of a file; raises BadInput, in one sentence, when it is not in the format.

    What `load_locomo_with_report` finds peculiar is logged as warnings.
    """
    conversations, report = load_locomo_with_report(path)
    report.warn(path)
    return conversations


def load_locomo_with_report(path: Path | str) -> tuple[list[Conversation], LoadReport]:
    """The conversations of a file, and what was peculiar in it."""
    return parse_locomo(read_json(Path(path), "LoCoMo"), str(path))


def parse_locomo(payload: Any, where: str) -> tuple[list[Conversation], LoadReport]:
    """The conversations in a parsed file; `where` names it in the sentence of a BadInput."""
    report = LoadReport()
    conversations: dict[str, Conversation] = {}
    for number, record in enumerate(typed(payload, list, where)):
        conversation = _parse_conversation(record, f"{where}, conversation {number}", report)
        if conversation.id in conversations:
            raise BadInput(f"{where} has two conversations with the id {conversation.id!r}.")
        conversations[conversation.id] = conversation
    report.without_evidence += [
        question.id
        for conversation in conversations.values()
        for question in (*conversation.questions, *conversation.adversarial_questions)
        if not question.evidence
    ]
    return list(conversations.values()), report


def _parse_conversation(record: Any, where: str, report: LoadReport) -> Conversation:
    identity = field(record, "sample_id", str, where)
    where = f"{where} ({identity})"
    spoken = field(record, "conversation", dict, where)
    speakers = (
        field(spoken, "speaker_a", str, where),
        field(spoken, "speaker_b", str, where),
    )
    turns: dict[str, RawTurn] = {}
    for session in sorted(_session_numbers(spoken)):
        name = f"session_{session}"
        time = _parse_time(field(spoken, f"{name}_date_time", str, where), f"{where}, {name}")
        for record_of_turn in field(spoken, name, list, where):
            turn = _parse_turn(record_of_turn, session, time, f"{where}, {name}")
            if turn.id in turns:
                raise BadInput(f"{where} has two turns with the id {turn.id!r}.")
            turns[turn.id] = turn
    questions = [
        _parse_question(question, f"{identity}/q{position}", turns, where, report)
        for position, question in enumerate(field(record, "qa", list, where))
    ]
    return Conversation.asked(identity, speakers, turns.values(), questions)


def _session_numbers(spoken: dict[str, Any]) -> Iterable[int]:
    """The sessions that took place; the files also hold dates of sessions that did not."""
    for key in spoken:
        if match := re.fullmatch(r"session_(\d+)", key):
            yield int(match[1])


def _parse_turn(record: Any, session: int, time: datetime, where: str) -> RawTurn:
    return RawTurn(
        id=field(record, "dia_id", str, where),
        speaker=field(record, "speaker", str, where),
        text=field(record, "text", str, where),
        time=time,
        session=session,
        caption=optional(record, "blip_caption", str, where, None),
    )


def _parse_question(
    record: Any, identity: str, turns: dict[str, RawTurn], where: str, report: LoadReport
) -> Question:
    where = f"{where}, question {identity}"
    number = field(record, "category", int, where)
    if number not in CATEGORIES:
        raise BadInput(f"{where} has the category {number}: LoCoMo's categories are 1 to 5.")
    adversarial = CATEGORIES[number] == "adversarial"
    evidence: list[str] = []
    for text in field(record, "evidence", list, where):
        ids = _evidence_ids(typed(text, str, f"the evidence of {where}"))
        evidence += [turn_id for turn_id in ids if turn_id in turns]
        report.unresolved += [(identity, text) for turn_id in ids or [""] if turn_id not in turns]
    return Question(
        id=identity,
        text=field(record, "question", str, where).strip(),
        answer=(
            NOT_MENTIONED
            if adversarial and "answer" not in record
            else answer_text(record, "answer", where)
        ),
        category=CATEGORIES[number],
        evidence=tuple(dict.fromkeys(evidence)),
        adversarial=adversarial,
        adversarial_answer=(
            answer_text(record, "adversarial_answer", where)
            if "adversarial_answer" in record
            else None
        ),
    )


def _evidence_ids(text: str) -> list[str]:
    """`D8:6; D9:17` names two turns, `D30:05` is D30:5; anything else that is left names none."""
    return [f"D{int(session)}:{int(turn)}" for session, turn in re.findall(r"D:?(\d+):(\d+)", text)]


def _parse_time(text: str, where: str) -> datetime:
    try:
        return datetime.strptime(text.strip(), DATE_FORMAT)
    except ValueError:
        raise BadInput(
            f"{where} has the date {text!r}: write it like '1:56 pm on 8 May, 2023'."
        ) from None
