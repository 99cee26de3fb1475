"""The book that a model builds: calls that never raise, and forks that never meet."""

from __future__ import annotations

import pytest
from construct_cases import LetterEmbedder
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.memory.language import estimate_tokens
from memograd.memory.records.items import Kind
from memograd.tasks.memory_construct.answer_format import read
from memograd.tasks.memory_construct.memory_book import (
    CORE_TOKENS,
    ITEM_TOKENS,
    MemoryBook,
    Outcome,
    Texts,
    is_grounded,
)

TEXTS = Texts(LetterEmbedder(16))
SOURCE = "Tom lives in Lyon and has a dog called Ziggy"
lines = st.lists(
    st.sampled_from(
        [
            *("+ Tom lives in Lyon", "+ [core] Tom", "+ Ziggy", "~ 1 Tom has a dog", "~ 2 Ziggy"),
            *("- 1", "- 2", "- 9", "~ 9 x", "+", "nonsense", "="),
        ]
    ),
    max_size=8,
).map("\n".join)


def said(book: MemoryBook, answer: str, chunk: int = 0) -> list[Outcome]:
    shown = [item.id for item in book.items]
    return [
        book.carry_out(call, shown, chunk=chunk, source=SOURCE) for call in read(answer, "lines")
    ]


def state(book: MemoryBook) -> list[tuple[str, str, Kind]]:
    return [(item.id, item.text, item.kind) for item in book.items]


@settings(deadline=None)
@given(lines, lines, lines)
def test_forks_never_see_each_other(before: str, one: str, other: str) -> None:
    book = MemoryBook(TEXTS)
    said(book, before)
    then, written = state(book), dict(book.written_in)
    fork = book.fork()
    said(fork, one, chunk=1)
    assert (state(book), book.written_in) == (then, written)
    there = state(fork)
    said(book, other, chunk=2)
    assert state(fork) == there
    alone = MemoryBook(TEXTS)
    said(alone, before)
    said(alone, one, chunk=1)
    assert state(alone) == there


@settings(deadline=None)
@given(lines, lines)
def test_a_failed_call_changes_nothing_and_tokens_are_those_of_the_items(a: str, b: str) -> None:
    book = MemoryBook(TEXTS)
    said(book, a)
    shown = [item.id for item in book.items]
    for call in read(b, "lines"):
        then = state(book)
        outcome = book.carry_out(call, shown, chunk=1, source=SOURCE)
        assert outcome.call.ok == (outcome.failure is None)
        if outcome.failure or outcome.call.duplicate:
            assert state(book) == then
        assert book.tokens == sum(estimate_tokens(item.text) for item in book.items)
        assert set(book.written_in) == {item.id for item in book.items}


def test_outcomes() -> None:
    book = MemoryBook(TEXTS)
    first, again = said(book, "+ Tom lives in Lyon\n+ Tom lives in Lyon")
    assert (first.call.ok, first.call.duplicate, first.call.valid) == (True, False, True)
    assert (again.call.ok, again.call.duplicate, again.item_id) == (True, True, first.item_id)
    (made_up,) = said(book, "+ Anna collects rare orchids")
    assert (made_up.call.ok, made_up.call.valid) == (True, False)
    update, gone, twice = said(book, "~ 1 Tom lives in Porto\n- 1\n- 1", chunk=3)
    assert (update.item_id, update.call.valid) == (first.item_id, True)
    assert gone.call.ok and gone.call.valid is None
    assert (twice.call.ok, twice.failure) == (False, "item 1 was deleted before")
    assert said(book, "- 7")[0].failure == "there is no item 7"
    assert said(book, "~ 0 x")[0].failure == "there is no item 0"
    assert [item.text for item in book.items] == ["Anna collects rare orchids"]


def test_the_chunk_that_wrote_an_item_last_is_remembered() -> None:
    book = MemoryBook(TEXTS)
    said(book, "+ Tom lives in Lyon\n+ Ziggy", chunk=0)
    said(book, "~ 1 Tom lives in Porto", chunk=2)
    assert sorted(book.written_in.values()) == [0, 2]


def test_core_is_bounded_and_never_found_by_search() -> None:
    book = MemoryBook(TEXTS)
    long = "x" * (3 * CORE_TOKENS - 30)
    fits, too_much = said(book, f"+ [core] {long}\n+ [core] {'y' * 60}")
    assert fits.call.ok and too_much.failure == f"core holds {CORE_TOKENS} tokens at most"
    assert said(book, f"~ 1 {'z' * (3 * CORE_TOKENS)}")[0].call.ok  # in place of, not beside
    said(book, "+ Tom lives in Lyon")
    hits = book.search(TEXTS.question("Tom"), top_k=5)
    assert [hit.record.text for hit in hits] == ["Tom lives in Lyon"]
    assert len(book.core) == 1 and len(book) == 2


def test_an_item_is_no_diary() -> None:
    (outcome,) = said(MemoryBook(TEXTS), f"+ {'x' * (3 * ITEM_TOKENS + 1)}")
    assert outcome.failure == f"the text is longer than {ITEM_TOKENS} tokens"
    assert outcome.call.valid is False


def test_a_call_of_no_kind_is_a_failure_of_no_kind() -> None:
    (outcome,) = said(MemoryBook(TEXTS), "Hello!")
    assert (outcome.call.kind, outcome.call.ok, outcome.call.valid) == (None, False, None)


@pytest.mark.parametrize(
    ("text", "source", "grounded"),
    [
        ("Tom has a dog called Ziggy on 3 May 2023", "Tom: I have a dog called Ziggy", True),
        ("胡斌的儿子名叫谢东", "胡斌: 我的儿子名叫谢东。", True),
        ("Anna paints", "Tom has a dog", False),
        ("the", "the", False),
    ],
)
def test_grounded(text: str, source: str, grounded: bool) -> None:
    assert is_grounded(text, source) is grounded


def test_texts_are_embedded_once_and_alone() -> None:
    embedder = LetterEmbedder()
    texts = Texts(embedder)
    for text in ("a", "b", "a"):
        texts.passage(text)
    assert embedder.batches == [1, 1]
