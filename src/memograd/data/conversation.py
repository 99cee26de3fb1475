"""What every data set becomes: conversations with questions, or chunks with questions about them.

A `Conversation` has dated turns, and questions with their evidence. A `ConstructionCase` is what
memory construction is trained and judged on (Mem-alpha, arXiv 2509.25911): the agent sees one chunk
at a time, writes to its memory, and is asked after the last chunk. Public sets come as such chunks
(`mem_alpha`, `memory_agent_bench`); a conversation is cut into them here, by whole turns and never
within one.

Question ids are `conversation/q<position in the file>`, so they stay the same whatever is filtered
out. Invariants: evidence names turns of the same conversation; the chunks of a conversation, joined
by line breaks, are its rendered turns, and a question's evidence names exactly the chunks that hold
its evidence turns.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from memograd.errors import BadInput
from memograd.memory import RawTurn
from memograd.memory.language import estimate_tokens

logger = logging.getLogger(__name__)
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

    @classmethod
    def asked(
        cls,
        identity: str,
        speakers: tuple[str, str],
        turns: Iterable[RawTurn],
        questions: Sequence[Question],
    ) -> Conversation:
        """The conversation with these questions, the adversarial ones apart."""
        return cls(
            identity,
            speakers,
            tuple(turns),
            tuple(question for question in questions if not question.adversarial),
            tuple(question for question in questions if question.adversarial),
        )


@dataclass(frozen=True)
class ConstructionCase:
    """Chunks that are read in order, and questions that are asked after the last one.

    source: which data set or conversation it comes from. evidence: for each question, in their
    order, the positions (from 0) of the chunks that hold its answer; empty where that is unknown.
    Raises BadInput where the parts do not fit each other.
    """

    id: str
    source: str
    chunks: tuple[str, ...]
    questions: tuple[Question, ...]
    evidence: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        where = f"The case {self.id!r}"
        if not self.chunks or not all(chunk.strip() for chunk in self.chunks):
            raise BadInput(f"{where} has no chunk, or an empty one: give every chunk a text.")
        if len({question.id for question in self.questions}) != len(self.questions):
            raise BadInput(f"{where} has two questions with one id: give each its own.")
        if not self.evidence:
            object.__setattr__(self, "evidence", ((),) * len(self.questions))
        if len(self.evidence) != len(self.questions):
            raise BadInput(
                f"{where} has {len(self.questions)} questions and evidence for"
                f" {len(self.evidence)}: give one tuple of positions for each."
            )
        for question, positions in zip(self.questions, self.evidence, strict=True):
            if not all(0 <= position < len(self.chunks) for position in positions):
                raise BadInput(
                    f"{where}, question {question.id!r}, has the evidence {list(positions)}: there"
                    f" are the chunks 0 to {len(self.chunks) - 1}."
                )


@dataclass
class LoadReport:
    """What was peculiar in a file that was read all the same, each kind in the order of the file.

    unresolved: (question id, evidence string) where the string, or one id in it, names no turn.
    without_evidence: ids of questions, abstentions aside, that have none. unwritten: ids of
    questions that their makers failed to write. unasked: ids of questions without a text or an
    answer. empty_chunks: (case id, position). undated: (question id, what stands in place of its
    date). dropped: ids of cases left with nothing to read or to ask. backwards: ids of
    conversations in which some message is dated before the one ahead of it.
    """

    unresolved: list[tuple[str, str]] = field(default_factory=list)
    without_evidence: list[str] = field(default_factory=list)
    unwritten: list[str] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)
    empty_chunks: list[tuple[str, int]] = field(default_factory=list)
    undated: list[tuple[str, str]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    backwards: list[str] = field(default_factory=list)

    def warn(self, path: Path | str) -> None:
        """Log what there is, a line each."""
        for name, sentence in _PECULIAR.items():
            if found := getattr(self, name):
                logger.warning("%s: %s (first: %s)", path, sentence.format(len(found)), found[0])


_PECULIAR: Final = {
    "unresolved": "dropped {} pieces of evidence that name no turn",
    "without_evidence": "{} questions name no evidence and are kept",
    "unwritten": "dropped {} questions that were never written",
    "unasked": "dropped {} questions without a text or an answer",
    "empty_chunks": "dropped {} empty chunks",
    "undated": "left out {} dates that cannot be read",
    "dropped": "dropped {} cases left with nothing to read or to ask",
    "backwards": "in {} streams the clock runs backwards; the order of the messages is kept",
}


class TellsAConversation(Protocol):
    """What knows itself as a conversation, such as a `Lifelog`."""

    def conversation(self) -> Conversation:
        """The same as a conversation."""
        ...


def construction_case_of(
    source: Conversation | TellsAConversation,
    *,
    turns_per_chunk: int | None = None,
    chunk_tokens: int | None = None,
) -> ConstructionCase:
    """The conversation in chunks of rendered turns: `[7 May 2023] Caroline: text`, one a line.

    A chunk is a session, or `turns_per_chunk` turns, or as many turns as fit into `chunk_tokens`
    (estimated; a longer turn is a chunk by itself). All questions are kept, adversarial ones
    last. Raises BadInput for both sizes at once, a size under 1, and no turns.
    """
    told = source if isinstance(source, Conversation) else source.conversation()
    if turns_per_chunk is not None and chunk_tokens is not None:
        raise BadInput("Give turns_per_chunk or chunk_tokens, not both; without them: sessions.")
    for name, size in (("turns_per_chunk", turns_per_chunk), ("chunk_tokens", chunk_tokens)):
        if size is not None and size < 1:
            raise BadInput(f"{name} is {size}: it must be at least 1.")
    if turns_per_chunk is not None:
        starts = range(0, len(told.turns), turns_per_chunk)
        groups = [list(told.turns[start : start + turns_per_chunk]) for start in starts]
    elif chunk_tokens is not None:
        groups = list(_by_tokens(told.turns, chunk_tokens))
    else:
        groups = list(_by_session(told.turns))
    chunk_of = {turn.id: place for place, group in enumerate(groups) for turn in group}
    questions = (*told.questions, *told.adversarial_questions)
    return ConstructionCase(
        id=told.id,
        source=told.id,
        chunks=tuple("\n".join(turn.render() for turn in group) for group in groups),
        questions=questions,
        evidence=tuple(
            tuple(sorted({chunk_of[turn_id] for turn_id in question.evidence}))
            for question in questions
        ),
    )


def _by_session(turns: Sequence[RawTurn]) -> Iterator[list[RawTurn]]:
    group: list[RawTurn] = []
    for turn in turns:
        if group and turn.session != group[-1].session:
            yield group
            group = []
        group.append(turn)
    if group:
        yield group


def _by_tokens(turns: Sequence[RawTurn], limit: int) -> Iterator[list[RawTurn]]:
    group: list[RawTurn] = []
    filled = 0
    for turn in turns:
        cost = estimate_tokens(turn.render() + "\n")
        if group and filled + cost > limit:
            yield group
            group, filled = [], 0
        group.append(turn)
        filled += cost
    if group:
        yield group
