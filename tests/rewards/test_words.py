"""Words in any writing, and phrases that are not found inside longer words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.rewards.matching import folded, has_phrase, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat's 3 toys!", ["the", "cat's", "3", "toys"]),
        ("我喜欢MacBook。", ["我", "喜", "欢", "macbook"]),
        ("５月７日", ["5", "月", "7", "日"]),
        ("東京へ", ["東", "京", "へ"]),
        ("naïve café", ["naïve", "café"]),
        ("—…!?", []),
        ("", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5)))
def test_a_chinese_text_has_a_word_a_character(text: str) -> None:
    assert words(text) == list(text)


@given(st.text())
def test_words_are_in_the_folded_text(text: str) -> None:
    for word in words(text):
        assert word in folded(text)


@pytest.mark.parametrize(
    ("text", "phrase", "found"),
    [
        ("So it is.", "so", True),
        ("a sofa", "so", False),
        ("also", "so", False),
        ("so", "so", True),
        ("for  example, this", "For Example", True),
        ("我因此高兴", "因此", True),
        ("用Python写", "python", True),
        ("Python3", "python", False),
        ("costs $5.", "$5", True),
        ("costs $50", "$5", False),
        ("Ｓｏ？", "so", True),
        ("anything", "", False),
    ],
)
def test_phrases(text: str, phrase: str, found: bool) -> None:
    assert has_phrase(text, phrase) is found
