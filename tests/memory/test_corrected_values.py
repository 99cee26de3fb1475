"""Which value a correction puts where, and what a remark may not take away."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pytest

from memograd.memory.manager.past import doubted, ended, formerly, instead, present
from memograd.memory.manager.substitution import corrected, put_in_place
from memograd.memory.records.notes import is_past


@pytest.mark.parametrize(
    ("statement", "message", "right"),
    [
        ("用户说：空腹血糖8.6。", "看串行了,6.8,虚惊一场", "用户说：空腹血糖6.8。"),
        ("用户的爷爷1936年生人。", "翻了户口本,1939的", "用户的爷爷1939年生人。"),
        ("用户说：半马号码布B2071。", "C打头的,C2071", "用户说：半马号码布C2071。"),
        ("合同金额为叁拾万元整。", "应为叁拾陆万元整,前函作废。", "合同金额为叁拾陆万元整。"),
        ("用户的生日是6月1号。", "说错了,是3号", "用户的生日是6月3号。"),
        (
            "Our party is on the 11th of October",
            "sorry. the 12th",
            "Our party is on the 12th of October",
        ),
        ("User takes sulfites.", "sulfa drugs, not sulfites, mixed up", "User takes sulfa drugs."),
        ("用户的老婆姓欧。", "复姓,欧阳!挨了一记拧", None),
        (
            "We're due on the 9th of October",
            "sorry, the NINETEENTH. the 9th is the hospital tour",
            "We're due on the 19th of October",
        ),
        ("User coaches the under-9s.", "Lost 11-0 and the ref was somebody's dad.", None),
        ("User lives on the 9th floor.", "lift's out. nine floors.", None),
        ("用户的弟在兰州当兵。", "额 酒泉 兰州是他对象那儿", "用户的弟在酒泉当兵。"),
        ("用户的弟在兰州当兵。", "额 兰州是省会", None),
        (
            "User's brother works in York.",
            "ugh, Leeds. York is where his girlfriend is",
            "User's brother works in Leeds.",
        ),
        ("User's brother works in York.", "Well. York is the prettiest place", None),
        ("User's number is 555-1234.", "sorry 555-4321", "User's number is 555-4321."),
        (
            "User is allergic to cashews.",
            "I wrote cashews, I meant pistachios. cashews are fine",
            "User is allergic to pistachios.",
        ),
        (
            "User booked the Elm Room.",
            "yes but I said Elm, it's the Ash Room. one tree to another",
            "User booked the Ash Room.",
        ),
        (
            "User has a shih tzu called Bo.",
            "Did I say shih tzu? He's a lhasa apso.",
            "User has a lhasa apso called Bo.",
        ),
        (
            "User said: new staff start: Abby monday, Ike wednesday.",
            "typo!! Ike is thursday, abby still mon",
            "User said: new staff start: Abby monday, Ike thursday.",
        ),
    ],
)
def test_only_the_value_changes(statement: str, message: str, right: str | None) -> None:
    assert corrected(statement, message) == right


def test_a_place_takes_no_date_s_place() -> None:
    put = put_in_place(
        "User flies from Stansted on the 9th of July.",
        "Luton I mean! 9th is right",
        lambda _, old: [float("July" in one) for one in old],
    )
    assert put is None or "9th of July" in put


def test_a_value_with_its_sign_is_replaced_whole() -> None:
    put = put_in_place(
        "User is blood type B+.",
        "no wait B negative",
        lambda _, old: [float(o == "B+") for o in old],
    )
    assert put == "User is blood type B negative."


def test_what_is_called_by_its_maker_keeps_its_own_name() -> None:
    said = "sorry just gone and looked, its a Worcester"
    # A boiler is more like a Worcester than a Vaillant is: the thing itself is no place for it.
    alike = {"boiler's": 0.9, "Vaillant": 0.8}
    put = put_in_place(
        "User's boiler's a Vaillant.", said, lambda _, old: [alike.get(one, 0.0) for one in old]
    )
    assert put == "User's boiler's a Worcester."
    assert (
        put_in_place(
            "用户的狗叫阿福。",
            "更正一下,阿芙",
            lambda _, old: [float(one == "阿福") for one in old],
        )
        == "用户的狗叫阿芙。"
    )


def test_a_bare_value_never_cuts_a_number() -> None:
    seen: list[str] = []

    def alike(value: str, places: Sequence[str]) -> list[float]:
        seen.extend(places)
        return [float(any(map(str.isdigit, place))) for place in places]

    put_in_place("用户说：房号8601。", "看串行", alike)
    assert seen
    assert not any(map(str.isdigit, "".join(seen)))


@pytest.mark.parametrize(
    "text",
    [
        "User said: at HOME (formerly: User's birthday is the 9th of November, until 7 May 2024).",
        "用户住在广州（此前：用户住在北京，至2024年5月7日）。",
    ],
)
def test_a_doubt_does_not_take_the_past_away(text: str) -> None:
    assert formerly(doubted(text, date(2024, 5, 8))) == formerly(text)


@pytest.mark.parametrize(
    ("first", "second"),
    [("User works at BP.", "User works at Shell."), ("用户住在北京。", "用户住在广州。")],
)
def test_what_ends_keeps_the_past_that_it_told_of(first: str, second: str) -> None:
    held = instead(second, first, date(2024, 5, 3))
    over = ended(held, date(2024, 5, 7))
    assert formerly(over) == formerly(held)
    assert first.rstrip(".。") in formerly(over)
    assert is_past(over) and not is_past(held)
    assert present(over) == second
    assert doubted(over, date(2024, 5, 8)) == over


@pytest.mark.parametrize(
    ("old", "message"),
    [
        ("User said: the wedding is at Thornbury Manor.", "fiancée says Thornbridge"),
        ("User said: baby's due, its a boy.", "midwife just rang, its a girl"),
        ("User's teacher is Mrs Lomax.", "Idris informs me it is Mr Petrakis"),
        ("用户报了个驾校，科目二挂了一次。", "后面那个"),
        ("用户的车是红的那辆。", "第二种"),
    ],
)
def test_who_said_it_and_what_points_at_a_value_are_no_values(old: str, message: str) -> None:
    assert put_in_place(old, message, lambda value, places: [1.0] * len(places)) is None


def test_what_a_correction_begins_with_is_no_other_spelling() -> None:
    told = "Scratch that, red watch. Blue is my brother-in-law's lot."
    found = corrected("User is at Bridlington, blue watch.", told)
    assert found is None or "Scratch" not in found
