"""A value is put in place whole, in the form of what it replaces, of what it counts."""

from __future__ import annotations

from datetime import date

import pytest

from memograd import Memory
from memograd.memory.manager.counted import counted_anew
from memograd.memory.manager.fitted import put, redated
from memograd.memory.manager.substitution import corrected
from memograd.memory.relations.values import _said_once
from memograd.memory.statements.value_types import whole_number

WHEN = "2024-05-07T18:30:00+00:00"


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    """The memory as it ships; each case has a user of its own."""
    folder = tmp_path_factory.mktemp("memory")
    with Memory.open(folder, reader="trained", manager="trained", env_file=None) as opened:
        yield opened


@pytest.mark.parametrize(
    ("said", "right"),
    [
        (["Our barn was built in 1911", "Apologies, the beam says 1919"], "1919"),
        (["I came to Leeds in 2021", "Sorry, my stamp says 2020"], "in 2020"),
        (["I joined the choir in 1984", "Silly me, it was '86."], "in 1986"),
        (["my handle is mosskettle31", "*13, fat thumbs"], "mosskettle13"),
        (["Our jam: 4 jars, from 3 kg of plums", "wait, 5 kg of plums"], "4 jars, from 5"),
        (["我家有3只鹅5条狗", "说错了，是4条狗，鹅没错"], "3只鹅4条狗"),
        (["我们店有5个师傅7个学徒", "说反了，7个师傅5个学徒"], "7个师傅5个学徒"),
        (["I run 3 vans and 8 bikes", "other way round: 8 vans, 3 bikes"], "8 vans and 3"),
        (["我的预算大概三万，想装地暖", "哦不对，最多两万五"], "两万五"),
        (["my blood group is B negative", "checked my card and it's B positive"], "B positive"),
        (["我是江西赣州人，想找家馆子", "输入法的锅，打错了，我是江西九江人"], "是江西九江人"),
    ],
)  # fmt: skip
def test_a_correction_leaves_one_whole_value(memory, said, right):
    for text in said:
        memory.add(text, user_id=right, timestamp=WHEN)
    items = [one["memory"] for one in memory.get_all(user_id=right)["results"]]
    assert len(items) == 1 and right in items[0] and "mistake" not in items[0]


@pytest.mark.parametrize(
    ("value", "once"),
    [
        ("2020", "2020"), ("1212", "1212"), ("四五四五", "四五四五"), ("coco", "coco"),
        ("周日周日", "周日"), ("外贸外贸", "外贸"),
    ],
)  # fmt: skip
def test_a_number_or_a_word_is_not_halved(value: str, once: str) -> None:
    assert _said_once(value) == once


@pytest.mark.parametrize(
    ("text", "part", "whole"),
    [
        ("owe a hundred and fifty now", "fifty", "a hundred and fifty"),
        ("最多两万五呢", "两万", "两万五"),
        ("2万5左右", "5", "2万5"),
        ("it is 1,200 now", "200", "1,200"),
        ("5 people", "5", "5"),
        ("周三四点见", "四", "四"),
    ],
)
def test_a_part_of_a_number_is_taken_for_all_of_it(text: str, part: str, whole: str) -> None:
    start = text.index(part)
    assert text[slice(*whole_number(text, start, start + len(part)))] == whole


@pytest.mark.parametrize(
    ("statement", "message", "right"),
    [
        ("User has two hundred sheep.", "no, a hundred and six", "has a hundred and six sheep."),
        ("It takes two and a half hours.", "no, three and a half", "three and a half hours."),
        ("用户预算3万。", "不对，2万5", "用户预算2万5。"),
        ("用户说：还欠表哥三万。", "多打一个零……三千，不是三万", "三千。"),
        ("User has 15 hens and 5 cows.", "6, not 5", "15 hens and 6 cows."),
        ("用户跑了20千米。", "不对，30千米", "用户跑了30千米。"),
    ],
)  # fmt: skip
def test_numbers_are_found_whole(statement: str, message: str, right: str) -> None:
    assert (corrected(statement, message) or "").endswith(right)


@pytest.mark.parametrize(
    ("text", "old", "new", "right"),
    [
        ("married in 1968.", "1968", "'67", "married in 1967."),
        ("has 1968 hens", "1968", "67", "has 67 hens"),
        ("用户2016年毕业", "2016", "15", "用户2015年毕业"),
        ("flight BA1482 at", "BA1482", "1428", "flight BA1428 at"),
        ("number HG-5581", "5581", "HG-5518", "number HG-5518"),
        ("at St Olave's", "Olave's", "St Bran's", "at St Bran's"),
        ("budget is 3k", "3k", "4", "budget is 4k"),
        ("budget is 3k", "3k", "2500", "budget is 2500"),
        ("Flat 12", "12", "14", "Flat 14"),
    ],
)
def test_a_part_replaces_the_like_part(text: str, old: str, new: str, right: str) -> None:
    start = text.index(old)
    assert put(text, (start, start + len(old)), new) == right


@pytest.mark.parametrize(
    ("statement", "message", "right"),
    [
        ("The hall has 80 seats and 9 tables.", "14 tables, 80 is correct", "80 seats and 14"),
        ("User takes 50 mg of losartan and 20 mg of statin.", "40 mg of statin", "and 40 mg"),
        ("12棵桃树和9棵梨树", "更正，15棵梨树，桃树的数对", "12棵桃树和15棵梨树"),
        ("老大8岁老二5岁", "是6岁", None),
        ("User has 9 hens and 4 cows.", "I have 9 hens", None),
        ("User's son was 9 lb 2, and 3 weeks early.", "7 lb 13", None),
    ],
)  # fmt: skip
def test_what_is_counted_says_which_number(statement: str, message: str, right: str | None) -> None:
    anew = counted_anew(statement, message)
    assert anew is None if right is None else anew is not None and right in anew[0]


@pytest.mark.parametrize(
    ("old", "text", "right"),
    [
        ("on Friday 10 May 2024", "on saturday 10 May 2024", "on Saturday 11 May 2024"),
        ("on Friday 10 May 2024", "on Friday 12 May 2024", "on Sunday 12 May 2024"),
        ("on Friday 3 May 2024", "on Monday 3 May 2024", "on Monday 6 May 2024"),
        ("2024年5月8日（周三）", "2024年5月8日（周四）", "2024年5月9日（周四）"),
        ("on Friday 31 June 2024", "on Monday 31 June 2024", "on Monday 31 June 2024"),
    ],
)
def test_a_day_and_its_date_agree(old: str, text: str, right: str) -> None:
    assert redated(text, old, date(2024, 5, 7)) == right
