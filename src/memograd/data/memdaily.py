"""Reading MemDaily: Chinese messages of one person's days, with one question each (2409.20163).

A file such as `01_simple_roles.json.gz` is a JSON list of streams: `message_list` (mid, message,
time, place) and `question_list` (question, answer, four choices, `target_step_id`: the mids that
hold the answer). Every stream becomes one Conversation in which only the user speaks. The messages
of one day are one session, turn ids are `m<mid>`, and a question's category is the middle of the
file's name (`simple`, `post_processing`,...). The place is not kept: a RawTurn has none.

Invariants: evidence names turns of the stream; the questions that the makers' own generator failed
to write (`[ERRORQ]`) are dropped and reported, never in silence; anything else out of the ordinary
is BadInput.

The format's traps, each with a test: the failed questions; clocks that run backwards, so the order
is the messages' order and not their times.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

from memograd.data.conversation import Conversation, LoadReport, Question
from memograd.data.record_files import field, moment, read_json, typed
from memograd.errors import BadInput
from memograd.memory import RawTurn

SPEAKERS: Final = ("用户", "助手")
FAILED: Final = "[ERRORQ]"
DATE_PATTERN: Final = r"(\d+)年(\d+)月(\d+)日 周[一二三四五六日] (\d+):(\d+)"
DATE_EXAMPLE: Final = "2024年04月01日 周一 08:39"


def load_memdaily(path: Path | str) -> list[Conversation]:
    """One conversation a stream; raises BadInput, in one sentence, when it is not in the format.

    What `load_memdaily_with_report` finds peculiar is logged as warnings.
    """
    conversations, report = load_memdaily_with_report(path)
    report.warn(path)
    return conversations


def load_memdaily_with_report(path: Path | str) -> tuple[list[Conversation], LoadReport]:
    """The conversations of a file, and what was peculiar in it."""
    path = Path(path)
    name = path.name.split(".")[0]
    category = re.sub(r"^\d+_|_[^_]+$", "", name)
    conversations: dict[str, Conversation] = {}
    report = LoadReport()
    for number, record in enumerate(typed(read_json(path, "MemDaily"), list, str(path))):
        where = f"{path}, stream {number}"
        identity = f"{name}/{field(record, 'tid', int, where)}"
        if identity in conversations:
            raise BadInput(f"{path} has two streams with the id {identity!r}.")
        conversations[identity] = _parse_stream(record, identity, category, where, report)
    report.backwards += [one.id for one in conversations.values() if _backwards(one)]
    return list(conversations.values()), report


def _parse_stream(
    record: Any, identity: str, category: str, where: str, report: LoadReport
) -> Conversation:
    turns: dict[int, RawTurn] = {}
    days: dict[date, int] = {}
    for number, message in enumerate(field(record, "message_list", list, where)):
        here = f"{where}, message {number}"
        mid = field(message, "mid", int, here)
        if mid in turns:
            raise BadInput(f"{where} has two messages with the mid {mid}.")
        time = _time(message, here)
        turns[mid] = RawTurn(
            id=f"m{mid}",
            speaker=SPEAKERS[0],
            text=field(message, "message", str, here),
            time=time,
            session=days.setdefault(time.date(), len(days) + 1),
        )
    questions = []
    for number, asked in enumerate(field(record, "question_list", list, where)):
        here = f"{where}, question {number}"
        question_id = f"{identity}/q{number}"
        if field(asked, "question", str, here) == FAILED:
            report.unwritten.append(question_id)
        else:
            questions.append(_parse_question(asked, question_id, category, turns, here))
    return Conversation.asked(identity, (SPEAKERS[0], SPEAKERS[1]), turns.values(), questions)


def _parse_question(
    record: Any, identity: str, category: str, turns: dict[int, RawTurn], where: str
) -> Question:
    choices = field(record, "choices", dict, where)
    right = field(record, "ground_truth", str, where)
    answer = field(record, "answer", str, where)
    if choices.get(right) != answer:
        raise BadInput(
            f"{where} answers {answer!r}, which is not what its choice {right!r} says: correct"
            " one of them."
        )
    evidence = []
    for mid in field(record, "target_step_id", list, where):
        if typed(mid, int, f"'target_step_id' in {where}") not in turns:
            raise BadInput(f"{where} names the message {mid} as evidence, which is not there.")
        evidence.append(turns[mid].id)
    return Question(
        id=identity,
        text=field(record, "question", str, where).strip(),
        answer=answer,
        category=category,
        evidence=tuple(dict.fromkeys(evidence)),
        asked_at=_time(record, where),
        choices=tuple(typed(choice, str, f"a choice of {where}") for choice in choices.values()),
    )


def _time(record: Any, where: str) -> datetime:
    return moment(field(record, "time", str, where), DATE_PATTERN, where, DATE_EXAMPLE)


def _backwards(conversation: Conversation) -> bool:
    times = [turn.time for turn in conversation.turns if turn.time]
    return times != sorted(times)
