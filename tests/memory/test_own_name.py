"""A question that calls the user by name: asked of "the user", unless the name tells anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from memograd import Memory
from memograd.memory.search.own_name import asked_of_the_user, own_name

CAR = "User drives an old Saab."


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("User's name is Ines Duarte.", "Ines Duarte"),
        ("User's full name is Ines Duarte.", "Ines Duarte"),
        ("User is called Ines.", "Ines"),
        ("User's name is Ines (formerly: User's name is Inés, until 3 May 2024).", "Ines"),
        ("用户叫李娜。", "李娜"),
        ("用户的名字是阿依古丽。", "阿依古丽"),
        ("User's daughter is called Mia.", None),
        ("User's cat's name is Wegener.", None),
        ("User's name is not important.", None),
        ("User's name is May.", None),  # a month in every other question
        ("用户叫外卖。", None),
        ("用户的猫叫咪咪。", None),
        (CAR, None),
    ],
)
def test_what_a_memory_says_the_user_is_called(text: str, name: str | None) -> None:
    assert own_name(text) == name


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("What car does Ines drive?", "What car does the user drive?"),
        ("What is Ines Duarte's car?", "What is the user's car?"),
        ("Ines's car?", "the user's car?"),
        ("What does the user drive?", None),
        ("What does Ines Brandt drive?", None),  # another one
        ("What does Joana Duarte drive?", None),
        ("Who is Ines?", None),
        ("What is Ines called?", None),
    ],
)
def test_the_name_gives_way_to_the_user(question: str, asked: str | None) -> None:
    assert asked_of_the_user(question, [CAR, "User's name is Ines Duarte."]) == asked


def test_an_everyday_word_that_opens_a_question_is_no_name() -> None:
    found = ["User's name is Will."]
    assert asked_of_the_user("Will the bridge open?", found) is None
    assert asked_of_the_user("Where does Will work?", found) == "Where does the user work?"


@pytest.mark.parametrize(
    ("question", "told", "asked"),
    [
        ("陳大文住在哪裡？", "用户叫陳大文。", "用户住在哪裡？"),
        ("Harold喜欢什么运动？", "用户叫Harold。", "用户喜欢什么运动？"),
        ("你知道Harold喜欢什么吗？", "用户叫Harold。", "你知道用户喜欢什么吗？"),
        ("Harolds喜欢什么？", "用户叫Harold。", None),
    ],
)
def test_names_in_other_characters(question: str, told: str, asked: str | None) -> None:
    assert asked_of_the_user(question, [told, "用户打网球。"]) == asked


def test_chinese_names_too() -> None:
    assert asked_of_the_user("李娜在哪里工作？", ["用户叫李娜。"]) == "用户在哪里工作？"
    assert asked_of_the_user("李娜是谁？", ["用户叫李娜。"]) is None


def test_a_name_that_another_memory_says_stays() -> None:
    found = ["User's name is Ines Duarte.", "User's boat is the Ines."]
    assert asked_of_the_user("How long is the Ines?", found) is None


def memory_of(folder: Path, *told: str, user: str = "u") -> Memory:
    memory = Memory.open(folder, embedder="e5", reader="rules", env_file=None)
    for text in told:
        memory.add(text, user_id=user)
    return memory


def first(memory: Memory, question: str, **asked: object) -> str:
    found: str = memory.search(question, **asked)["results"][0]["memory"]  # type: ignore[arg-type]
    return found


TOLD = ("My name is Ines Duarte.", "I drive an old Saab.", "I keep bees.", "I am allergic to nuts.")


def test_a_question_by_name_finds_what_one_about_the_user_finds(tmp_path: Path) -> None:
    with memory_of(tmp_path, *TOLD) as memory:
        for by_name, about in (
            ("What does Ines drive?", "What does the user drive?"),
            ("What is Ines allergic to?", "What is the user allergic to?"),
        ):
            hits = [memory.search(q, user_id="u")["results"] for q in (by_name, about)]
            assert hits[0] == hits[1]
        assert "Ines" in first(memory, "What is Ines called?", user_id="u")


def test_among_several_users_the_name_tells_them_apart(tmp_path: Path) -> None:
    with memory_of(tmp_path, *TOLD) as memory:
        memory.add("I drive a red Fiat.", user_id="v")
        everyone = {"user_id": {"in": ["u", "v"]}}
        asked = [
            memory.search(q, filters=everyone, limit=5)["results"]
            for q in ("What does Ines drive?", "What does the user drive?")
        ]
        assert asked[0] != asked[1]


def test_a_speaker_of_that_name_is_told_by_it(tmp_path: Path) -> None:
    with memory_of(tmp_path, *TOLD) as memory:
        said = {"role": "user", "name": "Ines", "content": "I sold the bees."}
        memory.add([said], user_id="u")
        asked = [
            memory.search(q, user_id="u")["results"]
            for q in ("What does Ines drive?", "What does the user drive?")
        ]
        assert asked[0] != asked[1]
