"""Secrets are no items and in no prompt, whatever their form; what stands beside them stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.memory.test_write_path import Answering, opened, texts

from memograd.memory.reader.sentences import (
    has_secret,
    may_hold_secret,
    repeats_code,
    tells_code,
)


@pytest.fixture
def embedder(trigrams: Callable[[], Any]) -> Any:
    return trigrams()


@pytest.mark.parametrize(
    "text",
    [
        "my wifi password is plumduck77",
        "card number 5301 7720 0193 4418 keeps getting declined",
        "got a code 884213 from my bank",
        "我的银行卡密码是482913",
        "my api key is sk-abcdef1234567890",
        "the alarm's 8814 then the star key",
        "the last four digits of my card are 4431",
        "门口报警器先按7093再按井号",
        "行李箱密码是 715",
        "the luggage combination is 309",
        "my pasword for steam is gnomeking42",
        "the passwrod is tulip99x",
    ],
)
def test_secrets_are_no_items_and_in_no_prompt(tmp_path: Path, embedder: Any, text: str) -> None:
    with opened(tmp_path, embedder, Answering()) as memory:
        memory.add(text, user_id="u")
        assert texts(memory) == []
        assert memory.context("password code card key 密码", user_id="u").text == ""


def test_behind_a_code_another_figure_is_one_and_the_rest_stays(
    tmp_path: Path, embedder: Any
) -> None:
    with opened(tmp_path, embedder, Answering()) as memory:
        memory.add("The garage code is 2284 and my wife always forgets it.", user_id="u")
        memory.add(
            "Changed it to 9157 after the break-in next door. We live in Surrey.", user_id="u"
        )
        kept = " ".join(texts(memory))
    assert "Surrey" in kept and "9157" not in kept and "2284" not in kept


def test_behind_a_code_its_halves_are_one_too(tmp_path: Path, embedder: Any) -> None:
    with opened(tmp_path, embedder, Answering()) as memory:
        memory.add("The garage code is 2284.", user_id="u")
        memory.add("Scratch that, it's 43 21 now, my husband keeps forgetting it.", user_id="u")
        assert "43 21" not in " ".join(texts(memory))


class KnowsSecrets(Answering):
    """Finds a secret in every part of a message with one of these words."""

    def __init__(self, *words: str) -> None:
        super().__init__()
        self.words, self.asked = words, set[str]()

    def holds_secret(self, message: str, before: Any, segments: Sequence[str]) -> Any:
        self.asked |= set(segments)
        return np.array([any(word in one for word in self.words) for one in segments], bool)


@pytest.mark.parametrize(
    ("text", "word", "kept"),
    [
        ("I clean for Mrs Day on Mondays, the alarm there is 5590 then hash.", "5590", "Mrs Day"),
        ("My flat is in Leeds. The spare key lies under the frog.", "key", "Leeds"),
        ("我在绵竹住了三年，备用钥匙我压在灭火器底下了。", "钥匙", "绵竹"),
        ("The spare key lies under the frog.", "frog", ""),
    ],
)
def test_a_secret_without_a_form_is_no_item_and_in_no_prompt(
    tmp_path: Path, embedder: Any, text: str, word: str, kept: str
) -> None:
    """What stands beside it is kept."""
    with opened(tmp_path, embedder, KnowsSecrets(word)) as memory:
        memory.add(text, user_id="u")
        found = " ".join(texts(memory))
        assert word not in found and kept in found and bool(found) == bool(kept)
        assert word not in memory.context("alarm key 钥匙", user_id="u").text


def test_what_holds_a_secret_as_a_whole_is_not_kept_in_clauses(
    tmp_path: Path, embedder: Any
) -> None:
    """ "the spare is under, let me think, the frog" holds one in none of its clauses."""
    text = "I keep the spare key under, and I told Ann, the frog by the bins."
    with opened(tmp_path, embedder, KnowsSecrets(text)) as memory:
        memory.add(text, user_id="u")
        assert texts(memory) == []


def test_where_rules_find_the_secret_they_say_what_stays(tmp_path: Path, embedder: Any) -> None:
    with opened(tmp_path, embedder, KnowsSecrets("钥匙")) as memory:
        memory.add("我妈换了钥匙,备用密码770421", user_id="u")
        found = " ".join(texts(memory))
        assert "妈换了钥匙" in found
        assert "770421" not in found


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("my unlock is 270406 same as my old one", True),
        ("保险柜右三圈停17再左转到42就开", True),
        ("the spare key is under the frog", True),
        ("it's a bad combination", False),
        ("I locked myself out in 2019", True),
        ("I'm 34 and I moved in 2016", False),
        ("我今年三十四岁", False),
    ],
)
def test_what_may_hold_a_secret(text: str, may: bool) -> None:
    assert may_hold_secret(text) is may


def test_only_what_may_hold_a_secret_is_asked_about(tmp_path: Path, embedder: Any) -> None:
    model = KnowsSecrets("Leeds", "34", "5590")
    with opened(tmp_path, embedder, model) as memory:
        memory.add("I live in Leeds, I'm 34. I moved in 2016. The bell needs 5590.", user_id="u")
        assert model.asked == {"The bell needs 5590."}
        assert any("Leeds" in text for text in texts(memory))


def test_a_corrected_secret_is_no_item_either(tmp_path: Path, embedder: Any) -> None:
    with opened(tmp_path, embedder, Answering()) as memory:
        memory.add("My PIN is 1234.", user_id="u")
        memory.add("Scratch that, it's 4321.", user_id="u")
        assert texts(memory) == []
        assert memory.context("PIN", user_id="u").text == ""


@pytest.mark.parametrize(
    "text",
    [
        "I've got the key code for the studio now so I can fire at night, it's 7719",
        "whoever closes has to hit 2288 star",
        "the alarm there is 5590 then hash",
        "the network is Dolls and the pass is Lavonne1951# , she won't change it",
        "店里密码换成了阿伟生日+店号",
        "补办的密码又是身份证后六位",
        "医保卡密码我给改成了外婆祭日",
        "网银口令就是狗的名字",
        "新补的那张6228 4803 2910 5567 813一直没到账",
        "配置里写的是sk-9f8e7d6c5b4a3210吧",
    ],
)
def test_a_secret_inside_a_longer_sentence(text: str) -> None:
    assert has_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "we got 2400 stars on GitHub",
        "I ate 1200 hash browns",
        "the pass is closed until May",
        "the door code changed and it's 2 floors up",
        "密码换成新的了",
        "我忘了密码是什么",
        "请队长把口令改成手势",
        "I live at 12 Elm Street.",
        "I weigh 71 kilos",
        "typing this on a framework 13",
        "my alarm is 0630 these days",
        "our card has four digits in gold",
        "rent is 850 pw and 1200 deposit",
        "快递单号773012345678901",
        "退货单号是5501238876543210",
    ],
)
def test_numbers_alone_are_no_secrets(text: str) -> None:
    assert not has_secret(text)


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("I forgot my PIN again. Was it 6627?", True),
        ("我手機解鎖PIN是4417", True),
        ("My PIN is on a note. I wrote it in 2019.", False),
        ("I pinned 12345 photos.", False),
    ],
)
def test_a_code_may_be_told_in_two_sentences(text: str, tells: bool) -> None:
    assert tells_code(text) == tells


@pytest.mark.parametrize(
    ("message", "sentence", "repeats"),
    [
        ("I forgot my PIN. Was it 6627? I always think it's 6627.", "I think it's 6627.", True),
        ("I forgot my PIN. Was it 6627? I live in Hull.", "I live in Hull.", False),
        ("I changed my password. My rent is 1200 now.", "My rent is 1200 now.", False),
        ("Can I change a PIN online? Mine's 5083 still.", "Mine's 5083 still.", True),
    ],
)
def test_a_code_of_another_sentence_is_a_secret(message: str, sentence: str, repeats: bool) -> None:
    assert repeats_code(message, sentence) is repeats


class OverlooksBesideSecrets(Answering):
    """Finds a fact in a clause that it reads alone, and hardly one in a message with a password."""

    def worth(self, message: str, *read: Any, **settings: Any) -> Any:
        rows = super().worth(message, *read, **settings)
        if "password" in message or "密码" in message:
            rows[:, 0] = 0.6
        return rows


@pytest.mark.parametrize(
    ("text", "kept", "secret"),
    [
        ("The wifi password is Quokka-77-blue, I have a TP-Link Archer.", "Archer", "Quokka"),
        ("后台密码 Tulip_8830,我的店开在有赞上,在哪儿改", "有赞", "Tulip"),
    ],
)
def test_a_fact_beside_a_secret_is_read_alone(
    tmp_path: Path, embedder: Any, text: str, kept: str, secret: str
) -> None:
    with opened(tmp_path, embedder, OverlooksBesideSecrets()) as memory:
        memory.add(text, user_id="u")
        found = " ".join(texts(memory))
        assert kept in found and secret not in found
