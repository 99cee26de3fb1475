"""Which item the rules close when somebody asks to forget a topic, and that it is nobody else's."""

from __future__ import annotations

from datetime import datetime

import pytest

from memograd.memory import Memory, MemoryItem, OpKind, Scope
from memograd.memory.manager import decide_by_rules
from memograd.memory.reader import Fact

NOW = datetime(2024, 5, 8)

# A request as the reader or a chat model writes it down; items, the wanted one first.
CASES = [
    ("Ann's address", ["Ann lives at 5 Elm Street.", "Bob lives at 7 Oak Lane.", "Ann likes tea."]),
    ("Where Ann works", ["Ann works for a bakery.", "Ann's birthday is in May."]),
    ("Which gym Ann goes to", ["Ann is a member of Iron Hall, the gym.", "Ann goes to church."]),
    ("Ann's salary", ["Ann's salary is 5,000 a month.", "Ann pays 900 rent."]),
    ("Ann's phone number", ["Ann's mobile number is 555-0134.", "Bob's phone number is 555-0199."]),
    ("小明的住址", ["小明住在长江路5号。", "小红住在黄河路7号。", "小明喜欢喝茶。"]),
    ("小明的生日", ["小明的生日是5月3日。", "小红的生日是6月1日。"]),
]  # fmt: skip

NONE_OF_THEM = [
    ("Ann's address", ["Bob lives at 7 Oak Lane.", "Ann likes tea."]),
    ("Ann's phone number", ["Bob can be reached at 555-0134.", "Bob's phone number is 555-0199."]),
    ("Ann's address", ["Ann's sister lives at 7 Oak Lane."]),
    ("Ann's sister's address", ["Ann lives at 7 Oak Lane."]),
    ("Ann goes to school by bus", ["Ann studies law.", "Ann takes pills."]),
    ("Ann's locker code is 12", ["Ann's bike lock has the code 77."]),
    ("小明的住址", ["小红住在黄河路7号。", "小明喜欢喝茶。"]),
    ("小明坐车上学", ["小明在学琴。"]),
]


def decided(request: str, texts: list[str]) -> tuple[OpKind, str | None]:
    items = [
        MemoryItem(
            id=str(number), text=text, scope=Scope(user_id="a"), created_at=NOW, updated_at=NOW
        )
        for number, text in enumerate(texts)
    ]
    op = decide_by_rules(Fact(request, ("t",), told_at=NOW, retracts=True), items).op
    return op.kind, op.item_id


@pytest.mark.parametrize(("request_", "texts"), CASES)
def test_the_item_about_the_topic_is_closed(request_: str, texts: list[str]) -> None:
    assert decided(request_, texts) == (OpKind.DELETE, "0")
    turned = list(reversed(texts))
    assert decided(request_, turned) == (OpKind.DELETE, str(len(texts) - 1))


@pytest.mark.parametrize(("request_", "texts"), NONE_OF_THEM)
def test_nothing_is_closed_for_what_nobody_said(request_: str, texts: list[str]) -> None:
    assert decided(request_, texts)[0] is OpKind.NONE


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("I live at 5 Elm Street.", "Could you please delete my address from your memory?"),
        ("My salary is 5,000 a month.", "Please forget what I told you about my salary."),
        ("我住在长江路5号。", "别再记着我的住址了，请删掉。"),
        ("我的房租是900元。", "我之前说的我的房租不算数。"),
    ],
)
def test_a_memory_forgets_when_it_is_asked_to(said: str, asked: str, trigrams, tmp_path) -> None:
    with Memory.open(tmp_path / "memory", embedder=trigrams(dimension=64), env_file=None) as memory:
        memory.add(said, user_id="ann")
        memory.add("I have a cat. 我有一只猫。", user_id="ann")
        before = {item["memory"] for item in memory.get_all(user_id="ann")["results"]}
        memory.add(asked, user_id="ann")
        after = {item["memory"] for item in memory.get_all(user_id="ann")["results"]}
    assert after < before and len(before - after) == 1
