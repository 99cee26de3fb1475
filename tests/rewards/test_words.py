"""Words in any writing, phrases not found inside longer words, and CJK characters as tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.rewards.matching import folded, has_phrase, require_texts, separate_cjk, words


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


HAN = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)
# Latin, Greek, Cyrillic, Hebrew, Arabic, general punctuation: everything below the CJK blocks.
NOT_CJK = st.text(st.characters(max_codepoint=0x2E7F, exclude_categories=["Cs"]))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("2023年5月7日，北京。", "2023 年 5 月 7 日 北 京"),
        ("Caroline喜欢画画", "Caroline 喜 欢 画 画"),
        ("５月７日", "5 月 7 日"),
        ("“陶艺”、（游泳）", "陶 艺 游 泳"),
        ("東京タワーへ行った", "東 京 タ ワ ー へ 行 っ た"),
        ("佐々木", "佐 々 木"),
        ("𠮷野家", "𠮷 野 家"),
        ("3.5万", "3.5 万"),
        ("Tom，Jerry", "Tom Jerry"),
    ],
)
def test_every_cjk_character_is_a_token(text: str, tokens: str) -> None:
    assert separate_cjk(text).split() == tokens.split()


@given(NOT_CJK)
def test_text_without_cjk_writing_is_returned_as_it_is(text: str) -> None:
    assert separate_cjk(text) == text


def test_korean_keeps_its_own_blanks() -> None:
    assert separate_cjk("나는 서울에 산다.") == "나는 서울에 산다."


@given(st.text(HAN, min_size=1))
def test_as_many_tokens_as_han_characters(text: str) -> None:
    assert separate_cjk(text).split() == list(text)


def test_an_entry_that_is_no_text_is_named() -> None:
    with pytest.raises(BadInput, match=r"`completions` must hold texts; entry 1 is int \(2022\)"):
        require_texts(["fine", 2022])
