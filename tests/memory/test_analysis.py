from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.memory.analysis import CHINESE_STOP_WORDS, ENGLISH_STOP_WORDS, analyse

MIXED = [
    "I bought an iPhone 15 at 北京大学 on 2023年5月7日",
    "She doesn't like running in São Paulo",
    "我不喜欢吃香菜，没有去过中华人民共和国",
    "東京タワーに行きました",
]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", ()),
        (" \n\t…!？", ()),
        ("The Cats were running", ("cat", "run")),
        ("Caroline's dogs, JOHN’S dog", ("carolin", "dog", "john", "dog")),
        ("iPhone 15在北京", ("iphon", "15", "北京")),
        ("iPhone15", ("iphone15",)),
        ("ｆｕｌｌ　ｗｉｄｔｈ １２３", ("full", "width", "123")),
        ("3,000 or 3000; 3.14; 007", ("3000", "3000", "3.14", "7")),
        ("2023-05-07 10:30", ("2023", "5", "7", "10", "30")),
        ("7 May 2023", ("7", "may", "2023")),
        ("2023年5月7日", ("2023", "2023年", "5", "5月", "7", "7日")),
        ("don't, can't, cannot, won't", ("not", "not", "not", "will", "not")),
        ("café São José", ("cafe", "sao", "jose")),
        ("bob@example.com", ("bob@example.com", "bob", "exampl", "com")),
        ("see https://a.org/x1.", ("see", "https://a.org/x1", "https", "org", "x1")),
        ("C++ and C#", ("c++", "c#")),
        ("1,000,00 and 1.2.3", ("1", "0", "0", "1", "2", "3")),
        ("GPT-4o", ("gpt", "4o")),
        ("Привет, МИР!", ("привет", "мир")),
        ("مرحبا بالعالم", ("مرحبا", "بالعالم")),
        ("हिन्दी भाषा", ("हिन्दी", "भाषा")),
        ("학교에 간다", ("학교", "교에", "간다")),
        ("タワー", ("タワ", "ワー")),
        ("の", ("の",)),
        ("A" * 90, ("a" * 90,)),
    ],
)
def test_golden_terms(text: str, terms: tuple[str, ...]) -> None:
    assert analyse(text) == terms


def test_a_part_of_a_chinese_name_finds_the_whole() -> None:
    whole = analyse("她在北京大学读书")
    assert {"北京", "大学", "北京大学", "读书"} == set(whole)
    assert set(analyse("北京")) <= set(whole)


def test_traditional_characters_are_the_simplified_ones() -> None:
    told = "我女兒對花生過敏，電話號碼在廚房的櫃子裡，週末去臺北參觀博物館。"
    same = "我女儿对花生过敏，电话号码在厨房的柜子里，周末去台北参观博物馆。"
    assert analyse(told) == analyse(same)
    assert "女儿" in analyse(told)


def test_negation_is_kept_in_both_languages() -> None:
    assert "not" in analyse("He isn't a vegetarian")
    assert "不" in analyse("他不喜欢吃肉")


def test_function_words_are_dropped_in_both_languages() -> None:
    assert analyse("what did you do with it") == ()
    assert analyse("我的是什么") == ()
    for word in ENGLISH_STOP_WORDS | CHINESE_STOP_WORDS:
        assert analyse(word) == (), word


def test_letter_case_and_width_do_not_matter() -> None:
    assert analyse("Straße ＡＢＣ") == analyse("STRASSE abc")


# Scripts and marks that the pattern treats specially, so that random texts often meet them.
ODD = "aé'’.@+#0１٣９,-_:/ 的京大年月日学㐀𠀀々〇ター한글กáйا🎉\ufe0f\u200d\u0301\u3099ﬁ\0\n"
texts = st.one_of(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=60), st.text(ODD, max_size=40)
)


@given(texts)
def test_never_raises_and_never_wavers(text: str) -> None:
    terms = analyse(text)
    assert analyse(text) == terms
    assert all(terms)
    for term in terms:
        assert not any(char.isspace() for char in term), term
    # What is analysed is the folded text: case cannot matter for letters with one capital.
    if text.isascii():
        assert analyse(text.upper()) == terms


@given(st.integers(0, 10**12))
def test_an_integer_is_one_term_however_it_is_written(number: int) -> None:
    assert analyse(str(number)) == analyse(f"00{number}") == analyse(f"{number:,}")


def test_threads_agree() -> None:
    sequential = [analyse(text) for text in MIXED] * 25
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(analyse, MIXED * 25)) == sequential


@pytest.mark.slow
def test_processes_agree_and_loading_is_silent() -> None:
    """Another process, with another hash seed, gives the same terms and writes no cache or log."""
    code = f"from memograd.memory.analysis import analyse; print([analyse(t) for t in {MIXED!r}])"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONHASHSEED": "7", "PYTHONIOENCODING": "utf-8"},
        check=True,
    )
    assert run.stdout.strip() == str([analyse(text) for text in MIXED])
    assert run.stderr == ""


def test_english_does_not_load_the_chinese_dictionary() -> None:
    code = (
        "import sys, memograd.memory.analysis as a; light = 'snowballstemmer' in sys.modules;"
        "a.analyse('running shoes'); print(light, 'jieba' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]


def test_words_that_an_application_adds_to_jieba_do_not_change_ours() -> None:
    import jieba

    before = analyse("他在小米科技园上班")
    jieba.add_word("小米科技园上班")
    try:
        assert analyse("他在小米科技园上班") == before
    finally:
        jieba.del_word("小米科技园上班")
