"""What every data set becomes: conversations with dated turns, and questions with their evidence.

Question ids are `conversation/q<position in the file>`, so they stay the same whatever is filtered
out. Invariant: evidence names turns of the same conversation.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memograd.memory import RawTurn

NOT_MENTIONED: Final = "Not mentioned"


@dataclass(frozen=True)
class Question:
    """A question about one conversation, and what a right answer says.

    category: the data set's own name for the kind of question, in LoCoMo `multi-hop | temporal |
    open-domain | single-hop | adversarial`. evidence: ids of the turns that hold the answer; may be
    empty. adversarial: the conversation has no answer, so the right one is usually `NOT_MENTIONED`;
    `adversarial_answer` is the wrong one that tempts. asked_at: when it is asked, None where
    unknown. choices: what a multiple-choice question offers, `answer` among them. accepted: other
    texts that are as right as `answer`.
    """

    id: str
    text: str
    answer: str
    category: str
    evidence: tuple[str, ...]
    adversarial: bool = False
    adversarial_answer: str | None = None
    asked_at: datetime | None = None
    choices: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conversation:
    """Two people over several sessions; `turns` are in the order in which they were said."""

    id: str
    speakers: tuple[str, str]
    turns: tuple[RawTurn, ...]
    questions: tuple[Question, ...]
    adversarial_questions: tuple[Question, ...]
