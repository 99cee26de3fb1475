"""Format, length, repetition, connectives, keywords and script, in English and Chinese."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.rewards.style import (
    coherence,
    format_match,
    keyword_coverage,
    language_consistency,
    length,
    repetition_penalty,
)


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("<think>a\nb</think><answer>c</answer>", 1),
        ("<think>想一想</think>\n<answer>答案</answer>\n", 1),
        ("<answer>c</answer>", 0),
        ("<think>a</think><answer>c</answer> and more", 0),
        ("<think>a</think><answer>c</answer><answer>d</answer>", 0),
        ("<think>a<think>b</think></think><answer>c</answer>", 0),
        ("<answer>c</answer><think>a</think>", 0),
        ("", 0),
    ],
)
def test_the_default_format(completion: str, score: float) -> None:
    assert format_match(completion) == score


def test_a_format_of_ones_own() -> None:
    assert format_match("答案:42", pattern=r"答案:\d+") == 1
    assert format_match("答案:42吧", pattern=r"答案:\d+") == 0
    with pytest.raises(BadInput, match="is no regular expression"):
        format_match("x", pattern="(")


@given(st.integers(0, 120))
def test_length_with_one_target_is_the_classic_formula(count: int) -> None:
    expected = max(0.0, 1.0 - abs(count - 50) / 50)
    assert length(" ".join(["word"] * count)) == pytest.approx(expected)
    assert length("字" * count) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("count", "score"), [(0, 0), (10, 0.5), (20, 1), (30, 1), (45, 0.5), (60, 0), (90, 0)]
)
def test_length_in_a_range(count: int, score: float) -> None:
    assert length("w " * count, low=20, high=30) == pytest.approx(score)


@pytest.mark.parametrize("limits", [(0, 5), (6, 5)])
def test_length_refuses_an_empty_range(limits: tuple[int, int]) -> None:
    with pytest.raises(BadInput, match="1 <= low <= high"):
        length("x", low=limits[0], high=limits[1])


@pytest.mark.parametrize(
    ("completion", "n", "score"),
    [
        ("a b c d e", 3, 0),
        ("a b", 3, 0),
        ("a a a a", 1, -0.75),
        ("a b a b a b", 2, -0.6),
        ("好好好好好", 3, -2 / 3),
        ("", 3, 0),
    ],
)
def test_repetition(completion: str, n: int, score: float) -> None:
    assert repetition_penalty(completion, n=n) == pytest.approx(score)


def test_coherence() -> None:
    assert coherence("因为下雨,所以没去。") == pytest.approx(0.4)
    assert coherence("首先这样,其次那样,因此如此。") == pytest.approx(0.6)
    assert coherence("However, a sofa. Therefore thus.") == pytest.approx(0.6)
    assert coherence("因为因为因为") == pytest.approx(0.2)
    assert coherence("因为所以然而但是首先其次") == 1.0
    assert coherence("然而", connectives=["因为"], each=0.5) == 0.0


def test_keywords() -> None:
    assert keyword_coverage("We use Python and 机器学习.", ["python", "机器学习", "Rust"]) == (
        pytest.approx(2 / 3)
    )
    assert keyword_coverage("sofa", "so") == 0
    for wrong in ([], [""], [1], 5):
        with pytest.raises(BadInput, match="the column keywords"):
            keyword_coverage("x", wrong)  # type: ignore[arg-type]


@given(st.text())
def test_scores_stay_in_their_range(text: str) -> None:
    assert format_match(text) in (0.0, 1.0)
    assert 0 <= length(text, low=2, high=3) <= 1
    assert -1 < repetition_penalty(text) <= 0
    assert 0 <= coherence(text) <= 1
    assert 0 <= keyword_coverage(text, ["a", "的"]) <= 1


TEXTS = {
    "zh": "北京是中国的首都",
    "en": "Beijing is the capital",
    "ko": "베이징은 수도입니다",
    "ru": "Пекин это столица",
}


@pytest.mark.parametrize("said", TEXTS)
@pytest.mark.parametrize("wanted", TEXTS)
def test_one_script_scores_for_itself_only(said: str, wanted: str) -> None:
    score = float(said == wanted)
    assert language_consistency(TEXTS[said], "", language=wanted) == score
    assert language_consistency(TEXTS[said], TEXTS[wanted] + " 42!") == score


def test_mixtures_count_words_and_characters() -> None:
    assert language_consistency("我喜欢MacBook", "你喜欢什么?") == pytest.approx(3 / 4)
    assert language_consistency("The 答案 is here", "why?") == pytest.approx(3 / 5)


def test_japanese_is_told_from_chinese_by_its_kana() -> None:
    prompt = "東京へ行きましたか"
    assert language_consistency("はい、行きました", prompt) == 1
    assert language_consistency("はい、行きました", "你去东京了吗") < 0.5


def test_numbers_are_of_every_language_and_silence_of_none() -> None:
    assert language_consistency("42.", "多少?") == 1
    assert language_consistency("  ", "多少?") == 0


def test_a_prompt_without_letters_expects_nothing() -> None:
    assert language_consistency("four", "2 + 2 =") is None


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(BadInput, match='knows no language "klingon"'):
        language_consistency("x", "y", language="klingon")
