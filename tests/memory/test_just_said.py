"""What acts on the message just before, and that no prompt shows again what it took away."""

import pytest

from memograd import Memory
from memograd.memory.manager.past import (
    doubted,
    ended,
    formerly,
    instead,
    left_of,
    mistaken,
    not_present,
    parts_of,
    present,
)
from memograd.memory.manager.substitution import bare_value, corrected
from memograd.memory.reader.dates import resolve_english
from memograd.memory.reader.dates_chinese import resolve_chinese
from memograd.memory.records.notes import is_doubted, is_past

WHEN = "2024-05-07T18:30:00+00:00"


def shown(memory: Memory, query: str) -> str:
    """Everything of the memory that a prompt could hold."""
    items = [one["memory"] for one in memory.get_all(user_id="ann")["results"]]
    turns = [one["text"] for one in memory.search(query, user_id="ann", turns=9)["turns"]]
    return "\n".join([*items, *turns, memory.context(query, user_id="ann").text])


@pytest.mark.parametrize(
    ("said", "gone", "stays"),
    [
        (["My hotel room is 508", "Scratch that, it's 580"], "508", "580"),
        (["My dentist appointment is on Monday", "no wait, Tuesday"], "Monday", "Tuesday"),
        (
            ["My blood type is A negative", "scrap that, just checked the card: O negative"],
            "A neg",
            "O neg",
        ),
        (["my favourite dessert is tiramisu", "no wait, panna cotta"], "tiramisu", "panna cotta"),
        (["我生日是5月1号", "说错了,是6月1号"], "5月1号", "6月1号"),
        (["我最爱吃芒果", "不对不对,是榴莲"], "芒果", "榴莲"),
        (["I live in Kiel", "I am a nurse", "Forget that."], "nurse", "Kiel"),
        (["我住在青岛", "我在看心理医生", "忘掉我刚才说的吧"], "心理医生", "青岛"),
    ],
)
def test_what_was_corrected_or_taken_back_is_in_no_prompt(tmp_path, said, gone, stays):
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        for text in said:
            memory.add(text, user_id="ann", timestamp=WHEN)
        known = shown(memory, "what is it?")
    assert gone not in known and stays in known


def test_what_the_application_updates_is_shown_as_it_was_said_no_more(tmp_path):
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        memory.add("My locker at the pool is 4711.", user_id="ann", timestamp=WHEN)
        [item] = memory.get_all(user_id="ann")["results"]
        memory.update(item["id"], "User has a locker.")
        assert "4711" not in shown(memory, "locker")


def test_a_replaced_value_is_the_items_past():
    day = resolve_english("on 7 May 2024", None).day
    new = instead("User lives in Montreal.", "User lives in Ottawa.", day)
    assert new == "User lives in Montreal (formerly: User lives in Ottawa, until 7 May 2024)."
    assert present(new) == "User lives in Montreal." and not is_past(new)
    newer = instead("User lives in Rome.", new, day)
    assert "Montreal, until 7 May 2024; User lives in Ottawa" in formerly(newer)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("User lives at 502.", "User lives at 205."), ("用户住502。", "用户住205。")],
)
def test_what_was_wrong_is_no_past_and_can_be_forgotten(wrong, right):
    held = mistaken(right, wrong)
    assert present(held) == right and "502" in held
    assert not formerly(held) and "502" in not_present(held)
    day = resolve_english("on 7 May 2024", None).day
    newer = instead("User lives at 9.", held, day)
    assert "205" in formerly(newer) and "502" not in newer


def test_a_number_is_not_cut_at_its_comma():
    assert [part for part, _ in parts_of("User earns 34,500, rents in Kendal.")] == [
        "User earns 34,500",
        "rents in Kendal",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "User has a car.",
        "用户开特斯拉。",
        "Is it so?",
        "User is on crutches, so any dinner has to be quick.",
        "User sees a guy called Devon; he's sweet but never plans anything.",
    ],
)
def test_a_note_on_the_past_comes_off_again(text):
    day = resolve_english("on 7 May 2024", None).day
    for noted in (ended(text, day), doubted(text, day), instead(text, "User rows.", day)):
        assert noted != text and present(noted) == text
    for noted in (ended(text, None), doubted(text, None)):
        assert noted != text and present(noted) == text
    assert is_past(ended(text, day)) and not is_doubted(ended(text, day))
    assert is_doubted(doubted(text, day)) and not is_past(doubted(text, day))


def test_a_note_stands_behind_what_it_speaks_of():
    day = resolve_english("on 7 May 2024", None).day
    text = "User is on crutches, so any dinner has to be quick."
    over = "User is on crutches (until 7 May 2024), so any dinner has to be quick."
    assert ended(text, day) == over
    text = "User's mum lives in Dayton and User drives up on Sundays."
    assert doubted(text, day, "User's mum lives in Dayton") == (
        "User's mum lives in Dayton (perhaps no longer, since 7 May 2024) and User drives up on"
        " Sundays."
    )
    assert present(doubted(text, day, "User's mum lives in Dayton")) == text


def test_the_day_stands_behind_what_was_replaced():
    day = resolve_english("on 7 May 2024", None).day
    old = "User works in Leeds, so any lunch has to be quick."
    assert formerly(instead("User works in York.", old, day)) == (
        "User works in Leeds, until 7 May 2024, so any lunch has to be quick"
    )
    old = "User's phone is with Vodafone, 22 a month, and the shed is User's."
    assert formerly(instead("User is with EE.", old, day, "User's phone is with Vodafone")) == (
        "User's phone is with Vodafone, until 7 May 2024, 22 a month, and the shed is User's"
    )


def test_what_is_said_again_is_no_past():
    day = resolve_english("on 7 May 2024", None).day
    old, new = "User is 51, rents in Leeds.", "User is 51, rents in York."
    assert formerly(instead(new, old, day)) == "User rents in Leeds, until 7 May 2024"


@pytest.mark.parametrize(
    ("item", "left"),
    [
        ("User's son stutters, he is called Leo.", "User's son is called Leo."),
        ("用户的儿子有点口吃,他英文名叫Leo。", "用户的儿子英文名叫Leo。"),
    ],
)
def test_what_is_left_of_an_item_says_whose_it_is(item, left):
    assert left_of(item, parts_of(item), [1]) == left


def test_bare_values_and_those_of_one_type():
    assert bare_value("scratch that, Katowice, I always mix them up") == "Katowice"
    assert bare_value("说大了,一两") == "一两"
    assert bare_value("cello. cello!!! im in so much trouble") == "cello"
    assert bare_value("不对不对,是榴莲") == "榴莲"
    assert bare_value("that's dad. mum is the 16th") is None
    assert corrected("User's gate is B22.", "it's B27, misread the board") == "User's gate is B27."
    assert corrected("User is having lamb.", "my bad, not lamb, duck") == "User is having duck."


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("the funeral is a week on Thursday", "16 May 2024"),
        ("exam in a fortnight", "21 May 2024"),
        ("sober since Sunday before last", "28 April 2024"),
        ("the visa ends at the end of next month", "end of June 2024"),
        ("it's two weeks to the day since I quit", "two weeks (counted from 23 April 2024) since"),
        ("it's two years since I quit", "(counted from 2022) since"),
    ],
)
def test_more_relative_dates(text, date):
    day = resolve_english("7 May 2024", None).day
    assert date in resolve_english(text, day).text


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("下下周三答辩", "2024年5月22日"),
        ("再过十天毕业", "2024年5月17日"),
        ("月底搬家", "2024年5月底"),
        ("這禮拜六考多益", "2024年5月11日"),
        ("後天歸寧", "2024年5月9日"),
        ("聽日覆診", "2024年5月8日"),
        ("大後日考試", "2024年5月10日"),
        ("琴日返咗工", "2024年5月6日"),
    ],
)
def test_more_relative_dates_in_chinese(text, date):
    day = resolve_english("7 May 2024", None).day
    assert date in resolve_chinese(text, day).text


def test_words_that_only_look_like_a_day_stay():
    day = resolve_english("7 May 2024", None).day
    for text in ("每晚听日语广播", "钢琴日程排满了"):
        assert resolve_chinese(text, day).text == text
