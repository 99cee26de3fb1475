"""Going through a case chunk by chunk: what was shown, what was said, what became of it.

    while not walk.over:
        walk.view                       the prompt of this chunk
        tried = walk.attempt(answer)    on a fork: nothing here has changed
        walk.take(tried)                go on with it; asks the questions whose time has come

Invariants: attempts at one chunk begin in the same state and do not see each other; a walk is a
function of the case and the answers taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memograd.memory.language import estimate_tokens
from memograd.rewards.mem_alpha import ToolOutcome
from memograd.tasks.memory_construct.answer_format import Format, read
from memograd.tasks.memory_construct.answering import (
    QuestionResult,
    Standard,
    answer,
    answer_open,
)
from memograd.tasks.memory_construct.case import BuildCase, Chunk
from memograd.tasks.memory_construct.memory_book import MemoryBook, Outcome, Texts
from memograd.tasks.memory_construct.view import ChunkView, ViewLimits, view_of


@dataclass(frozen=True)
class Rules:
    """How cases are walked: the form of answers, what is in view, how questions are judged."""

    form: Format = "lines"
    limits: ViewLimits = field(default_factory=ViewLimits)
    standard: Standard = field(default_factory=Standard)


@dataclass(frozen=True)
class Tried:
    """An answer to a chunk and the book that it leads to."""

    chunk: int
    answer: str
    outcomes: tuple[Outcome, ...]
    book: MemoryBook

    @property
    def calls(self) -> list[ToolOutcome]:
        """The outcomes as rewards count them."""
        return [outcome.call for outcome in self.outcomes]


class BookWalk:
    """One case from its first chunk to its last, with an empty book at the beginning.

    taken: the answers it went on with. answered: how the questions went, each at its time, and
    origins: which chunks had written what they were answered from.
    """

    def __init__(self, case: BuildCase, texts: Texts, rules: Rules) -> None:
        self.case = case
        self.rules = rules
        self.book = MemoryBook(texts)
        self.taken: list[Tried] = []
        self.answered: list[QuestionResult] = []
        self.origins: list[tuple[int, ...]] = []
        self._view: ChunkView | None = None

    @property
    def position(self) -> int:
        """The number of the chunk that is read now."""
        return len(self.taken)

    @property
    def over(self) -> bool:
        """Whether every chunk was read."""
        return self.position == len(self.case.chunks)

    @property
    def chunk(self) -> Chunk:
        """What is read now."""
        return self.case.chunks[self.position]

    @property
    def view(self) -> ChunkView:
        """What the model is shown now."""
        if self._view is None:
            self._view = view_of(
                self.book, self.chunk.text, self.case.language, self.rules.form, self.rules.limits
            )
        return self._view

    @property
    def read_tokens(self) -> int:
        """Estimated size of the chunks up to the one that is read now."""
        upto = self.case.chunks[: self.position + 1]
        return sum(estimate_tokens(chunk.text) for chunk in upto)

    def attempt(self, answer: str, *, cut: bool = False) -> Tried:
        """What an answer makes of the book, on a fork; `cut`: it was longer than allowed."""
        book, shown = self.book.fork(), self.view.shown
        outcomes = tuple(
            book.carry_out(call, shown, chunk=self.position, source=self.chunk.text)
            for call in read(answer, self.rules.form, cut=cut)
        )
        return Tried(self.position, answer, outcomes, book)

    def open_questions(self, book: MemoryBook) -> list[QuestionResult]:
        """How the questions from now on go with another book in place of this one."""
        return answer_open(self.case.asked, book, self.position, self.rules.standard)

    def take(self, tried: Tried) -> None:
        """Go on with an attempt at this chunk."""
        assert tried.chunk == self.position
        now = self.position
        self.book = tried.book
        self.taken.append(tried)
        self._view = None
        for asked in self.case.asked:
            if asked.after == now:
                one = answer(asked, self.book, now, self.rules.standard)
                self.answered.append(one)
                self.origins.append(tuple({self.book.written_in[i]: 0 for i in one.carriers}))

    @property
    def score(self) -> float:
        """r1: mean score of the questions asked so far; 0 where none was."""
        scores = [one.score for one in self.answered]
        return sum(scores) / len(scores) if scores else 0.0
