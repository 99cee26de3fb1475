"""Exact and numeric match: what is compared, and what never matters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.rewards.matching import answer_part, exact_match, numeric_match


@pytest.mark.parametrize(
    ("completion", "answer", "score"),
    [
        ("Paris", "paris", 1),
        (" Paris. ", "Paris", 1),
        ("The answer is Paris", "Paris", 0),
        ("<think>Rome?</think><answer> Paris </answer>", "Paris", 1),
        ("<answer>Rome</answer> no: <answer>Paris</answer>", "Paris", 1),
        ("巴黎。", "巴黎", 1),
        ("巴黎", "里昂", 0),
        ("ＡＢＣ", "abc", 1),
        ("new\n york", "New York", 1),
        ("5", 5, 1),
        ("5", 5.0, 1),
        ("5.0", 5.0, 1),
        ("5.5", 5.5, 1),
        ("UK", ["United Kingdom", "UK"], 1),
        ("", "x", 0),
        ("", "?", 0),
        ("。", "？", 0),
        ("？", "?", 1),
    ],
)
def test_exact_match(completion: str, answer: object, score: float) -> None:
    assert exact_match(completion, answer) == score  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("completion", "answer", "score"),
    [
        ("3 apples and 4 pears make 7", "7", 1),
        ("7 apples, of which 3 are red", "7", 0),
        ("一共是七个", 7, 1),
        ("<answer>12</answer> (step 3)", 12, 1),
        ("#### 1,000", "so\n#### 1000", 1),
        ("３．５", 3.5, 1),
        ("none", 7, 0),
        ("8", [7, 8], 1),
    ],
)
def test_numeric_match(completion: str, answer: object, score: float) -> None:
    assert numeric_match(completion, answer) == score  # type: ignore[arg-type]


def test_tolerance_is_a_share_of_the_right_number() -> None:
    assert numeric_match("101", 100, tolerance=0.01) == 1
    assert numeric_match("102", 100, tolerance=0.01) == 0
    assert numeric_match("0.3333", "0.333333", tolerance=1e-3) == 1


@pytest.mark.parametrize("answer", [None, True, [], ["a", None], {"a": 1}])
def test_an_answer_of_another_kind_is_refused(answer: object) -> None:
    with pytest.raises(BadInput, match="the column answer must be"):
        exact_match("x", answer)  # type: ignore[arg-type]


def test_a_gold_without_a_number_is_refused() -> None:
    with pytest.raises(BadInput, match="must have a number"):
        numeric_match("7", "seven")


@given(st.text(), st.text(), st.text(st.characters(blacklist_characters="<>")))
def test_text_outside_the_last_tags_never_matters(before: str, after: str, said: str) -> None:
    if "answer>" not in before + after:
        assert answer_part(f"{before}<answer>{said}</answer>{after}") == said.strip()
