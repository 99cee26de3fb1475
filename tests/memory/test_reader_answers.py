"""Short answers: a plain yes or no is told in full, and only where it is clear what it says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.test_write_path import Answering

from memograd.memory.reader import TrainedReader
from memograd.memory.reader.answers import (
    begins_bare,
    only_offers,
    told_in_full,
    without_guess,
)
from memograd.memory.records.turns import RawTurn

NOON = datetime(2024, 5, 7, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "answer", "told"),
    [
        ("Do you eat meat?", "nope", "I do not eat meat"),
        ("Do you eat meat?", "yes", "I eat meat"),
        ("Do you still smoke?", "no", "I no longer smoke"),
        ("Are you still at Shell?", "nope", "I am no longer at Shell"),
        ("Have you ever been to Spain?", "never", "I have never been to Spain"),
        ("Do you like your job?", "not at all", "I do not like my job"),
        ("Do you have any allergies?", "nope", "I do not have any allergies"),
        ("您是左撇子吗?", "不是啊", "我不是左撇子"),
        ("你还抽烟吗", "不了", "我不抽烟了"),
        ("你结婚了吗?", "没有", "我还没结婚"),
        ("你去过日本吗?", "没", "我没去过日本"),
        ("您有孩子吗?", "没有", "我没有孩子"),
        ("您会开车吗?", "会", "我会开车"),
        ("您是医生吗?", "是的", "我是医生"),
        ("Hi again! Are you still at Shell?", "Still am!", "I am still at Shell"),
        ("So you live in Oslo, right?", "yes", "I live in Oslo"),
        ("Noted. You're allergic to nuts, correct?", "right", "I'm allergic to nuts"),
        ("Your boss is Jo, is that right?", "yep", "my boss is Jo"),
        ("确认一下:你的导师是袁教授,对吧?", "嗯对", "我的导师是袁教授"),
    ],
)
def test_a_plain_answer_is_told_in_full(question: str, answer: str, told: str) -> None:
    assert told_in_full(question, answer) == told


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Do you want me to book it?", "no"),
        ("Do you have any allergies?", "yes"),
        ("Do you prefer tea or coffee?", "no"),
        ("What do you eat?", "no"),
        ("Do you eat meat?", "not since 2010"),
        ("Do you eat meat?", "no, I moved to Leeds"),
        ("Are you ready?", "no"),
        ("Have you tried restarting?", "yes"),
        ("Do you see the error?", "yes"),
        ("你有问题吗?", "没有"),
        ("您需要我帮忙吗?", "不用"),
        ("您喝咖啡还是茶?", "不喝"),
        ("您是左撇子吗?", "不会"),
        ("您叫什么?", "没有"),
        ("You want me to draft it, right?", "yes"),
        ("You have two kids, right?", "no, three"),
        ("您需要发票,对吧?", "是的"),
    ],
)
def test_what_says_more_or_nothing_is_left_as_it_is(question: str, answer: str) -> None:
    assert told_in_full(question, answer) is None


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_question_and_answer_can_be_read(question: str, answer: str) -> None:
    told = told_in_full(question, answer)
    assert told is None or told.strip()


def test_an_offer_is_told_from_a_question_of_how_to_address_somebody() -> None:
    assert only_offers("Should I add a table?")
    assert not only_offers("Should I address you as Dr. Haddad?")
    assert only_offers("要我帮你写吗?")
    assert not only_offers("以后都用表格给您整理,可以吗?")


@pytest.mark.parametrize(
    ("question", "answer", "fact"),
    [
        ("Do you eat meat?", "nope", "User does not eat meat."),
        ("语气要正式吗?", "不用,像朋友就好", "不用,像朋友就好"),
        ("以后都用表格给您整理,可以吗?", "可别 就正常说话", "可别，就正常说话"),
        ("Should I address you as Mr. Haddad or Dr. Haddad?", "the second", "Dr. Haddad."),
        ("你常住泉州还是漳州?我按当地的天气来给建议。", "前一个", "回答：泉州"),
    ],
)
def test_short_answers_are_kept(question: str, answer: str, fact: str) -> None:
    """Whatever the model thinks of them: to it "nope" is worth nothing."""
    model: Any = Answering(worth="nothing")
    asked = RawTurn("a", "assistant", question, NOON, 0)
    [heard] = TrainedReader(model).hear([RawTurn("b", "user", answer, NOON, 0)], [asked])
    assert [one.text for one in heard.facts if fact in one.text]


def test_what_stands_before_a_question_is_no_part_of_the_answer() -> None:
    asked = "Before I plan the barbecue: do you eat pork?"
    assert told_in_full(asked, "nope") == "I do not eat pork"
    assert told_in_full("冒昧问一句，您结婚了吗？", "结了") == "我结婚了"


def test_a_chinese_answer_may_begin_with_a_plain_yes_or_no() -> None:
    assert begins_bare("要不要把字放大一点?", "要的要的,我老花380度")
    assert begins_bare("以后都用表格给您整理,可以吗?", "可别 就正常说话")
    assert begins_bare("您之前有没有做过心脏支架手术?", "做过的,前年")
    assert not begins_bare("您有没有做过手术?", "去过的,前年")
    assert not begins_bare("您住哪里?", "没 我住北京")
    assert not begins_bare("您住北京吗?", "我住上海,不过在北京上班")


@pytest.mark.parametrize(
    ("question", "answer", "left"),
    [
        ("How old are you, around 34?", "nope, 43", ("How old are you?", "43")),
        ("Great. What's your size, 42 perhaps?", "no. 43", ("Great. What's your size?", "43")),
        ("How many do you need?", "nah 12", ("How many do you need?", "12")),
        (
            "Is your visit to Dr. Obi still at 9?",
            "Nope, 11:30. Friday.",
            ("Your visit to Dr. Obi?", "11:30. Friday."),
        ),
    ],
)
def test_a_guess_that_is_denied_goes(question: str, answer: str, left: tuple[str, str]) -> None:
    assert without_guess(question, answer) == left


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many siblings do you have?", "no siblings"),
        ("What allergies do you have, nuts perhaps?", "no nuts, but shellfish"),
        ("Do you smoke, or did you?", "no, never"),
        ("What do you do, and where?", "I teach in Bath"),
    ],
)
def test_an_answer_that_denies_no_guess_stays(question: str, answer: str) -> None:
    assert without_guess(question, answer) == (question, answer)
