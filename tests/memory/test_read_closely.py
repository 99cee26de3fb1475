"""Small things that a close reading of what a memory had decided showed to be wrong."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from memograd.memory import Memory
from memograd.memory.manager.cues import leaves_alone
from memograd.memory.manager.past import left_of, parts_of
from memograd.memory.reader.dates_chinese import resolve_chinese
from memograd.memory.reader.fact import Fact, Heard
from memograd.memory.reader.parts import own_sentences
from memograd.memory.reader.person_chinese import resolve_person
from memograd.memory.reader.sentences import OwnWords, foreign
from memograd.memory.records.turns import RawTurn


def kept(folder: Path, *messages: str) -> list[str]:
    """What the default memory knows after these messages, told some minutes apart."""
    with Memory.open(
        folder, reader="trained", manager="trained", embedder="e5", env_file=None
    ) as memory:
        for minute, text in enumerate(messages):
            memory.add(text, user_id="ann", timestamp=f"2024-05-07T18:{minute:02}:00+00:00")
        return [item["memory"] for item in memory.get_all(user_id="ann")["results"]]


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("小时候在格尔木住过两年", "小时候在格尔木住过两年"),
        ("我在深圳干过三年销售", "我在深圳干过三年销售"),
        ("再过两年我就退休了", "2026年我就退休了"),
        ("过两年想回老家盖房", "2026年想回老家盖房"),
        ("再熬十天我就出月子了", "2024年5月17日我就出月子了"),
    ],
)
def test_years_that_are_over_are_no_date(text: str, resolved: str) -> None:
    assert resolve_chinese(text, date(2024, 5, 7)).text == resolved


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("我媽信佛", "用户的媽信佛"),
        ("我們老家在花蓮", "用户的老家在花蓮"),
        ("我們樂團叫冷氣房", "用户等人樂團叫冷氣房"),
    ],
)
def test_traditional_characters_say_whose_it_is(text: str, told: str) -> None:
    assert resolve_person(text, "用户", None) == told


def test_a_name_is_not_cut_at_its_and() -> None:
    assert len(parts_of("User plays for the Dog & Duck.")) == 1
    assert len(parts_of("User has a cat & a dog.")) == 2


def test_what_is_left_of_a_list_begins_with_its_subject() -> None:
    text = "用户喜欢一个灯光师,还有用户青霉素过敏。"
    assert left_of(text, parts_of(text), [1]) == "用户青霉素过敏。"


@pytest.mark.parametrize(
    ("said", "item", "leaves"),
    [
        ("等以后发财了换台新电脑", "用户的电脑是联想。", True),
        ("if we ever win we'd buy a boat", "User has a canoe.", True),
        ("朝北就朝北吧", "用户租的这屋朝北。", True),
        ("换了台新电脑", "用户的电脑是联想。", False),
        ("bought a boat", "User has a canoe.", False),
        ("阿伟跳槽去了字节，开到四万八", "用户月薪两万五。", True),
        ("老板给我涨到两万", "用户月薪一万五。", False),
        ("房东把房租涨到3000", "用户的房租是2500。", False),
    ],
)
def test_what_may_be_one_day_leaves_an_item_alone(said: str, item: str, leaves: bool) -> None:
    turn = RawTurn("D1:1", "user", said, None, 1)
    assert leaves_alone(Heard(turn, own=said, whole=said), item) is leaves


def test_an_answer_leaves_the_answer_to_another_question_alone() -> None:
    turn = RawTurn("D1:1", "user", "six", None, 1)
    told = 'User, asked "And closing?", answered: six.'
    heard = Heard(turn, facts=(Fact(told, ("D1:1",)),), own="six", whole="User said: six.")
    other = 'User, asked "Do you open at nine?", answered: half past.'
    assert leaves_alone(heard, other)
    assert not leaves_alone(heard, 'User, asked "And closing?", answered: five.')


@pytest.mark.parametrize(
    "said",
    [
        "let's play pirates. I'm Captain Rustbeard and you're the cook. What's for dinner?",
        "Write a short bio for a fictional lighthouse keeper, Ambrose, 61, who hates gulls",
        "*slams fist on bar* Innkeep! Ale for me, I have ridden nine days from Karsk!",
        "翻成中文: I'm a dentist from Leeds, allergic to peanuts, and I've adopted a greyhound.",
        "给个虚构的老船长写段自述呗,丢了条胳膊,恨鲨鱼",
    ],
)
def test_a_part_in_a_play_and_a_text_to_translate_are_nobodys(said: str) -> None:
    assert not OwnWords(foreign(said)).has(0, len(said))


def test_a_plan_to_play_is_ones_own() -> None:
    said = "let's play chess again tonight, I'm getting good at it"
    assert OwnWords(foreign(said)).has(0, len(said))


@pytest.mark.parametrize(
    ("said", "item"),
    [
        ("Write me a poem about gulls. By the way I've moved to Whitby.", "moved to Whitby"),
        ("帮我写首诗吧。对了,我搬到青岛了。", "搬到青岛"),
    ],
)
def test_what_is_told_by_the_way_behind_a_task_is_kept(
    tmp_path: Path, said: str, item: str
) -> None:
    assert any(item in text for text in kept(tmp_path, said))


@pytest.mark.parametrize(
    ("said", "item"),
    [
        (
            [
                "my goddaughter Tilde plays the oboe",
                "she's just read this over my shoulder: it's a CLARINET. I'm in the doghouse",
            ],
            "User's goddaughter Tilde plays the clarinet.",
        ),
        (["车停负二层C区118", "不对不对,D区,118没错"], "用户说：车停负二层D区118。"),
        (
            ["packed lunch ideas for my boy Lubo? he's coeliac and won't go near cucumber"],
            "About User's boy Lubo: he's coeliac and won't go near cucumber.",
        ),
    ],
)
def test_values_and_people_stand_where_they_belong(
    tmp_path: Path, said: list[str], item: str
) -> None:
    assert item in kept(tmp_path, *said)


def test_what_only_has_the_plural_is_no_other_value(tmp_path: Path) -> None:
    found = kept(
        tmp_path,
        "I'm on the night train to Vienna on the 3rd of May, coach 262",
        "night trains, honestly. who needs sleep when you can have a stranger's feet",
    )
    assert not any("night trains to Vienna" in text for text in found)


def test_what_may_stay_stays_though_it_begins_with_a_pronoun(tmp_path: Path) -> None:
    found = kept(
        tmp_path,
        "堂弟借网贷跑路了,他那间面馆眼下我看着",
        "他欠债那截收回去,面馆的可以留",
    )
    assert any("面馆" in text for text in found) and not any("网贷" in text for text in found)


def test_who_is_polite_to_a_machine_speaks_for_themselves() -> None:
    said = "Dear computer, would you make me a crossword? I am 83 and blind in one eye."
    assert len(own_sentences(said)) == 2
    assert own_sentences("Dear Mrs Holt, I am 83 and blind in one eye. Yours, Ann") == []
