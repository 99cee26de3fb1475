"""What only sounds like a request to forget, or not to save, takes nothing away."""

from __future__ import annotations

from pathlib import Path

import pytest

from memograd import Memory

FACTS = {
    "en": ("My rent is 1450 euros a month.", "I live in Leeds with my sister Ann."),
    "zh": ("我每月房租1450", "我和姐姐住在南京"),
}


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "I don't log my calories any more"),
        ("en", "We bring home 4,200 euros between us"),
        ("en", "between us we have 3 cars"),
        ("en", "there's a big age gap between us"),
        ("en", "I never record my runs"),
        ("en", "we never store the bikes in the hall"),
        ("en", "I don't remember the name of that film with the robot."),
        ("en", "I don't save the receipts, should I?"),
        ("en", "I didn't write that down and now I lost the recipe"),
        ("en", "clear the table is what I told the kids"),
        ("en", "Don't forget the milk, I told him"),
        ("en", "I keep forgetting to take my pills"),
        ("en", "How do I stop Chrome from saving my passwords?"),
        ("en", "please don't keep it in the oven too long, says the recipe"),
        ("en", "never store that near the stove"),
        ("en", "but don't write that on the cake"),
        ("zh", "别存手机里"),
        ("zh", "别忘了买牛奶，我跟他说"),
        ("zh", "不要存太多钱，我妈总这么讲"),
        ("zh", "别留长发，老师说的"),
        ("zh", "冰箱里别存隔夜菜"),
        ("zh", "我从来不记账"),
        ("zh", "手机把我照片全删了"),
    ],
)
def test_nothing_goes(tmp_path: Path, language: str, said: str) -> None:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        for fact in FACTS[language]:
            memory.add(fact, user_id="ann")
        before = memory.get_all(user_id="ann")["results"]
        memory.add(said, user_id="ann")
        after = {one["id"] for one in memory.get_all(user_id="ann")["results"]}
    assert {one["id"] for one in before} <= after


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [
        ("en", "I am Ann. I live in York. I like tea.", "drop the last two points"),
        ("en", "I am Ann. I live in York. I like tea.", "Remove the last two sentences please"),
        ("zh", "大家好，我叫小王。我来自南京。我喜欢跑步。", "第二句删掉"),
        ("zh", "大家好，我叫小王。我来自南京。我喜欢跑步。", "头两句抹掉，太啰嗦"),
        ("zh", "好的。", "这份合同第三条删掉，再发我"),
    ],
)
def test_sentences_of_a_text_are_no_memories(
    tmp_path: Path, language: str, text: str, said: str
) -> None:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        for fact in FACTS[language]:
            memory.add(fact, user_id="ann")
        before = {one["id"] for one in memory.get_all(user_id="ann")["results"]}
        talk = [{"role": "assistant", "content": text}, {"role": "user", "content": said}]
        memory.add(talk, user_id="ann")
        after = {one["id"] for one in memory.get_all(user_id="ann")["results"]}
    assert before <= after


@pytest.mark.parametrize(
    ("said", "gone"),
    [
        ("Between us, my boss drinks.", "drinks"),
        ("That my boss drinks stays between us ok", "drinks"),
        ("please don't save this: I was arrested once", "arrested"),
        ("I fell in the bath, but don't note that down", "bath"),
        ("我妈的病别存", "病"),
    ],
)
def test_what_is_asked_not_to_be_saved_is_not(tmp_path: Path, said: str, gone: str) -> None:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        memory.add(said, user_id="ann")
        told = " ".join(one["memory"] for one in memory.get_all(user_id="ann")["results"])
    assert gone not in told
