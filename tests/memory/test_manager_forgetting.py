"""Which item the rules close when somebody asks to forget a topic, and that it is nobody else's."""

from __future__ import annotations

from datetime import datetime

import pytest

from memograd.memory import Memory, MemoryItem, OpKind, Scope
from memograd.memory.manager import decide_by_rules
from memograd.memory.manager.topics import about, reported_topic
from memograd.memory.reader import Fact

NOW = datetime(2024, 5, 8)

# A request as the reader or a chat model writes it down; items, the wanted one first.
CASES = [
    ("Ann's address", ["Ann lives at 5 Elm Street.", "Bob lives at 7 Oak Lane.", "Ann likes tea."]),
    ("Where Ann works", ["Ann works for a bakery.", "Ann's birthday is in May."]),
    ("Which gym Ann goes to", ["Ann is a member of Iron Hall, the gym.", "Ann goes to church."]),
    ("Ann's salary", ["According to Ann, she earns 5,000 a month.", "Ann pays 900 rent."]),
    ("Ann asked to delete her phone number.", ["Ann can be reached at 555-0134.", "Ann reads."]),
    (
        "Ann asked to forget that her uncle Tom really likes musicals.",
        ["Tom really likes musicals.", "Ann has an uncle, Tom.", "Ann likes musicals."],
    ),
    ("Ann asked to forget what her cousin Eve is saving for.", ["Eve is saving for a boat."]),
    ("小明的住址", ["小明住在长江路5号。", "小红住在黄河路7号。", "小明喜欢喝茶。"]),
    ("小明要求忘掉他的电话。", ["找小明可以打138-0000-0101。", "小明养了一只猫。"]),
    ("小明要求删掉这一条，他的生日是5月3日。", ["小明的生日是5月3日。", "小红的生日是5月3日。"]),
    ("小明要求删掉他的生日。", ["小明说，他5月3日过生日。", "小明说，小红的生日是6月1日。"]),
    ("小明在为什么攒钱", ["小明在攒钱买船。", "小明在学琴。"]),
]  # fmt: skip

NONE_OF_THEM = [
    ("Ann's address", ["Bob lives at 7 Oak Lane.", "Ann likes tea."]),
    ("Ann asked to delete her phone number.", ["Bob can be reached at 555-0134."]),
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


def test_what_is_about_nobody_else() -> None:
    assert about("Ann's rent", "According to Ann, Bob's rent is 900.") == 0
    assert about("Ann's rent", "According to Ann, her rent is 900.") > 0
    assert about("小明的房租", "据小明说，小红的房租是900元。") == 0


@pytest.mark.parametrize(
    ("report", "topic"),
    [
        ("Ann asked to erase what was said about which gym she goes to.", "which gym Ann goes to"),
        ("Ann wants me to forget her salary.", "Ann's salary"),
        ("Ann asked the assistant not to remember her weight.", "Ann's weight"),
        ("小明要求别再记着他的体重。", "小明的体重"),
        ("小明希望助手忘掉他住在北京。", "小明住在北京"),
        ("Ann asked to borrow my book.", None),
        ("Ann forgot her keys.", None),
        ("小明要求加薪。", None),
        ("小明想让大家别忘了他的生日。", None),
    ],
)
def test_requests_told_of_somebody(report: str, topic: str | None) -> None:
    assert reported_topic(report) == topic


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
