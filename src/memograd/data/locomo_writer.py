"""Writing the official LoCoMo file format.

Invariant: what `write_locomo` writes, `load_locomo` reads back equal, or nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from memograd.data.conversation import NOT_MENTIONED, Conversation, Question
from memograd.data.locomo import CATEGORIES, parse_locomo
from memograd.errors import BadInput
from memograd.memory import MONTHS, RawTurn

CATEGORY_NUMBERS: Final = {name: number for number, name in CATEGORIES.items()}


def write_locomo(conversations: Sequence[Conversation], path: Path | str) -> None:
    """Write the official format; raises BadInput when it cannot hold them without loss.

    The format has minutes without time zones, one time a session, and no question ids other than
    `conversation/q<position>`.
    """
    payload = [_conversation_to_json(conversation) for conversation in conversations]
    if parse_locomo(payload, str(path))[0] != list(conversations):
        raise BadInput(
            "These conversations do not fit into the LoCoMo format without loss: each session needs"
            " one time in whole minutes, and question ids must be <conversation>/q<position>."
        )
    text = json.dumps(payload, ensure_ascii=False, indent=1)
    try:
        Path(path).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"The file {path} cannot be written ({error.strerror}).") from None


def _conversation_to_json(conversation: Conversation) -> dict[str, Any]:
    spoken: dict[str, Any] = dict(
        zip(("speaker_a", "speaker_b"), conversation.speakers, strict=True)
    )
    for turn in conversation.turns:
        name = f"session_{turn.session}"
        spoken.setdefault(f"{name}_date_time", _format_time(turn.time))
        spoken.setdefault(name, []).append(_turn_to_json(turn))
    questions = sorted(
        (*conversation.questions, *conversation.adversarial_questions),
        key=_position,
    )
    return {
        "sample_id": conversation.id,
        "conversation": spoken,
        "qa": [_question_to_json(question) for question in questions],
    }


def _position(question: Question) -> int:
    """The place that the id claims; -1 for a foreign id, which `write_locomo` then refuses."""
    number = question.id.rpartition("/q")[2]
    return int(number) if number.isdecimal() else -1


def _turn_to_json(turn: RawTurn) -> dict[str, Any]:
    record = {"speaker": turn.speaker, "dia_id": turn.id, "text": turn.text}
    return record if turn.caption is None else record | {"blip_caption": turn.caption}


def _question_to_json(question: Question) -> dict[str, Any]:
    if question.category not in CATEGORY_NUMBERS:
        raise BadInput(
            f"Question {question.id} has the category {question.category!r}: LoCoMo knows"
            f" {', '.join(CATEGORY_NUMBERS)}."
        )
    record: dict[str, Any] = {"question": question.text}
    if not (question.adversarial and question.answer == NOT_MENTIONED):
        record["answer"] = question.answer
    if question.adversarial_answer is not None:
        record["adversarial_answer"] = question.adversarial_answer
    record["evidence"] = list(question.evidence)
    record["category"] = CATEGORY_NUMBERS[question.category]
    return record


def _format_time(time: datetime | None) -> str:
    """`1:56 pm on 8 May, 2023`; by hand, because `strftime` follows the machine's language."""
    if time is None:
        raise BadInput("A turn without a time cannot be written in the LoCoMo format.")
    clock = f"{time.hour % 12 or 12}:{time.minute:02d} {'am' if time.hour < 12 else 'pm'}"
    return f"{clock} on {time.day} {MONTHS[time.month - 1]}, {time.year}"
