"""Two values taken for each other change places, and only where it is clear which they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.test_write_path import Answering, opened, texts

from memograd.memory.manager.swap import asks_to_swap, swapped, swapped_between


@pytest.fixture
def embedder(trigrams: Any) -> Any:
    return trigrams()


@pytest.mark.parametrize(
    ("item", "right"),
    [
        (
            "User's twins: Idris plays cello and Noor does judo.",
            "User's twins: Noor plays cello and Idris does judo.",
        ),
        (
            "User's son Tom likes trains and their daughter Mia likes planes.",
            "User's daughter Mia likes trains and their son Tom likes planes.",
        ),
        (
            "User said: Mia lives in Leeds and Tom lives in York.",
            "User said: Mia lives in York and Tom lives in Leeds.",
        ),
        (
            "User said: the cat is Miso and the dog is Ramen.",
            "User said: the cat is Ramen and the dog is Miso.",
        ),
        ("User said: Dad is 71 and mum is 68.", "User said: mum is 71 and Dad is 68."),
        (
            "User has gym on Mondays and pilates on Thursdays.",
            "User has gym on Thursdays and pilates on Mondays.",
        ),
        ("用户说：老大学钢琴,老二学画画。", "用户说：老二学钢琴,老大学画画。"),
        ("用户说：弟弟在杭州,妹妹在宁波。", "用户说：妹妹在杭州,弟弟在宁波。"),
        ("用户说：左边抽屉放发票,右边放合同。", "用户说：右边抽屉放发票,左边放合同。"),
        ("用户说：周一瑜伽,周四游泳。", "用户说：周四瑜伽,周一游泳。"),
        ("User said: Tom lives in Leeds.", None),
        ("User has a meeting at 3.", None),
        ("用户养猫。", None),
    ],
)
def test_two_values_change_places(item: str, right: str | None) -> None:
    assert swapped(item) == right


def test_of_two_items_each_gets_the_other_value() -> None:
    assert swapped_between("用户的妈属龙。", "用户的爸属虎。") == (
        "用户的爸属龙。",
        "用户的妈属虎。",
    )
    assert swapped_between("User likes tea.", "User has a dog.") is None


@pytest.mark.parametrize(
    ("message", "asks"),
    [
        ("gah, other way round", True),
        ("vice versa, sorry", True),
        ("i had them mixed up", True),
        ("got that the wrong way round", True),
        ("额 反了", True),
        ("说反了哈", True),
        ("反了反了", True),
        ("we had them round for dinner", False),
        ("can you swap that for a shorter one", False),
        ("我反对", False),
        ("垃圾都倒了", False),
        ("帮我换一下语气", False),
    ],
)
def test_what_asks_to_swap(message: str, asks: bool) -> None:
    assert asks_to_swap(message) is asks


@given(st.text(max_size=80))
def test_a_swap_keeps_every_character(text: str) -> None:
    told = swapped(text)
    assert told is None or sorted(told) == sorted(text)


def test_what_was_just_told_is_swapped_and_else_in_doubt(tmp_path: Path, embedder: Any) -> None:
    """ "Other way round" was related to nothing, and both values stood as they were."""
    model = Answering()
    with opened(tmp_path, embedder, model) as memory:
        memory.add("Idris plays cello and Noor does judo", user_id="u")
        memory.add("my shop opens at nine", user_id="v")
        model.worth_ = "nothing"
        for user in "uv":
            memory.add("gah, other way round", user_id=user)
        assert any("Noor plays cello and Idris does judo" in text for text in texts(memory))
        assert any("perhaps no longer" in text for text in texts(memory, "v"))


def test_a_swap_takes_no_other_item_s_place(tmp_path: Path, embedder: Any) -> None:
    """ "Gah, other way round" took the place of a cat's name that was told before."""
    model = Answering()
    with opened(tmp_path, embedder, model) as memory:
        memory.add("my cat is Rex", user_id="u")
        memory.add("I play chess, go and shogi", user_id="u")
        model.relation = "replace"
        memory.add("gah, other way round", user_id="u")
        assert "User's cat is Rex." in texts(memory)
        assert any("shogi" in text and "perhaps no longer" in text for text in texts(memory))
