"""What a model is shown: the items that a chunk is about, old ones too, within limits."""

from __future__ import annotations

from construct_cases import LetterEmbedder
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.memory.language import estimate_tokens
from memograd.tasks.memory_construct.answer_format import read
from memograd.tasks.memory_construct.memory_book import MemoryBook, Texts
from memograd.tasks.memory_construct.walk import ViewLimits, tools_of, view_of

TEXTS = Texts(LetterEmbedder(64))


def book_of(answer: str) -> MemoryBook:
    book = MemoryBook(TEXTS)
    for call in read(answer, "lines"):
        assert book.carry_out(call, (), chunk=0, source=answer).call.ok
    return book


def test_an_old_item_is_in_view_when_the_chunk_is_about_it() -> None:
    others = "\n".join(f"+ remark number {number} about the weather" for number in range(20))
    book = book_of(f"+ Tom keeps the locker key under the mat\n{others}")
    chunk = "[3 May 2023] Tom: nice day\n[3 May 2023] Tom: the locker key is in the drawer now"
    view = view_of(book, chunk, "en", "lines", ViewLimits(top_k=4))
    assert "m1" in view.shown and len(view.shown) == 4
    content = view.messages[1]["content"]
    assert f"{view.shown.index('m1') + 1} Tom keeps the locker key under the mat" in content
    assert content.endswith(f"New messages:\n{chunk}")


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.text("abc ", min_size=1, max_size=30).filter(str.strip), max_size=12, unique=True),
    st.integers(1, 6),
    st.integers(1, 40),
)
def test_limits_hold_and_core_is_always_shown(items: list[str], top_k: int, budget: int) -> None:
    book = book_of("\n".join(f"+ {text}" for text in items) + "\n+ [core] Tom")
    view = view_of(book, "abc\ncab", "en", "lines", ViewLimits(top_k, budget))
    core, *found = view.shown
    assert core == book.core[0].id and len(found) <= top_k and len(set(found)) == len(found)
    texts = {item.id: item.text for item in book.items}
    assert sum(estimate_tokens(texts[one]) for one in found) <= budget
    assert view == view_of(book, "abc\ncab", "en", "lines", ViewLimits(top_k, budget))


def test_chinese_and_tools() -> None:
    lines = view_of(MemoryBook(TEXTS), "汤姆: 你好", "zh", "lines", ViewLimits())
    tools = view_of(MemoryBook(TEXTS), "汤姆: 你好", "zh", "tools", ViewLimits())
    assert "（空）" in lines.messages[1]["content"] and "~ 编号" in lines.messages[0]["content"]
    assert "工具" in tools.messages[0]["content"]
    assert tools_of("lines") == () and len(tools_of("tools")) == 3
