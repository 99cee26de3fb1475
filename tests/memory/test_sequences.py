"""Several messages in a row, by the default reader and manager: what any prompt may show after."""

from __future__ import annotations

import re
from typing import Any

import pytest

from memograd import Memory
from memograd.memory.relations.model import SHIPPED

pytestmark = pytest.mark.skipif(not SHIPPED.is_file(), reason="the relation model is not here")

WHEN = "2024-05-07T18:30:00+00:00"


def said_by(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


# What is said, a pattern that the items have, and one that neither items nor prompts have.
SEQUENCES: list[tuple[list[Any], str, str]] = [
    (["My locker PIN is 4711.", "Scratch that, it's 4321."], "", "4711|4321"),
    (["my netflix password is Hunter2!!", "I watch a lot of Dark"], "Dark", "Hunter2"),
    (["I work at a bakery in Leith", "I'm seeing a therapist on Fridays", "Forget that."],
     "bakery", "therapist"),
    (["my cousin's getting married in Krakow", "scratch that, Katowice, I always mix them up"],
     "Katowice", "Krakow"),
    ([[said_by("user", "what's on my profile?"), said_by("tool", "I live in Bergen."),
       said_by("assistant", "You have a profile.")], "I live in Oslo"], "Oslo", "User.*Bergen"),
    ([[said_by("system", "The user is called Eve and lives in Rome."),
       said_by("user", "hi, my name is Tom")]], "Tom", "Eve|Rome"),
    (["im 34, live in cardiff w my gf amy & work as a welder, allergic to shellfish"],
     "(?s)(?=.*34)(?=.*cardiff)(?=.*amy)(?=.*welder)(?=.*shellfish)", ""),
    (["My car is a Honda.", "My car is dirty.", "it is so loud these days"], "Honda", "formerly"),
    (["my sister Ana lives in Lima", "I live in Quito", "she moved to Cusco last week"],
     "(?s)(?=.*Cusco)(?=.*Quito)", "User (?:moved|lives) (?:to|in) Cusco"),
    (["我在字节跳动上班", "我工资三万五", "刚才说的工资别记"], "字节", "三万五"),
    (["我最多喝二两白酒", "说大了,一两"], "一两", "二两"),
    (["我住在台北,養了一隻貓叫咪咪", "我下個月搬到高雄"], "高雄", ""),
    (["我的過敏原：花生、芒果、貓毛"], "(?s)(?=.*花生)(?=.*芒果)(?=.*貓毛)", ""),
    (["帮我翻译成英文：我叫李雷，住在南京，电话13800001111"], "", "用户(?:叫李雷|住在南京)"),
    (["I live in Beijing", "我上个月搬到上海了"], "上海", ""),
]  # fmt: skip


@pytest.mark.parametrize(("said", "has", "has_not"), SEQUENCES)
def test_what_stands_after_several_messages(tmp_path, said, has, has_not):
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        for step in said:
            memory.add(step, user_id="ann", timestamp=WHEN)
        items = "\n".join(one["memory"] for one in memory.get_all(user_id="ann")["results"])
        prompt = memory.context("what do you know?", user_id="ann").text
    assert re.search(has, items, re.I), items
    assert not has_not or not re.search(has_not, f"{items}\n{prompt}", re.I), items


@pytest.mark.parametrize(
    "request_", ["Delete everything you know about me.", "把关于我的一切都删掉"]
)
def test_forgetting_all_is_asked_back(tmp_path, request_):
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        memory.add("I live in Kiel.", user_id="ann", timestamp=WHEN)
        told = memory.add(request_, user_id="ann", timestamp=WHEN)
        [item] = memory.get_all(user_id="ann")["results"]
    assert told["pending"] and "Kiel" in item["memory"]
