"""Cutting texts into sentences."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.memory import RawTurn
from memograd.memory.reader.parts import (
    clauses_of,
    own_sentences,
    placed_sentences,
    told_apart,
)
from memograd.memory.reader.sentences import goes_on_with_play, split_sentences
from memograd.memory.reader.setting import Setting
from memograd.memory.reader.wording import say, without_calls


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("I moved. I like it!", ["I moved.", "I like it!"]),
        ("我搬家了。新家很大！你呢？", ["我搬家了。", "新家很大！", "你呢？"]),
        ("Dr. Lee met Mr. Poe at 5 p.m. We left.", ["Dr. Lee met Mr. Poe at 5 p.m.", "We left."]),
        ("It costs 4.50. Mail a@b.org now", ["It costs 4.50.", "Mail a@b.org now"]),
        ("one\ntwo", ["one", "two"]),
        ('He said "no!" I left', ['He said "no!"', "I left"]),
        ("Marzipan!88 is it. 好!我来", ["Marzipan!88 is it.", "好!", "我来"]),
        ("Rev. Boot, please.", ["Rev. Boot, please."]),
        ("Great!!🌟 I won", ["Great!!🌟", "I won"]),
        ("他的邮箱是a.b@c.com。", ["他的邮箱是a.b@c.com。"]),
        ("内容是交流合作。。", ["内容是交流合作。。"]),
        ("  ", []),
        ("...", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@given(st.text(alphabet='aB1.。!？ \n，"e', max_size=80))
def test_no_word_is_lost(text: str) -> None:
    assert re.findall(r"\w", "".join(split_sentences(text))) == re.findall(r"\w", text)


def test_a_long_text_without_an_end_is_cut_in_time() -> None:
    assert len(split_sentences(" " * 100_000 + "a" * 100_000)) == 1


def test_a_list_behind_a_colon_is_one_item():
    setting = Setting(RawTurn("t", "user", "", None, 1), ("user",), True, None, "")
    for listed, said in (
        ("My pills:\n- iron\n- zinc", "User's pills: iron; zinc."),
        ("My pills:\n1. iron\n2) zinc", "User's pills: iron; zinc."),
        ("我的药：\n1. 铁剂\n2. 锌片", "用户的药：铁剂、锌片。"),
    ):
        [(_, whole)] = placed_sentences(listed)
        assert whole == listed and say(whole, setting).text == said


def test_names_that_only_call_somebody_are_no_items():
    names = ("Melanie", "Caroline")
    setting = Setting(RawTurn("t", "Melanie", "", None, 1), names, False, None, "")
    assert without_calls("Thanks, Caroline!", setting) == ""
    assert without_calls("Hey Caroline, I got a dog", setting) == "I got a dog"
    assert without_calls("Caroline went home", setting) == "Caroline went home"


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("【翡翠苑业主群】各位邻居好,我是3栋的。 —— 这种消息我回个啥", "—— 这种消息我回个啥"),
        ("各位家长好：本班6日春游，我在园门口等。", ""),
        ("【美团商家】您的店铺本月评分4.6", ""),
        ("【重要】我下周搬家", "【重要】我下周搬家"),
        (
            "Heres what they gave us, what does it say?\n\nI acknowledge that I have read this"
            " policy and that I hold a valid licence.",
            "Heres what they gave us, what does it say?",
        ),
        ("Here's what I ate today:\n\nI had porridge", "Here's what I ate today: I had porridge"),
        ("Tone?\nJO: I moved for you.\nRITA: I never asked.\nJO: I sold my boat.", "Tone?"),
        ("JOB: nurse\nCITY: Oslo\nPETS: a cat", "JOB: nurse CITY: Oslo PETS: a cat"),
        ("面试我吧,就用这份假简历:姓名柳依,会手语", ""),
        ("Interview me. I'm playing a made-up cook, fluent in Icelandic", "Interview me."),
    ],
)
def test_forwarded_notices_and_handed_texts_are_not_the_speakers_own(text: str, own: str) -> None:
    assert " ".join(one for _, _, one in own_sentences(text)) == own


@pytest.mark.parametrize(
    ("sentence", "clauses"),
    [
        ("早 刚下夜班 困死了", ["早", "刚下夜班", "困死了"]),
        ("用 abandon 造句,花了 34,500 块", ["用 abandon 造句", "花了 34,500 块"]),
        ("I teach, and look after Al, who is ill", ["I teach", "and look after Al, who is ill"]),
    ],
)
def test_clauses_and_their_places(sentence: str, clauses: list[str]) -> None:
    found = clauses_of(sentence)
    assert [said for _, said in found] == clauses
    for at, said in (*found, *told_apart(sentence)):
        assert sentence[at : at + len(said)] == said


@given(st.text(alphabet="早班 ,，;aB1w", max_size=40))
def test_clauses_stand_where_they_say(sentence: str) -> None:
    for at, said in (*clauses_of(sentence), *told_apart(sentence)):
        assert sentence[at : at + len(said)] == said


def test_a_part_is_played_until_the_user_leaves_it() -> None:
    began = (("user", "let's do a roleplay, you're a tavern keeper and I'm Sir Grimbald"),)
    assert goes_on_with_play(began, "I have ridden nine days and my horse is lame!")
    assert not goes_on_with_play(began, "enough of that, my dentist is on Friday")
    assert not goes_on_with_play((("user", "I play the tuba"),), "My horse is lame!")
    begun = (("user", "我们来角色扮演，你是客栈老板"), ("assistant", "客官里边请！"))
    assert goes_on_with_play(begun, "我叫独孤求胜，从华山来")
    assert not goes_on_with_play(begun, "不玩了，我明天去看牙")
    assert not goes_on_with_play((("assistant", "Pretend you are a cat."),), "I have a cat")
