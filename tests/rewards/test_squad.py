"""SQuAD's exact match and F1 against cases by hand and against a second implementation."""

from __future__ import annotations

import collections
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.memory.language import Language
from memograd.rewards import get_reward
from memograd.rewards.overlap import memory_r1_exact_match, squad_em, squad_f1

LANGUAGES: st.SearchStrategy[Language] = st.sampled_from(["en", "zh"])
WORDS = ["the", "An", "cat", "Cat.", "o'clock", "3.5", "北京", "大学。", "Ａ", "!", "a"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join) | st.text(max_size=20)


@pytest.mark.parametrize(
    ("prediction", "gold", "language", "em", "f1"),
    [
        ("The cat.", "cat", "en", 1, 1),
        ("the black cat", "a cat", "en", 0, 2 / 3),  # one of 2 and one of 1 words
        ("U.S.A.", "USA", "en", 1, 1),
        ("cat cat", "cat", "en", 0, 2 / 3),  # a word counts as often as both have it
        ("the", "", "en", 1, 1),  # the official rule for what normalises to nothing
        ("cat", "", "en", 0, 0),
        ("北京。", "北京", "zh", 1, 1),
        ("北京大学", "北京", "zh", 0, 2 / 3),  # two of four and two of two characters
        ("２０２３年５月", "2023年5月", "zh", 1, 1),
        ("选 A", "A", "zh", 0, 2 / 3),
        ("A", "B", "zh", 0, 0),
        ("上海", "北京", "zh", 0, 0),
    ],
)
def test_by_hand(prediction: str, gold: str, language: Language, em: float, f1: float) -> None:
    assert squad_em(prediction, gold, language) == em
    assert squad_f1(prediction, gold, language) == pytest.approx(f1)


def official_f1(prediction: str, gold: str) -> tuple[float, float]:
    """English only, written down step by step from the paper's definition."""
    bags = []
    for text in (prediction, gold):
        kept = "".join(c for c in text.lower() if c not in set(string.punctuation))
        bags.append(re.sub(r"\b(a|an|the)\b", " ", kept).split())
    common = collections.Counter(bags[0]) & collections.Counter(bags[1])
    same = sum(common.values())
    em = float(" ".join(bags[0]) == " ".join(bags[1]))
    if not bags[0] or not bags[1]:
        return em, float(bags[0] == bags[1])
    if same == 0:
        return em, 0.0
    precision, recall = same / len(bags[0]), same / len(bags[1])
    return em, 2 * precision * recall / (precision + recall)


ASCII = st.lists(st.sampled_from([w for w in WORDS if w.isascii()]), max_size=6).map(" ".join)


@given(ASCII | st.text(st.characters(max_codepoint=127)), ASCII)
def test_english_is_the_official_number(prediction: str, gold: str) -> None:
    em, f1 = official_f1(prediction, gold)
    assert squad_em(prediction, gold, "en") == em
    assert squad_f1(prediction, gold, "en") == pytest.approx(f1)


@given(TEXTS, TEXTS, LANGUAGES)
def test_bounds_symmetry_and_order(one: str, other: str, language: Language) -> None:
    f1 = squad_f1(one, other, language)
    assert 0 <= squad_em(one, other, language) <= f1 <= 1
    assert f1 == squad_f1(other, one, language)
    assert squad_em(one, one, language) == squad_f1(one, one, language) == 1


def test_memory_r1_reads_the_answer_part_and_takes_any_right_answer() -> None:
    assert memory_r1_exact_match("<think>Rome</think><answer>the Paris</answer>", "Paris") == 1
    assert memory_r1_exact_match("Rome", ["Paris", "rome."]) == 1
    assert memory_r1_exact_match("班级 A", "A 班级") == 0
    assert memory_r1_exact_match("7", 7) == 1
    with pytest.raises(BadInput, match="the column answer must be"):
        memory_r1_exact_match("x", [])


def test_it_is_a_reward_by_its_name() -> None:
    reward = get_reward("memory_r1_exact_match")
    assert reward(prompts=["q", "q"], completions=["The Nile", "Nil"], answer=["Nile", "Nile"]) == [
        1.0,
        0.0,
    ]
