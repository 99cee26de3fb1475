from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.data.memory_agent_bench import text_chunks
from memograd.errors import BadInput
from memograd.memory.language import estimate_tokens

PIECES = st.sampled_from(
    ["word ", "Yes. ", "\n", "我搬家了。", "好！", "x" * 70, "  ", "\u2028", "字" * 40]
)


@given(st.lists(PIECES | st.text(max_size=9), max_size=60).map("".join), st.integers(16, 80))
def test_joined_they_are_the_text_and_none_is_too_long(text: str, tokens: int) -> None:
    chunks = text_chunks(text, tokens)
    assert "".join(chunks) == text
    assert all(chunk and estimate_tokens(chunk) <= tokens for chunk in chunks)


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("a" * 30 + "\n" + "b" * 30, ["a" * 30 + "\n", "b" * 30]),
        ("He came. " * 6, ["He came. " * 5, "He came. "]),
        ("我搬到了上海。" * 4, ["我搬到了上海。" * 2, "我搬到了上海。" * 2]),
        ("ab cd " * 9, ["ab cd " * 8, "ab cd "]),
        ("x" * 50, ["x" * 48, "xx"]),
        ("short", ["short"]),
        ("", []),
    ],
)
def test_it_is_cut_at_the_best_place(text: str, chunks: list[str]) -> None:
    assert text_chunks(text, 16) == chunks


def test_too_small_a_chunk_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 16"):
        text_chunks("text", 15)
