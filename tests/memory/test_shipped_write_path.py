"""What the trained write path does with the model that ships; skipped where its weights are not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memograd.memory import Memory
from memograd.memory.relations.model import SHIPPED

BEHAVIOUR = Path(__file__).resolve().parents[1] / "behaviour"
CASES = [
    json.loads(line)
    for name in ("en", "zh")
    for line in (BEHAVIOUR / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
]


def texts(memory: Memory, user: str = "u") -> list[str]:
    return [one["memory"] for one in memory.get_all(user_id=user)["results"]]


needs_model = pytest.mark.skipif(
    not SHIPPED.is_file(), reason="the relation model's weights are not in this copy"
)


@pytest.fixture(scope="module")
def trained(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Memory]:
    with Memory.open(
        tmp_path_factory.mktemp("m"), reader="trained", manager="trained", env_file=None
    ) as memory:
        yield memory


# The gate holds most of these for messages that close nothing, so rules alone see them; and no case
# of `tests/behaviour` is as plain.
@needs_model
@pytest.mark.parametrize(
    ("told", "then", "present"),
    [
        ("My car is a Honda.", "My car is a Toyota.", "Toyota (formerly"),
        ("I work at Google.", "I work at Apple.", "Apple (formerly"),
        ("I'm a nurse.", "I'm a teacher.", "teacher (formerly"),
        ("My dog is called Rex.", "My dog is called Max.", "Max (formerly"),
        ("I'm married.", "I'm single.", "single (formerly"),
        ("我今年30岁。", "我今年31岁。", "31岁（此前"),
        ("我的生日是5月3日。", "我的生日是6月3日。", "6月3日（此前"),
        ("我的车是本田。", "我的车是丰田。", "丰田（此前"),
    ],
)
def test_another_value_in_plain_words_takes_the_place(
    trained: Memory, told: str, then: str, present: str
) -> None:
    trained.add(told, user_id=then)
    trained.add(then, user_id=then)
    [item] = texts(trained, then)
    assert present in item


@needs_model
@pytest.mark.parametrize(
    ("steps", "has", "hasnt"),
    [
        (["My car is a Honda.", "My car is dirty."], "Honda", None),
        (["I live in Boston.", "I live in a small apartment."], "Boston", None),
        (["My name is Bob.", "My name is hard to spell."], "Bob", None),
        (["I work at Google.", "I work at night."], "Google", None),
        (["我的职业是律师", "我的职业是最累的"], "律师", None),
        (
            ["I live in Ottawa", "I just moved to Montreal"],
            "Montreal",
            "lives in Ottawa(?!, until)",
        ),
    ],
)
def test_the_shipped_model_harms_nothing(
    trained: Memory, steps: list[str], has: str, hasnt: str | None
) -> None:
    user = "|".join(steps)
    for step in steps:
        trained.add(step, user_id=user)
    found = "\n".join(texts(trained, user))
    assert re.search(has, found) and not (hasnt and re.search(hasnt, found))


ASKED_TRAIN = [
    {"role": "assistant", "content": "Shall I remember that you prefer trains over planes?"},
    {"role": "user", "content": "yeah go on"},
]
CHOSE_HARBOUR = [
    {"role": "assistant", "content": "Is your appointment at the Eastside or the Harbour clinic?"},
    {"role": "user", "content": "second one"},
]


@needs_model
@pytest.mark.parametrize(
    ("steps", "has", "hasnt"),
    [
        # What takes an item's place keeps all that the message states.
        (
            ["bench PR is 80 kg", "82.5 moved like butter today. NEW PR baby"],
            "(?s)82.5.*PR|PR.*82.5",
            None,
        ),
        # A number stays with the words that say what it is.
        (["mobile: 07700 900114", "new sim. 07700 900873"], "new sim. 07700 900873", None),
        # Beside a fact, a question tells something by the way.
        (["what can coeliacs eat in Seoul? we fly on the 19th"], "Seoul", None),
        # A choice is told without what was not chosen.
        ([CHOSE_HARBOUR], "Harbour", "Eastside"),
        # An offer to remember is no offer for once.
        ([ASKED_TRAIN], "trains", None),
        # What denies the message before it, whatever it goes on with.
        (
            ["我其实是退役的国家队举重运动员。", "哈哈骗你的,我连桶装水都换不动。"],
            "桶装水",
            "退役",
        ),
        # What may stay is not why the request would be idle.
        (
            ["我得过乙肝,现在在跑网约车。", "得病这事儿请从你那里清掉,工作留着没事。"],
            "网约车",
            "乙肝",
        ),
        # A clause is no value: nothing is put in a word's place.
        (["我在菜市场东门摆豆腐摊。", "东门拆了,摊子搬到北门水产旁边去了"], "北门", "拆了腐"),
        # What a request names goes, and what it does not mean stays.
        (
            ["I'm Catholic, and I teach chemistry in Bolton.", "leave my religion out of it"],
            "chemistry",
            "Catholic",
        ),
        (["我有糖尿病,养了一只鹦鹉叫阿绿", "病史不要记,鹦鹉没关系"], "阿绿", "糖尿病"),
        (["我在吃抗抑郁的药,下周要去成都出差", "吃药这个事别存"], "成都", "抗抑郁"),
        (["im bi, not out at home", "get rid of what i just told you pls"], "^$", "not out"),
        (["我婆婆做饭特别咸,我每次都偷偷加水", "这句收回,传出去要出大事"], "^$", "加水"),
        # A remark with a "not" of its own takes nothing back.
        (
            ["养了只边牧叫代码", "代码今天把我的论文咬了,第三章,正好是我最不满意的那章"],
            "边牧",
            None,
        ),
        # Behind "don't save this" stands another matter, told by itself.
        (["这句不要记:我欠了网贷。还有,我女儿叫糖糖,周岁办什么酒好?"], "糖糖", "网贷"),
        (["支付宝口令 mm7788qq 登不上,手机是vivo X100,换卡了有关系吗"], "X100", "mm7788"),
        (["The safe in the vestry opens with 11-42-08."], "^$", "11-42"),
    ],
)
def test_the_shipped_model_and_the_words_around_it(
    trained: Memory, steps: list[Any], has: str, hasnt: str | None
) -> None:
    user = str(steps)
    for step in steps:
        trained.add(step, user_id=user)
    found = "\n".join(texts(trained, user))
    assert re.search(has, found) and not (hasnt and re.search(hasnt, found))


@needs_model
@pytest.mark.parametrize(
    ("others", "first", "then"),
    [
        (
            ["I bake rye bread on Fridays.", "I play the oboe.", "I collect stamps of birds."],
            "Our anniversary is 12 June, I want to book somewhere with tablecloths",
            "She's reading over my shoulder and I've been hit with a cushion. The eleventh. For the"
            " record, in writing, the eleventh.",
        ),
        (
            ["我每周五烤面包。", "我会吹双簧管。", "我收集邮票。"],
            "我大孙子上幼儿园大班,皮得很",
            "大孙子今天背上书包进实验小学喽,一年级三班",
        ),
    ],
)
def test_a_clause_counts_by_itself_only_where_few_memories_lie_near(
    tmp_path, others, first, then
) -> None:
    marked = "mistake|perhaps no longer|或已不再"
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        for user, told in (("few", []), ("many", others)):
            for text in (*told, first, then):
                memory.add(text, user_id=user, timestamp="2024-05-07T10:00:00+00:00")
        few, many = (" ".join(texts(memory, user)) for user in ("few", "many"))
    assert re.search(marked, few)
    assert not re.search(marked, many)
