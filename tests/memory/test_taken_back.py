"""What is taken back in the same breath is remembered as it was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from memograd.memory import Memory
from memograd.memory.manager.taken_back import as_meant
from memograd.memory.relations.model import SHIPPED


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("我家有十六亩地,噢不是,十五亩,让了一亩给我哥", "我家有十五亩地,让了一亩给我哥"),
        ("女儿8岁，哦不，9岁，刚过完生日", "女儿9岁，刚过完生日"),
        ("航班是下午三点，说错了，是下午五点，在T2", "航班是下午五点，在T2"),
        ("我周三，不对，周四去体检", "我周四去体检"),
        (
            "The tank is a 20 gallon, no wait, 30, the tall one.",
            "The tank is a 30 gallon, the tall one.",
        ),
        ("Dinner is at 6 pm... no wait, it's 7 pm. Bring wine.", "Dinner is at 7 pm. Bring wine."),
    ],
)
def test_a_value_taken_back_in_the_same_breath_is_left_off(said: str, meant: str) -> None:
    assert as_meant(said) == meant


@pytest.mark.parametrize(
    "said",
    [
        "他八点来的，不是，他九点走",
        "这不是我的错，是他的",
        "房租2800，不是3000",
        "我有5个，不是，你听我说，6个都坏了",
        "My number is 12, no sorry, I can't give you that",
        "I have two dogs, no, wait for me, and one cat",
    ],
)
def test_other_words_stay(said: str) -> None:
    assert as_meant(said) == said


@pytest.mark.skipif(
    not SHIPPED.is_file(), reason="the relation model's weights are not in this copy"
)
def test_only_what_was_meant_is_remembered(tmp_path: Path) -> None:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        memory.add("我家有十六亩地,噢不是,十五亩,让了一亩给我哥", user_id="u")
        memory.add("My fish tank is a 20 gallon, no wait, 30, the tall one.", user_id="v")
        kept = memory.get_all(user_id="u")["results"] + memory.get_all(user_id="v")["results"]
    texts = " ".join(one["memory"] for one in kept)
    assert "十五亩" in texts and "十六亩" not in texts
    assert "30 gallon" in texts and "20" not in texts
