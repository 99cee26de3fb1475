"""Answers that point at a choice: told with what was chosen, and only where that is clear."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.memory.reader.choices import chosen
from memograd.memory.reader.parts import question_before
from memograd.memory.records.turns import RawTurn

NOON = datetime(2024, 5, 7, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "answer", "choice"),
    [
        ("Is your appointment at the Eastside or the Harbour clinic?", "second one", "Harbour"),
        ("Shall I send it on Sunday evening or Monday morning?", "The latter.", "Monday morning"),
        ("How is your Korean: beginner, intermediate or advanced?", "the middle one", "intermed"),
        ("Do you prefer tea or coffee?", "the former", "tea"),
        ("Should I use text, email, or phone call?", "third one please", "phone call"),
        ("When you travel for work, do you fly or take the train?", "the first", "fly"),
        ("Is it the blue one or the red one?", "the last one, it matches my car", "red one"),
        ("Which of them has the allergy, Jonah or Micah?", "the second one", "Micah"),
        ("Should I address you as Mr. Haddad or Dr. Haddad?", "the second", "Dr. Haddad"),
        ("Should I call you Mrs. Okafor or Ms. Okafor?", "first", "Mrs. Okafor"),
        ("Is it St. Mary's or St. Luke's?", "the latter", "St. Luke's"),
        ("Do you go by bus or by train?", "the first one", "by bus"),
        ("We can meet on Zoom or in person. Which do you want?", "the latter", "in person"),
        (
            "Two kinds: (1) a thin one, or (2) a thick one with a lid. Which one do you have?",
            "The second.",
            "a thick one with a lid",
        ),
        (
            "Option 1: 5GB for $9. Option 2: all you can eat for $30. Which one is closest?",
            "the second",
            "all you can eat for $30",
        ),
        ("Is the chemo on Mondays or Thursdays?", "Thursdays, 10 o'clock", "Thursdays"),
        ("Do you take oat milk or soy milk?", "Neither, almond milk please", "almond milk"),
        ("Is it your left knee or your right knee?", "right", "your right knee"),
        ("您的籍贯是福建还是广东？", "都不是，江西赣州", "江西赣州"),
        ("您要挂神经内科还是神经外科？", "内", "神经内科"),
        ("请问您的本科专业是临床医学还是预防医学？", "皆非，药学。", "药学"),
        ("您平时怎么喝?1. 手冲 2. 意式拿铁 3. 速溶", "第二个", "意式拿铁"),
        ("您平时穿M还是L？", "L", "L"),
        ("宝宝是男孩还是女孩？多大了？", "女孩 四个月", "女孩"),
        ("要几寸的?8寸、10寸?", "后面那个", "10寸"),
        ("您用哪家？A. 联通 B. 电信 C. 移动", "C", "移动"),
        ("倾向做菜、烘焙还是调酒？", "最后那个", "调酒"),
        ("您想让我叫您李老师还是李教授?", "第二个", "李教授"),
        ("你想约在上午还是下午？", "后者", "下午"),
        ("您平时喝咖啡还是茶呢？", "第二个吧", "茶"),
        ("你的韩语水平是初级、中级还是高级？", "中间那个", "中级"),
        ("您更想收到短信提醒还是电话提醒?", "后面那个,我不爱看字。", "电话提醒"),
        ("你對花生還是對蝦過敏？", "第一個", "花生"),
        ("Which exam?\n1. First\n2. Advanced\n3. Proficiency", "the second one", "Advanced"),
        ("您想考哪个？\n1. 四级\n2. 六级\n3. 雅思", "第二个", "六级"),
    ],
)
def test_the_choice_is_told_and_the_others_are_not(question: str, answer: str, choice: str) -> None:
    found = chosen(question, answer)
    assert found is not None
    told, said = found
    assert choice in told and choice in said
    assert " or " not in told and "还是" not in told and "還是" not in told


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Are you vegetarian?", "the second"),  # no choices
        ("Tea or coffee?", "the third"),  # no such choice
        ("Tea or coffee?", "the middle one"),
        ("Tea or coffee?", "tea"),  # names it
        ("Tea or coffee?", "second thoughts, water"),
        ("Which day is your second shift?", "the last one"),
        ("你喜欢喝茶吗？", "后者"),
        ("茶还是咖啡？", "第二天喝了茶"),
        ("Do you take the bus or drive?", "neither, I walk"),
        ("Do you take oat milk or soy milk?", "Neither, thanks"),
        ("您喝茶还是咖啡？", "都不，谢谢"),
        ("您喜欢喝茶还是咖啡？", "都不，我喝水"),
    ],
)
def test_where_it_is_not_clear_nothing_is_chosen(question: str, answer: str) -> None:
    assert chosen(question, answer) is None


def test_what_belongs_to_all_choices_is_not_dropped() -> None:
    assert chosen("您是全职跑外卖还是兼职?", "兼职 主业电子厂打螺丝") is None


@given(
    st.text(max_size=60), st.sampled_from(["the latter", "first one, I think", "第二个", "前者"])
)
def test_the_question_told_is_made_of_its_own_words(question: str, answer: str) -> None:
    found = chosen(question, answer)
    if found is not None:
        told = iter(question)
        assert all(character in told for character in found[0])


def test_the_choices_below_a_question_are_read_where_an_answer_points_at_one() -> None:
    asked = RawTurn("D1:1", "assistant", "Sure! Which exam?\n1. First\n2. Advanced", NOON, 0)
    for answer, question in (
        ("the first one", "Which exam?\n1. First\n2. Advanced"),
        ("Advanced, in June", "Which exam?"),
    ):
        assert question_before([asked], RawTurn("D1:2", "user", answer, NOON, 1)) == question


def test_a_letter_chooses_of_a_list_in_one_line() -> None:
    asked = "How shall I talk to you? A) formal B) relaxed, first names C) strictly facts"
    told = "How shall I talk to you? strictly facts"
    assert chosen(asked, "C.") == (told, "strictly facts")
    assert chosen(asked, "C, life's too short") == (told, "strictly facts, life's too short")
    assert chosen(asked, "D") is None
    assert chosen(asked, "a friend of mine is formal") is None


def test_one_of_two_joined_by_and_is_chosen_in_chinese() -> None:
    told, choice = chosen("周三上午和周四下午您哪个方便？", "后一个，周三我要去收货") or ("", "")
    assert told == "周四下午您哪个方便？" and choice.startswith("周四下午")
