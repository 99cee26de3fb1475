"""What the model is shown at a chunk: instructions, the items that the chunk is about, its turns.

The items are the core ones and those found by searching for the chunk, piece by piece, so that an
old item can be updated as well as a new one (Mem-alpha's code shows the latest five only). They are
numbered from 1 in each view: small numbers, which models do not make up.

Invariant: a function of book and chunk; never more than `top_k` items beside the core ones, nor
more tokens of them than the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from memograd.memory.language import Language, estimate_tokens
from memograd.memory.records.items import MemoryItem
from memograd.rollout.episode import ToolSchema
from memograd.rollout.types import Message
from memograd.tasks.memory_construct.answer_format import TOOLS, Format
from memograd.tasks.memory_construct.memory_book import MemoryBook

MOST_PIECES: Final = 16  # searches a view, at most


@dataclass(frozen=True)
class ViewLimits:
    """How many items are searched into view, and how many tokens they may take."""

    top_k: int = 8
    token_budget: int = 400


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


def view_of(
    book: MemoryBook, chunk: str, language: Language, form: Format, limits: ViewLimits
) -> ChunkView:
    """The prompt for a chunk in front of a book."""
    items = [*book.core, *_related(book, chunk, limits)]
    words = _WORDS[language]
    rules = words.lines if form == "lines" else words.tools
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


def _related(book: MemoryBook, chunk: str, limits: ViewLimits) -> list[MemoryItem]:
    """The best items of every piece first, then the second best, and so on."""
    found = [
        [hit.record for hit in book.search(book.texts.passage(piece), top_k=limits.top_k)]
        for piece in _pieces(chunk)
    ]
    by_rank = (item for rank in zip_longest(*found) for item in rank if item is not None)
    chosen: dict[str, MemoryItem] = {}
    left = limits.token_budget
    for item in by_rank:
        size = estimate_tokens(item.text)
        if item.id not in chosen and len(chosen) < limits.top_k and size <= left:
            chosen[item.id] = item
            left -= size
    # In the order in which they were written, which changes less from chunk to chunk than ranks.
    return [item for item in book.items if item.id in chosen]


def _pieces(chunk: str) -> list[str]:
    lines = [line for line in chunk.splitlines() if line.strip()]
    size = max(1, -(-len(lines) // MOST_PIECES))
    return ["\n".join(lines[start : start + size]) for start in range(0, len(lines), size)]
