"""Can a question be answered from a book? Judged by words, without any model.

    score = share of the answer's parts that stand in what a search finds within the budget
            x (1 - misled_cost) if something misleading stands above the first item with an answer

Where nothing is known (no parts), 1 if nothing misleading is found, else 0. An item that holds part
of the answer never misleads: "not Vietnam but Corsica" is a good memory.

Invariants: between 0 and 1; a question of which nothing was told yet is not judged
(`tests/tasks/test_construct_answering.py`). May import the files beside it and `memory`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memograd.memory.analysis import analyse
from memograd.memory.items import MemoryItem
from memograd.memory.language import estimate_tokens
from memograd.tasks.memory_construct.case import Asked
from memograd.tasks.memory_construct.memory_book import MemoryBook


@dataclass(frozen=True)
class Standard:
    """What a question may find: so many items, of so many estimated tokens, core ones included.
    misled_cost: what something misleading takes of an answer."""

    top_k: int = 5
    token_budget: int = 300
    misled_cost: float = 0.5


@dataclass(frozen=True)
class Answered:
    """How a question went. score in [0, 1]; carriers: item ids that hold part of the answer."""

    asked: Asked
    score: float
    misled: bool
    carriers: tuple[str, ...]


def answer(asked: Asked, book: MemoryBook, now: int, standard: Standard) -> Answered:
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
    if not asked.parts:
        return Answered(asked, float(not misled), misled, ())
    told = sum(any(part.stands_in(item.text) for item in items) for part in parts)
    score = told / len(parts) * (1 - standard.misled_cost * misled)
    return Answered(asked, score, misled, tuple(carriers))


def found(asked: Asked, book: MemoryBook, standard: Standard) -> list[MemoryItem]:
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
    questions: Iterable[Asked], book: MemoryBook, now: int, standard: Standard
) -> list[Answered]:
    """Every question that is open at chunk `now`."""
    return [answer(one, book, now, standard) for one in questions if one.open_at(now)]
