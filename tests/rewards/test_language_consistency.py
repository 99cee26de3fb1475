"""The share of an answer that is in the expected script."""

from __future__ import annotations

import pytest

from memograd.errors import BadInput
from memograd.rewards.style import language_consistency

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
