"""A request to forget that names what was said by its order."""

from __future__ import annotations

from pathlib import Path

import pytest

from memograd import Memory

WHEN = "2024-05-07T18:30:00+00:00"


@pytest.mark.parametrize(
    ("said", "kept", "gone"),
    [
        (
            [
                "I was in the Guard, I hunt deer with a bow, I got a DUI back in 2015 and I see"
                " a shrink at the VA",
                "take out the last two things I said, don't want em written down anywhere",
            ],
            ["Guard", "bow"],
            ["DUI", "shrink"],
        ),
        (
            [
                "I have a dog. I live in Leeds. My salary is 30k.",
                "forget the second thing I said please",
            ],
            ["dog", "30k"],
            ["Leeds"],
        ),
        (
            ["I like tea", "I own a boat", "Forget the first thing I told you"],
            ["boat"],
            ["tea"],
        ),
        (
            [
                "考研二战，去年差8分",
                "我喜欢班里一个姓孟的姑娘",
                "每天六点起来背单词",
                "第二句收回哈，别存",
            ],
            ["考研", "单词"],
            ["孟"],
        ),
        (
            [
                "体重68公斤",
                "用的是章光101洗发水",
                "现在在家带娃，顺手做代购",
                "头两句都撤回，只留后面的",
            ],
            ["代购"],
            ["68", "章光"],
        ),
        (["我是护士。我养了一只猫。", "后半句别记"], ["护士"], ["猫"]),
        (["I like tea", "What names are there for a cat?", "the second one"], ["tea"], []),
    ],
)
def test_what_is_counted_goes_and_nothing_else(
    tmp_path: Path, said: list[str], kept: list[str], gone: list[str]
) -> None:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        for text in said:
            memory.add(text, user_id="ann", timestamp=WHEN)
        items = "\n".join(one["memory"] for one in memory.get_all(user_id="ann")["results"])
    assert all(word in items for word in kept), items
    assert not any(word in items for word in gone), items
