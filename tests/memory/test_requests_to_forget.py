"""What a request to forget takes away where several things were told: what it means, nothing else.

The default memory with the weights that ship; the sentences are none that they learnt from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.memory.test_write_path import Answering, opened
from tests.memory.test_write_path import texts as written

from memograd.memory import Memory, MemoryItem, RawTurn, Scope
from memograd.memory.manager.past import goes_on, with_subject
from memograd.memory.manager.requests import (
    CLAUSES,
    REQUEST_EVIDENCE,
    clauses_of,
    parts_of_items,
    request_evidence,
)
from memograd.memory.reader.fact import Heard
from memograd.memory.reader.trained import TrainedReader
from memograd.memory.relations import load_relation_model

NOON = datetime(2024, 5, 7, 12, tzinfo=UTC)

# What is told, what is asked, what is gone and what stays (of the items, in small letters).
ASKED = [
    (
        "I'm 58 and I drive a tram in Ghent. I have gout.",
        "Forget my illness please.",
        ["gout"],
        ["tram"],
    ),
    (
        "My salary is 41k. I keep three alpacas.",
        "wipe what I earn, the alpacas can stay",
        ["41k"],
        ["alpacas"],
    ),
    (
        "I'm Catholic, and I teach welding.",
        "Please leave my religion out of it.",
        ["catholic"],
        ["welding"],
    ),
    (
        "My brother owes the bank nine grand, they rang me about it. My bakery opens at six.",
        "Delete the business about my brother, the bakery is fine.",
        ["nine grand", "rang"],
        ["bakery"],
    ),
    (
        "I go to Weight Watchers in Hull, Tuesdays, with our Sue, and I take statins.",
        "Can you wipe Weight Watchers off? Leave the tablets.",
        ["weight watchers", "sue"],
        ["statins"],
    ),
    (
        "My ex is called Dermot and he lives in Sligo with a potter. I have a lurcher.",
        "I don't want a single word about Dermot in here. Not his name, nothing.",
        ["dermot", "sligo", "potter"],
        ["lurcher"],
    ),
    (
        "I am earning 22 lakhs per annum at Wipro, Pune.",
        "Kindly remove my salary figure. Company name is ok.",
        ["22", "lakhs"],
        ["wipro"],
    ),
    (
        "俺闺女没考上大学，去读的夜校，学护理。俺自个儿养蜂。",
        "刚说俺闺女那些，别给俺留底",
        ["大学", "夜校", "护理"],
        ["养蜂"],
    ),
    (
        "我正在减重，从一百七十斤开始的。我爱下象棋。",
        "减重的事删掉，象棋可以留着",
        ["减重", "一百七十"],
        ["象棋"],
    ),
    (
        "My wife's expecting, ten weeks. I play the tuba.",
        "nobody may know about the baby yet so delete that",
        ["expecting", "ten weeks"],
        ["tuba"],
    ),
    ("我在渔政上班，我有痛风。", "把我的病删掉吧。", ["痛风"], ["渔政"]),
    ("我月薪七千二。我养了三只羊驼。", "工资那句别记了，羊驼可以记。", ["七千二"], ["羊驼"]),
    (
        "我表哥欠了网贷，催收的电话打到我这里来了。我开裁缝铺，在东街。",
        "表哥的事从你那儿拿走，裁缝铺没关系。",
        ["网贷", "催收"],
        ["裁缝铺"],
    ),
]

# What the words around a request said against the model, which was sure.
SURE = [
    (
        ["I make 71k a year at the mill. I keep two goats."],
        "hm. forget the number i gave u",
        ["71k"],
        ["goats"],
    ),
    (
        ["我在公园下棋。", "确诊过抑郁,舍曲林吃了大半年"],
        "这个别给我存着,谢谢",
        ["抑郁"],
        ["下棋"],
    ),
    (
        ["女儿两口子在闹离婚呢", "我在公园下棋。"],
        "女儿女婿的家务，你给关在门外边吧",
        ["离婚"],
        ["下棋"],
    ),
]
# What sounds like a request and asks nothing of the memory.
HARMLESS = [
    ("I have a job at Tesco.", "remove the second bullet, the one on mould"),
    ("I have a job at Tesco.", "forget it, let's order pizza"),
    ("I have a job at Tesco.", "delete slide 4 and forget the intro"),
    ("I have a job at Tesco.", "erase the whiteboard"),
    ("I have a job at Tesco.", "take out the trash"),
]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder = tmp_path_factory.mktemp("memory")
    with Memory.open(folder, reader="trained", manager="trained", env_file=None) as memory:
        yield memory


def texts(memory: Memory, user: str) -> str:
    found = memory.get_all(user_id=user)["results"]
    return "\n".join(item["memory"] for item in found).lower()


@pytest.mark.parametrize("number", range(len(ASKED)))
def test_what_is_meant_goes_and_nothing_else(memory: Memory, number: int) -> None:
    told, request, gone, stays = ASKED[number]
    user = f"u{number}"
    memory.add(told, user_id=user)
    before = texts(memory, user)
    assert all(word in before for word in (*gone, *stays))
    memory.add(request, user_id=user)
    after = texts(memory, user)
    assert not [word for word in gone if word in after]
    assert all(word in after for word in stays)


@pytest.mark.parametrize(("told", "request_", "gone", "stays"), SURE, ids=[c[1] for c in SURE])
def test_words_do_not_undo_what_the_model_is_sure_of(
    memory: Memory, told: list[str], request_: str, gone: list[str], stays: list[str]
) -> None:
    for message in told:
        memory.add(message, user_id=request_)
    memory.add(request_, user_id=request_)
    after = texts(memory, request_)
    assert not [word for word in gone if word in after]
    assert all(word in after for word in stays)
    assert request_.lower()[:12] not in after  # it is no fact itself


@pytest.mark.parametrize(("told", "said"), HARMLESS, ids=[c[1] for c in HARMLESS])
def test_words_of_forgetting_that_the_model_sees_no_wish_in_take_nothing(
    memory: Memory, told: str, said: str
) -> None:
    memory.add(told, user_id=said)
    before = texts(memory, said)
    memory.add(said, user_id=said)
    assert before and before in texts(memory, said)


def test_what_a_fragment_says_is_meant_only_where_its_item_is(memory: Memory) -> None:
    """Of an item that is not meant a fragment by itself often looks meant."""
    memory.add("种了十八亩大蒜在金乡，行情不好。我有白癜风，从来不穿短袖。", user_id="fragment")
    memory.add("身上花的那个毛病不提了，你也甭装心里", user_id="fragment")
    after = texts(memory, "fragment")
    assert "行情" in after and "大蒜" in after and "白癜风" not in after


def test_an_old_fact_is_found_among_many(memory: Memory) -> None:
    """Among more items than the eight that other messages are compared with."""
    memory.add("I have a conviction for shoplifting.", user_id="many")
    for one in (
        "I keep three alpacas.",
        "My car is a red Panda.",
        "I sing in a choir on Mondays.",
        "My sister Odile lives in Namur.",
        "I am allergic to walnuts.",
        "I bake rye bread every weekend.",
        "We are moving to Arlon in May.",
        "My office is on the fourth floor.",
        "I prefer window seats.",
        "My dentist is Dr Quist.",
    ):
        memory.add(one, user_id="many")
    memory.add("What is a good soup for a cold day?", user_id="many")
    memory.add("Delete what I told you about my criminal record.", user_id="many")
    after = texts(memory, "many")
    assert "shoplifting" not in after and len(after.splitlines()) == 10


def test_the_past_of_an_item_is_forgotten_alone(memory: Memory) -> None:
    memory.add("I live in Ottawa.", user_id="past")
    memory.add("I live in Montreal now, I moved last week.", user_id="past")
    assert "ottawa" in texts(memory, "past") and "montreal" in texts(memory, "past")
    memory.add("Please forget that I ever lived in Ottawa.", user_id="past")
    assert "ottawa" not in texts(memory, "past") and "montreal" in texts(memory, "past")


def test_people_who_cheer_each_other_ask_for_nothing() -> None:
    reader = TrainedReader(load_relation_model())
    turns = [
        RawTurn("1", "Mel", "I run a charity race on Sunday.", None, 1),
        RawTurn("2", "Jon", "Believe in yourself and keep going!", None, 1),
        RawTurn("3", "Mel", "Thanks! Never mind the rain.", None, 1),
    ]
    assert not [heard for heard in reader.hear(turns, []) if heard.forget]


@pytest.mark.parametrize(
    ("part", "joint", "goes"),
    [
        ("eight weeks", ", ", True),
        ("but nobody knows", ", ", True),
        ("their boss has no idea", " and ", True),
        ("I teach welding", ", and ", False),
        ("works nights", ", ", False),
        ("只是没人知道", ",", True),
        ("学古筝五年", ",", False),
    ],
)
def test_what_goes_on_about_the_part_before_it(part: str, joint: str, goes: bool) -> None:
    assert goes_on(part, joint) is goes


def test_a_chinese_part_is_read_with_its_subject() -> None:
    assert with_subject("用户住在甘南，养了一只狗。", "养了一只狗") == "用户养了一只狗"
    assert with_subject("用户说：住在甘南，养狗。", "养狗") == "养狗"
    assert with_subject("User is 51 and rents in Leeds.", "rents in Leeds") == "rents in Leeds"


class HalfSeen(Answering):
    """Sees a wish to forget that is too faint by itself."""

    wish = 0.2

    def worth(self, message: str, before: Any, segments: Sequence[str], role: str = "user") -> Any:
        rows = super().worth(message, before, segments, role)
        if message.startswith("hm"):
            rows[:] = 0.1, 0.9 - self.wish, self.wish
        return rows


@pytest.mark.parametrize(
    ("wish", "relation", "gone"),
    [(0.2, "retract", True), (0.1, "retract", False), (0.2, "comment", False)],
)
def test_a_half_seen_wish_counts_where_something_is_taken_back(
    tmp_path: Path, trigrams: Callable[[], Any], wish: float, relation: str, gone: bool
) -> None:
    model = HalfSeen()
    model.wish = wish
    with opened(tmp_path, trigrams(), model) as memory:
        memory.add("my salary is 48k", user_id="u")
        model.relation = relation
        memory.add("hm, that number was for you alone", user_id="u")
        assert (not any("48k" in text for text in written(memory))) is gone


class ReadTwice(HalfSeen):
    """Its second reading says how surely something is taken back."""

    reads_twice = True
    odds = 0.0

    def closes(self, message: str, before: Any, items: Sequence[str], relations: Any) -> Any:
        assert relations == ("retract",)
        return np.full(len(items), self.odds, np.float32)


@pytest.mark.parametrize(("odds", "gone"), [(0.5, True), (-1.0, False)])
def test_where_it_is_read_twice_the_second_reading_hears_the_request(
    tmp_path: Path, trigrams: Callable[[], Any], odds: float, gone: bool
) -> None:
    model = ReadTwice()
    model.odds = odds
    with opened(tmp_path, trigrams(), model) as memory:
        memory.add("my salary is 48k", user_id="u")
        model.relation = "retract"
        memory.add("hm, that number was for you alone", user_id="u")
        assert (not any("48k" in text for text in written(memory))) is gone


@pytest.mark.parametrize(
    ("wish", "said", "looked_at"),
    [
        (0.05, "hm, don't keep that number", True),
        (0.05, "hm, that number was for you alone", False),
        (0.02, "hm, don't keep that number", False),
    ],
)
def test_beside_a_word_of_asking_a_fainter_wish_is_looked_at(
    wish: float, said: str, looked_at: bool
) -> None:
    model: Any = HalfSeen()
    model.wish = wish
    [heard] = TrainedReader(model).hear([RawTurn("1", "user", said, NOON, 0)], [])
    assert bool(heard.perhaps) is looked_at and not heard.forget


def test_the_order_of_the_items_decides_nothing() -> None:
    """What is known of a part is the same wherever its item stands."""
    model = load_relation_model()
    items = [
        MemoryItem(str(n), text, Scope("u"), NOON, NOON)
        for n, text in enumerate(
            ["User owes a bank nine grand, and User is a nurse.", "User has goats.", "User is 58."]
        )
    ]
    turn = RawTurn("1", "user", "wipe what I owe, the goats can stay", None, 1)
    heard = Heard(turn, own=turn.text, forget=True)

    def known(items: Sequence[MemoryItem]) -> dict[str, Any]:
        parts = parts_of_items(items)
        rows = request_evidence(model, heard, items, parts, frozenset("0"))
        return {part.text: row for part, row in zip(parts, rows, strict=True)}

    one, other = known(items), known(items[::-1])
    assert one.keys() == other.keys() and len(one) == 4
    for text, row in one.items():  # a row of the model is read as a whole, so nearly the same
        assert np.abs(row - other[text]).max() < 1.0
    words = REQUEST_EVIDENCE.index("words_to_stay")
    assert {text for text, row in one.items() if row[words] > 0} == {"User has goats"}


def test_of_a_long_message_the_clauses_that_ask_are_read() -> None:
    told = ", ".join(f"the train of {n} was late" for n in range(20))
    found = clauses_of(f"{told}, please forget my debt, the goats can stay")
    assert found[:2] == ["please forget my debt", "the goats can stay"] and len(found) == CLAUSES


def test_forget_that_means_all_of_a_message_and_it_one_thing(
    tmp_path: Path, trigrams: Callable[[], Any]
) -> None:
    """Whatever the model thinks: here it sees no relation."""
    told = "I have a cat. I live in Leith. I am 58. I play the tuba. My son is called Bo."
    for asked, gone in (
        ("Forget that, please.", True),
        ("My knee is nobody's business. Please forget it.", False),
    ):
        model = Answering()
        with opened(tmp_path / asked[:6], trigrams(), model) as memory:
            memory.add(told, user_id="u")
            assert len(written(memory)) == 5
            model.worth_ = "forget"
            memory.add(asked, user_id="u")
            assert (written(memory) == []) is gone


def test_what_is_said_to_stay_stays_whatever_the_model_says(
    tmp_path: Path, trigrams: Callable[[], Any]
) -> None:
    model = Answering("retract", sure=0.9)
    with opened(tmp_path, trigrams(), model) as memory:
        model.relation = "unrelated"
        memory.add("I keep nine goats. I owe the bank a fortune.", user_id="u")
        model.worth_, model.relation = "forget", "retract"
        memory.add("Please delete my debts, the goats can stay.", user_id="u")
        assert written(memory) == ["User keeps nine goats."]


def test_without_what_weighs_them_a_part_is_meant_of_which_the_model_is_sure(
    tmp_path: Path, trigrams: Callable[[], Any]
) -> None:
    for relation, gone in (("retract", True), ("comment", False)):
        model = Answering(relation, sure=0.9)
        with opened(tmp_path / relation, trigrams(), model) as memory:
            memory.add("my salary is 48k", user_id="u")
            model.worth_ = "forget"
            memory.add("please delete my salary", user_id="u")
            assert (not any("48k" in text for text in written(memory))) is gone


# What says what is to stay, points and names, or names in other words; and what stays.
IN_PART = [
    (
        "I've a bad hip, and Maurice upstairs is a drinker, and I breed canaries.",
        "Maurice's drinking is not mine to tell. Delete that, please.",
        ["drinker"],
        ["canaries", "hip"],
    ),
    (
        "I'm on antihistamines and I coach the under nines.",
        "could you take the tablets out of your notes?",
        ["antihistamines"],
        ["under nines"],
    ),
    (
        "We are hiding a puppy for the boys, cost £600 already. They sleep at Gran's.",
        "The boys read this, so take the puppy out of your notes. Gran is fine obviously",
        ["puppy", "600"],
        ["gran"],
    ),
    (
        "applied for the foreman job at the quarry. Oh and Aoife's birthday is June 3",
        "You can forget the quarry application, I'd rather that wasn't on file. Keep Aoife's"
        " birthday though",
        ["foreman"],
        ["aoife"],
    ),
    (
        "Between us, I was arrested in 2019 for shoplifting. I play the oboe in a wind band.",
        "So what should I practise?",
        [],
        ["oboe"],
    ),
    (
        "我家地址是梧桐苑3栋501，我们几个都喜欢打桥牌",
        "地址删掉，只记我们喜欢打桥牌就可以了",
        ["梧桐苑"],
        ["桥牌"],
    ),
    (
        "我儿子在里头，还有两年才出来。我膝盖有积水。",
        "儿子的事你别留着，膝盖的记着就好",
        ["里头", "两年"],
        ["膝盖"],
    ),
]


@pytest.mark.parametrize(("told", "asked", "gone", "stays"), IN_PART, ids=[c[1] for c in IN_PART])
def test_of_several_facts_those_go_that_are_meant(
    memory: Memory, told: str, asked: str, gone: list[str], stays: list[str]
) -> None:
    memory.add(told, user_id=asked)
    before = texts(memory, asked)
    assert all(word in before for word in (*gone, *stays))
    memory.add(asked, user_id=asked)
    after = texts(memory, asked)
    assert not [word for word in gone if word in after]
    assert all(word in after for word in stays)
