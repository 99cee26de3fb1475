"""LoCoMo's F1 against cases worked out by hand and against a second, plainer implementation."""

from __future__ import annotations

import json
import string
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem import PorterStemmer

from memograd.errors import BadInput
from memograd.rewards.overlap import (
    CATEGORIES,
    locomo_f1,
    locomo_score,
    multi_answer_f1,
    normalize_answer,
    token_f1,
)

WORDS = [
    *("the", "a", "an", "and", "The", "cats", "running", "ran", "pottery", "well-known", "2023"),
    *("7 May", "Caroline's", "¿qué?", "naïve", "a.m.", ",", ";", "!", "“quoted”", "", "anda"),
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
ANY_TEXT = TEXTS | st.text(max_size=30)


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [
        ("7 May, 2023.", "7 may 2023", 1.0),
        ("The dogs are running", "dog runs", 0.8),  # dog are run / dog run: P 2/3, R 1
        ("red red blue", "red blue blue", 2 / 3),  # bags: one red and one blue in common
        ("Tom and Ann", "Ann, Tom", 1.0),  # "and" is dropped like an article
        ("well-known", "well known", 0.0),  # the hyphen goes, the words join
        ("a the", "the", 0.0),  # only articles: nothing is left to share
        ("", "", 0.0),
        ("cat", "dog", 0.0),
        ("5月7日", "2023年5月7日", 0.8),  # 4 of 4 and 4 of 6 tokens
        ("北京。", "北京", 1.0),
        ("她在上海", "北京", 0.0),
        ("Caroline 喜欢画画！", "caroline喜欢画画", 1.0),
    ],
)
def test_token_f1_by_hand(prediction: str, gold: str, expected: float) -> None:
    assert token_f1(prediction, gold) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [
        ("swimming, pottery", "pottery, camping, swimming", 2 / 3),
        ("swimming and pottery", "pottery, camping, swimming", 4 / 9),  # 2/3, 0, 2/3
        ("pottery", "pottery", 1.0),
        ("cat", "cat,", 0.5),  # the official code counts the empty part after the comma
        ("陶艺，游泳", "游泳、陶艺、露营", 2 / 3),
        ("no idea", "", 0.0),
    ],
)
def test_multi_answer_f1_by_hand(prediction: str, gold: str, expected: float) -> None:
    assert multi_answer_f1(prediction, gold) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("category", "prediction", "gold", "expected"),
    [
        ("multi-hop", "swimming", "pottery, swimming", 0.5),
        ("temporal", "swimming", "pottery, swimming", 2 / 3),
        ("single-hop", "swimming", "pottery, swimming", 2 / 3),
        ("open-domain", "likely no", "Likely no; because she is busy", 1.0),
        ("single-hop", "likely no", "Likely no; because she is busy", 0.5),
        ("open-domain", "可能不会", "可能不会；她很忙", 1.0),
        ("adversarial", "No information available.", "a red car", 1.0),
        ("adversarial", "It is NOT MENTIONED at all", "a red car", 1.0),
        ("adversarial", "对话中没有提到这件事", "红色的车", 1.0),
        ("adversarial", "a red car", "a red car", 0.0),
    ],
)
def test_every_category_has_its_own_rule(
    category: str, prediction: str, gold: str, expected: float
) -> None:
    assert locomo_score(prediction, gold, category) == pytest.approx(expected, abs=1e-12)


def test_article_beside_a_combining_mark_is_a_word() -> None:
    # "a" + combining acute is the word "á", which `regex` (as the official code) keeps whole.
    assert normalize_answer("A\u0301 the b") == "a\u0301 b"


def test_unknown_category_is_an_error() -> None:
    with pytest.raises(BadInput, match='"multihop" is no LoCoMo category; use one of multi-hop'):
        locomo_score("x", "x", "multihop")


def test_an_answer_that_is_no_text_is_an_error() -> None:
    with pytest.raises(BadInput, match=r"`answer` must hold texts, .* holds 2022"):
        locomo_f1(["q"], ["2022"], answer=[2022], category=["temporal"])  # type: ignore[list-item]


def test_the_reward_scores_row_by_row() -> None:
    rewards = locomo_f1(
        ["q", "q", "q"],
        ["swimming", "swimming", "not mentioned"],
        answer=["pottery, swimming", "pottery, swimming", "x"],
        category=["multi-hop", "single-hop", "adversarial"],
        conversation=["c1", "c1", "c1"],
    )
    assert rewards == pytest.approx([0.5, 2 / 3, 1.0])


# The second implementation: character by character, lists instead of bags, no shared helpers.
def plain_stems(text: str) -> list[str]:
    kept = ""
    for character in text.lower():
        if character not in string.punctuation:
            kept += character
    kept = regex.sub(r"(?<!\w)(?:and|an|a|the)(?!\w)", "\n", kept)
    return [PorterStemmer().stem(word) for word in kept.split()]


def plain_f1(prediction: str, gold: str) -> float:
    predicted, left = plain_stems(prediction), plain_stems(gold)
    length = len(left)
    hits = 0
    for stem in predicted:
        if stem in left:
            left.remove(stem)
            hits += 1
    return 2 * hits / (len(predicted) + length) if hits else 0.0


def plain_score(prediction: str, gold: str, category: str) -> float:
    if category == "adversarial":
        said = prediction.lower()
        return 1.0 if "no information available" in said or "not mentioned" in said else 0.0
    if category == "multi-hop":
        total = 0.0
        for part in gold.split(","):
            total += max(plain_f1(piece, part) for piece in prediction.split(","))
        return total / (gold.count(",") + 1)
    if category == "open-domain" and ";" in gold:
        gold = gold[: gold.index(";")]
    return plain_f1(prediction, gold)


@given(ANY_TEXT, ANY_TEXT, st.sampled_from(CATEGORIES))
def test_equals_the_second_implementation(prediction: str, gold: str, category: str) -> None:
    if any(ord(character) > 0x2E7F for character in prediction + gold):
        return  # our extension for CJK writing begins there
    score = locomo_score(prediction, gold, category)
    assert score == pytest.approx(plain_score(prediction, gold, category), abs=1e-12)


@given(ANY_TEXT, ANY_TEXT, st.sampled_from(CATEGORIES))
def test_scores_lie_between_0_and_1(prediction: str, gold: str, category: str) -> None:
    assert 0 <= locomo_score(prediction, gold, category) <= 1 + 1e-12


@given(ANY_TEXT, ANY_TEXT)
def test_token_f1_is_symmetric(first: str, second: str) -> None:
    assert token_f1(first, second) == pytest.approx(token_f1(second, first), abs=1e-12)


@given(ANY_TEXT)
def test_identical_is_1_unless_nothing_is_left_of_it(text: str) -> None:
    expected = 1.0 if normalize_answer(text) else 0.0
    assert token_f1(text, text) == pytest.approx(expected)


@given(st.lists(st.sampled_from(["cat", "dog", "sun"])), st.lists(st.sampled_from(["red", "blue"])))
def test_disjoint_is_0(first: list[str], second: list[str]) -> None:
    assert token_f1(" ".join(first), " ".join(second)) == 0


def test_equals_the_second_implementation_on_locomo(locomo_file: Path) -> None:
    questions = [
        question
        for conversation in json.loads(locomo_file.read_text(encoding="utf-8"))
        for question in conversation["qa"]
        if "answer" in question
    ]
    golds = [str(question["answer"]) for question in questions]
    for index, question in enumerate(questions):
        category = CATEGORIES[question["category"] - 1]
        for prediction in (golds[index], golds[index - 1], f"I think {golds[index]}, or so."):
            score = locomo_score(prediction, golds[index], category)
            assert score == pytest.approx(plain_score(prediction, golds[index], category))
