"""Of a list those members go that a message names, and the others stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.test_write_path import Answering, opened, texts

from memograd.memory.manager.members import without_members


@pytest.fixture
def embedder(trigrams: Any) -> Any:
    return trigrams()


@pytest.mark.parametrize(
    ("item", "message", "left"),
    [
        (
            "User's top 3 anime: Mushishi, Monster and Frieren.",
            "take monster off, i only put it cos of my brother",
            "User's top 3 anime: Mushishi and Frieren.",
        ),
        (
            "User's top 3 anime: Mushishi, Monster and Frieren.",
            "drop Monster and Frieren",
            "User's top 3 anime: Mushishi.",
        ),
        (
            "User plays the cello, the oboe and the harp.",
            "sold the cello last week",
            "User plays the oboe and the harp.",
        ),
        (
            "User owns a tent, two kayaks and a camper van.",
            "camper van's gone, sold it in june",
            "User owns a tent and two kayaks.",
        ),
        (
            "User speaks French, Dutch and Polish.",
            "scratch the Polish",
            "User speaks French and Dutch.",
        ),
        ("User's kids do chess and drama.", "no more chess", "User's kids do drama."),
        ("用户会弹吉他、钢琴和古筝。", "钢琴早就不弹了", "用户会弹吉他和古筝。"),
        ("用户养了一只猫、两只兔子和一条狗。", "狗送人了", "用户养了一只猫和两只兔子。"),
        ("用户对花生、虾、芒果过敏。", "虾其实没事,查过了", "用户对花生和芒果过敏。"),
        (
            "用户最爱的电影：霸王别姬、活着、饮食男女。",
            "把活着去掉",
            "用户最爱的电影：霸王别姬和饮食男女。",
        ),
        # Not by name, all of them, or what stays:
        ("User plays the cello, the oboe and the harp.", "sold it", None),
        ("User plays chess and go.", "gave up chess and go", None),
        ("User drinks coffee, tea and juice.", "I quit all but tea", None),
        ("User drinks coffee, tea and juice.", "no coffee, tea these days", None),
        ("用户喝咖啡、茶和果汁。", "现在只喝茶", None),
        ("User said: Oat milk in everything, coffee, porridge, the lot.", "soya in coffee", None),
        ("User lives in Leeds.", "not Leeds", None),
    ],
)
def test_members_go_by_name(item: str, message: str, left: str | None) -> None:
    assert without_members(item, message) == left


@given(st.text(max_size=60), st.text(max_size=40))
def test_something_always_stays(item: str, message: str) -> None:
    left = without_members(item, message)
    assert left is None or left.strip()


def test_a_list_does_not_end_with_one_of_its_members(tmp_path: Path, embedder: Any) -> None:
    model = Answering()
    with opened(tmp_path, embedder, model) as memory:
        memory.add("I play the cello, the oboe and the harp", user_id="u")
        model.relation, model.sure = "end", 0.95
        memory.add("sold the oboe last week", user_id="u")
        assert any("plays the cello and the harp (formerly" in text for text in texts(memory))
