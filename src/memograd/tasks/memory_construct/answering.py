"""Can a question be answered from a book? Judged by words, or by what a reader answers.

    by words = share of the answer's parts that stand in what a search finds within the budget
               x (1 - misled_cost) if what misleads stands above the first item with an answer

Where nothing is known (no parts), 1 if nothing misleading is found, else 0. An item that holds part
of the answer never misleads: "not Vietnam but Corsica" is a good memory.

Where there is a reader, a language model that sees what was found, the score is the F1 of its
answer (SQuAD's, of characters in Chinese); which items hold the answer is still said by words.

Invariants: between 0 and 1; a question of which nothing was told yet is not judged; the reader sees
the question and what was found, never gold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from memograd.data.conversation import Question
from memograd.memory.analysis import analyse
from memograd.memory.language import Language, estimate_tokens, language_of
from memograd.memory.records.items import MemoryItem
from memograd.rewards.overlap import squad_f1
from memograd.tasks.memory_construct.case import CaseQuestion
from memograd.tasks.memory_construct.memory_book import MemoryBook


class NoteReader(Protocol):
    """Answers questions from notes, the same always in the same way."""

    def answer(self, question: Question, notes: Sequence[str], language: Language) -> str:
        """The answer, on one line."""
        ...


@dataclass(frozen=True)
class Standard:
    """What a question may find: so many items, of so many estimated tokens, core ones included.
    misled_cost: what something misleading takes of an answer. reader: whose answers are scored;
    None: words alone say whether a question can be answered."""

    top_k: int = 5
    token_budget: int = 300
    misled_cost: float = 0.5
    reader: NoteReader | None = None


@dataclass(frozen=True)
class QuestionResult:
    """How a question went. by_words in [0, 1]; carriers: item ids that hold part of the answer.

    said: what the reader answered, and f1 how well; None without a reader.
    """

    asked: CaseQuestion
    by_words: float
    misled: bool
    carriers: tuple[str, ...]
    said: str | None = None
    f1: float | None = None

    @property
    def score(self) -> float:
        """What rewards count, in [0, 1]."""
        return self.by_words if self.f1 is None else self.f1


def answer(asked: CaseQuestion, book: MemoryBook, now: int, standard: Standard) -> QuestionResult:
    """How a question that is open at chunk `now` could be answered from the book as it is."""
    items = found(asked, book, standard)
    parts, misleading = asked.parts_at(now), asked.misleading_at(now)
    carriers = [item.id for item in items if any(part.stands_in(item.text) for part in parts)]
    misled = False
    for item in items:
        if item.id in carriers:
            break
        terms = analyse(item.text) if misleading else ()
        if any(one.stands_in(terms) for one in misleading):
            misled = True
            break
    by_words = float(not misled)
    if asked.parts:
        told = sum(any(part.stands_in(item.text) for item in items) for part in parts)
        by_words = told / len(parts) * (1 - standard.misled_cost * misled)
    if standard.reader is None:
        return QuestionResult(asked, by_words, misled, tuple(carriers))
    language = language_of(asked.question.text)
    said = standard.reader.answer(asked.question, [item.text for item in items], language)
    f1 = max(squad_f1(said, gold, language) for gold in asked.golds_at(now))
    return QuestionResult(asked, by_words, misled, tuple(carriers), said, f1)


def found(asked: CaseQuestion, book: MemoryBook, standard: Standard) -> list[MemoryItem]:
    """The items in front of whoever answers: core, then the best, as far as the budget goes."""
    query = book.texts.question(asked.question.text)
    ranked = [hit.record for hit in book.search(query, top_k=standard.top_k)]
    shown: list[MemoryItem] = []
    left = standard.token_budget
    for item in (*book.core, *ranked):
        left -= estimate_tokens(item.text)
        if left < 0:
            break
        shown.append(item)
    return shown


def answer_open(
    questions: Iterable[CaseQuestion], book: MemoryBook, now: int, standard: Standard
) -> list[QuestionResult]:
    """Every question that is open at chunk `now`."""
    return [answer(one, book, now, standard) for one in questions if one.open_at(now)]
