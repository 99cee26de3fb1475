"""What a part of a memory is, in the words in which people ask to forget it."""

from __future__ import annotations

import pytest

from memograd.memory.manager.kinds import named_by
from memograd.memory.manager.past import words_of


@pytest.mark.parametrize(
    ("part", "asked"),
    [
        ("User is 212 lbs", "my weight"),
        ("User is 5'9", "my height"),
        ("User makes 31k a year", "the salary"),
        ("User teaches year 4", "my job"),
        ("User's mum's got parkinsons, diagnosed in May", "her illness"),
        ("User owes the bank 18 thousand", "our debts"),
        ("用户说：月薪三千八", "工资"),
        ("用户身高165cm", "身高"),
        ("用户在华为上班", "单位"),
        ("住春熙路的亚朵", "酒店那部分"),
        ("用户還欠八千塊", "欠债"),
    ],
)
def test_a_part_has_the_words_for_its_kind(part: str, asked: str) -> None:
    assert named_by(part) & words_of(asked)


@pytest.mark.parametrize("part", ["User likes jazz", "User's dog is Rex", "用户喜欢爵士乐"])
def test_other_parts_have_their_own_words_alone(part: str) -> None:
    assert named_by(part) == words_of(part)
