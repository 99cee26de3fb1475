"""mem0's F1 and BLEU-1 against cases worked out by hand and against second implementations."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk import word_tokenize
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from memograd.errors import BadInput
from memograd.rewards.overlap import (
    bleu1,
    mem0_bleu1,
    mem0_f1,
    set_f1,
    simple_tokens,
    word_tokens,
)

WORDS = [
    "the",
    "The",
    "cat",
    "cats.",
    "sat,",
    "can't",
    "don’t",
    '"yes"',
    "(no)",
    "3.5",
    "U.S.",
    "!",
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
ANY_TEXT = TEXTS | st.text(max_size=30)


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [
        ("the cat sat on the mat", "the cat", 4 / 7),  # sets of 5 and 2, all 2 found
        ("dogs", "dog", 0.0),  # no stemming
        ("Yes!", "yes.", 1.0),
        ("well;", "well", 0.0),  # only . , ! ? are dropped
        ("a b", "a c", 0.5),
        ("", "cat", 0.0),
        ("...", "...", 0.0),
        ("5月7日", "2023年5月7日", 0.8),
        ("他喜欢喝茶", "喝茶。", 4 / 7),  # 2 of 5 characters, 2 of 2
    ],
)
def test_set_f1_by_hand(prediction: str, gold: str, expected: float) -> None:
    assert set_f1(prediction, gold) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [
        ("the the the", "the cat", 1 / 3),  # clipped: only one "the" counts
        ("cat", "the cat sat", math.exp(-2)),  # brevity penalty exp(1 - 3/1)
        ("the cat", "The cat", 1.0),
        ("cat.", "cat", 0.5),  # the full stop is a token
        ("I like it. Really", "really", 0.2),  # i like it . really: one of five
        ("", "cat", 0.0),
        ("cat", "", 0.0),
        ("喝茶。", "他喜欢喝茶", math.exp(1 - 5 / 2)),
        ("北京", "上海", 0.0),
    ],
)
def test_bleu1_by_hand(prediction: str, gold: str, expected: float) -> None:
    assert bleu1(prediction, gold) == pytest.approx(expected, abs=1e-12)


def test_words_of_several_sentences() -> None:
    assert word_tokens('She can\'t. "Why?" Dr. No left.') == [
        *("she", "ca", "n't", ".", "``", "why", "?", "''", "dr", ".", "no", "left", "."),
    ]


@given(ANY_TEXT, ANY_TEXT)
def test_bleu1_equals_nltk_as_mem0_calls_it(prediction: str, gold: str) -> None:
    expected = sentence_bleu(
        [word_tokens(gold)],
        word_tokens(prediction),
        weights=(1, 0, 0, 0),
        smoothing_function=SmoothingFunction().method1,
    )
    assert bleu1(prediction, gold) == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.sampled_from([word for word in WORDS if "." not in word]), max_size=8))
def test_words_of_one_sentence_are_nltks(words: list[str]) -> None:
    text = " ".join(word.replace("!", ";") for word in words)
    assert word_tokens(text) == word_tokenize(text.lower(), preserve_line=True)


@given(TEXTS, TEXTS)
def test_set_f1_equals_a_second_implementation(prediction: str, gold: str) -> None:
    def plain(text: str) -> list[str]:
        blanked = "".join(" " if character in ".,!?" else character for character in text)
        unique: list[str] = []
        for word in blanked.casefold().split():
            if word not in unique:
                unique.append(word)
        return unique

    first, second = plain(prediction), plain(gold)
    hits = len([word for word in first if word in second])
    expected = 2 * hits / (len(first) + len(second)) if hits else 0.0
    assert set_f1(prediction, gold) == pytest.approx(expected, abs=1e-12)


@given(ANY_TEXT, ANY_TEXT)
def test_scores_lie_between_0_and_1_and_f1_is_symmetric(first: str, second: str) -> None:
    assert set_f1(first, second) == pytest.approx(set_f1(second, first), abs=1e-12)
    assert 0 <= set_f1(first, second) <= 1 + 1e-12
    assert 0 <= bleu1(first, second) <= 1 + 1e-12


@given(ANY_TEXT)
def test_identical_is_1_unless_nothing_is_left_of_it(text: str) -> None:
    assert set_f1(text, text) == pytest.approx(1.0 if simple_tokens(text) else 0.0)
    assert bleu1(text, text) == pytest.approx(1.0 if word_tokens(text) else 0.0)


def test_the_rewards_score_row_by_row() -> None:
    completions, answers = ["a b", "the the the"], ["a c", "the cat"]
    assert mem0_f1(["q", "q"], completions, answer=answers, category=["x", "y"]) == pytest.approx(
        [0.5, 2 / 3]
    )
    assert mem0_bleu1(["q", "q"], completions, answer=answers) == pytest.approx([0.5, 1 / 3])


@pytest.mark.parametrize("reward", [mem0_f1, mem0_bleu1])
def test_a_completion_that_is_no_text_is_an_error(reward) -> None:
    with pytest.raises(BadInput, match="`completions` must hold texts; entry 0 is list"):
        reward(["q"], [[{"role": "assistant", "content": "a"}]], answer=["a"])
