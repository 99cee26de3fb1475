"""Going through a case chunk by chunk: what was shown, what was said, what became of it.

    while not walk.over:
        walk.view                       the prompt of this chunk
        tried = walk.attempt(answer)    on a fork: nothing here has changed
        walk.take(tried)                go on with it; asks the questions whose time has come

A view is instructions, the items that the chunk is about, and its turns. The items are the core
ones and those found by searching for the chunk, piece by piece, so that an old item can be updated
as well as a new one (Mem-alpha's code shows the latest five only). They are numbered from 1 in each
view: small numbers, which models do not make up.

Can a question be answered from a book? That is judged by words, or by what a reader answers.

    by words = share of the answer's parts that stand in what a search finds within the budget
               x (1 - misled_cost) if what misleads stands above the first item with an answer

Where nothing is known (no parts), 1 if nothing misleading is found, else 0. An item that holds part
of the answer never misleads: "not Vietnam but Corsica" is a good memory. Where there is a reader, a
language model that sees what was found, the score is the F1 of its answer (SQuAD's, of characters
in Chinese); which items hold the answer is still said by words.

Invariants: attempts at one chunk begin in the same state and do not see each other; a walk is a
function of the case and the answers taken; a view is one of book and chunk, with never more than
`top_k` items beside the core ones, nor more tokens of them than the budget; scores are between 0
and 1, and a question of which nothing was told yet is not judged; the reader sees the question and
what was found, never gold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, Protocol

from memograd.data.conversation import Question
from memograd.memory.analysis import analyse
from memograd.memory.language import Language, estimate_tokens, language_of
from memograd.memory.records.items import MemoryItem
from memograd.rewards.mem_alpha import ToolOutcome
from memograd.rewards.overlap import squad_f1
from memograd.rollout.episode import ToolSchema
from memograd.rollout.types import Message
from memograd.tasks.memory_construct.answer_format import TOOLS, Format, read
from memograd.tasks.memory_construct.case import BuildCase, CaseQuestion, Chunk
from memograd.tasks.memory_construct.memory_book import MemoryBook, Outcome, Texts
from memograd.tasks.memory_construct.settings import ConstructConfig

MOST_PIECES: Final = 16  # searches a view, at most


@dataclass(frozen=True)
class ChunkView:
    """messages: the prompt. shown: the ids of the items that it numbers, in order."""

    messages: tuple[Message, ...]
    shown: tuple[str, ...]


@dataclass(frozen=True)
class _ViewWords:
    task: str
    lines: str
    tools: str
    memory: str
    empty: str
    new: str


_WORDS: Final[dict[Language, _ViewWords]] = {
    "en": _ViewWords(
        task="You keep a memory for later questions. Read the new messages and say what to do.",
        lines=(
            "One line each, with names and full dates:\n"
            "+ fact (a new fact worth keeping)\n"
            "~ number fact (that item has changed)\n"
            "- number (forget that item)\n"
            "= (nothing worth keeping)"
        ),
        tools="Call the tools for what is worth keeping; answer = if nothing is.",
        memory="Memory:",
        empty="(empty)",
        new="New messages:",
    ),
    "zh": _ViewWords(
        task="你为以后的提问保管记忆。阅读新消息，说明要做什么。",
        lines=(
            "每条一行，写明人名和完整日期：\n"
            "+ 事实（值得记住的新事实）\n"
            "~ 编号 事实（该条已改变）\n"
            "- 编号（忘掉该条）\n"
            "= （没有值得记的）"
        ),
        tools="对值得记住的内容调用工具；没有则回答 =。",
        memory="记忆：",
        empty="（空）",
        new="新消息：",
    ),
}


def view_of(book: MemoryBook, chunk: str, language: Language, build: ConstructConfig) -> ChunkView:
    """The prompt for a chunk in front of a book."""
    items = [*book.core, *_related(book, chunk, build)]
    words = _WORDS[language]
    rules = words.lines if build.format == "lines" else words.tools
    listed = "\n".join(f"{n} {item.text}" for n, item in enumerate(items, start=1)) or words.empty
    content = f"{words.memory}\n{listed}\n\n{words.new}\n{chunk}"
    return ChunkView(
        messages=(
            Message(role="system", content=f"{words.task}\n{rules}"),
            Message(role="user", content=content),
        ),
        shown=tuple(item.id for item in items),
    )


def tools_of(form: Format) -> tuple[ToolSchema, ...]:
    """What the chat template is to show."""
    return TOOLS if form == "tools" else ()


def _related(book: MemoryBook, chunk: str, build: ConstructConfig) -> list[MemoryItem]:
    """The best items of every piece first, then the second best, and so on."""
    found = [
        [hit.record for hit in book.search(book.texts.passage(piece), top_k=build.view_items)]
        for piece in _pieces(chunk)
    ]
    by_rank = (item for rank in zip_longest(*found) for item in rank if item is not None)
    chosen: dict[str, MemoryItem] = {}
    left = build.view_tokens
    for item in by_rank:
        size = estimate_tokens(item.text)
        if item.id not in chosen and len(chosen) < build.view_items and size <= left:
            chosen[item.id] = item
            left -= size
    # In the order in which they were written, which changes less from chunk to chunk than ranks.
    return [item for item in book.items if item.id in chosen]


def _pieces(chunk: str) -> list[str]:
    lines = [line for line in chunk.splitlines() if line.strip()]
    size = max(1, -(-len(lines) // MOST_PIECES))
    return ["\n".join(lines[start : start + size]) for start in range(0, len(lines), size)]


class NoteReader(Protocol):
    """Answers questions from notes, the same always in the same way."""

    def answer(self, question: Question, notes: Sequence[str], language: Language) -> str:
        """The answer, on one line."""
        ...


@dataclass(frozen=True)
class Rules:
    """How cases are walked: by which settings, and whose answers to the questions are scored.

    reader: None where words alone say whether a question can be answered.
    """

    build: ConstructConfig = field(default_factory=ConstructConfig)
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


def answer(asked: CaseQuestion, book: MemoryBook, now: int, rules: Rules) -> QuestionResult:
    """How a question that is open at chunk `now` could be answered from the book as it is."""
    items = found(asked, book, rules.build)
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
        by_words = told / len(parts) * (1 - rules.build.misled_cost * misled)
    if rules.reader is None:
        return QuestionResult(asked, by_words, misled, tuple(carriers))
    language = language_of(asked.question.text)
    said = rules.reader.answer(asked.question, [item.text for item in items], language)
    f1 = max(squad_f1(said, gold, language) for gold in asked.golds_at(now))
    return QuestionResult(asked, by_words, misled, tuple(carriers), said, f1)


def found(asked: CaseQuestion, book: MemoryBook, build: ConstructConfig) -> list[MemoryItem]:
    """The items in front of whoever answers: core, then the best, as far as the budget goes."""
    query = book.texts.question(asked.question.text)
    ranked = [hit.record for hit in book.search(query, top_k=build.top_k)]
    shown: list[MemoryItem] = []
    left = build.token_budget
    for item in (*book.core, *ranked):
        left -= estimate_tokens(item.text)
        if left < 0:
            break
        shown.append(item)
    return shown


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
            chunk, language = self.chunk.text, self.case.language
            self._view = view_of(self.book, chunk, language, self.rules.build)
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
            for call in read(answer, self.rules.build.format, cut=cut)
        )
        return Tried(self.position, answer, outcomes, book)

    def open_questions(self, book: MemoryBook) -> list[QuestionResult]:
        """How the questions from now on go with another book in place of this one."""
        now = self.position
        return [answer(one, book, now, self.rules) for one in self.case.asked if one.open_at(now)]

    def take(self, tried: Tried) -> None:
        """Go on with an attempt at this chunk."""
        assert tried.chunk == self.position
        now = self.position
        self.book = tried.book
        self.taken.append(tried)
        self._view = None
        for asked in self.case.asked:
            if asked.after == now:
                one = answer(asked, self.book, now, self.rules)
                self.answered.append(one)
                self.origins.append(tuple({self.book.written_in[i]: 0 for i in one.carriers}))

    @property
    def score(self) -> float:
        """r1: mean score of the questions asked so far; 0 where none was."""
        scores = [one.score for one in self.answered]
        return sum(scores) / len(scores) if scores else 0.0
