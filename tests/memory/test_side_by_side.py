"""Facts side by side in a sentence are kept one by one, and what leans on one stays with it."""

from __future__ import annotations

import pytest

from memograd import Memory
from memograd.memory.reader.side_by_side import facts_apart, owner_before

WHEN = "2024-05-07T18:30:00+00:00"


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("I take warfarin and I sing in a choir", ["I take warfarin", "I sing in a choir"]),
        ("im omar n im 19 weeks pregnant", ["im omar", "im 19 weeks pregnant"]),
        (
            "About me: I'm 61, I live in Cork, and I'm seeing a therapist",
            ["I'm 61", "I live in Cork", "I'm seeing a therapist"],
        ),
        (
            "My wife's a vet, my son plays rugby and he hates school",
            ["My wife's a vet", "my son plays rugby and he hates school"],
        ),
        ("我在浦东上班,我老公在苏州,我月薪两万", ["我在浦东上班", "我老公在苏州", "我月薪两万"]),
        (
            "I bank with Natwest, have two girls Ivy and Joan, and drive a Skoda",
            ["I bank with Natwest", "have two girls Ivy and Joan", "drive a Skoda"],
        ),
        ("I'm 44, a widow, and live in Perth", ["I'm 44", "a widow", "live in Perth"]),
        ("I'm Rosa, 31, and keep bees", ["I'm Rosa, 31", "keep bees"]),
        ("我30岁，在苏州做木工，养了一条狗", ["我30岁", "在苏州做木工", "养了一条狗"]),
    ],
)
def test_facts_of_who_speaks_stand_apart(sentence: str, facts: list[str]) -> None:
    found = facts_apart(sentence)
    assert [said for _, said in found] == facts
    assert all(sentence[at : at + len(said)] == said for at, said in found)


@pytest.mark.parametrize(
    "sentence",
    [
        "I work nights and I hate it",
        "I love my dog and my cat",
        "Me and my wife Ann live in Bath",
        "If I eat nuts, I swell up",
        "When I was nine, my dad left",
        "I'm tired, I mean exhausted",
        "Do I pay tax, and my wife too?",
        "我在长沙,我觉得他不错",
        "因为我过敏,我不吃虾",
        "我养了只猫,我妈不喜欢它",
        "I like to swim and ride my bike",
        "I own a house, a boat and a car",
        "I'm thinking of adding a water feature, like a birdbath",
        "I'm looking for a new bottle holder and a phone mount",
        "I'm planning to visit the tower, take a stroll and have a coffee",
        "I love how you tell your stories and teach people about it",
        "I love the self-acceptance and love theme",
        "我觉得世纪花园真不错，环境好，住在这里特别舒服",
        "我那个下属，今年38岁",
        "I help people live better, work less and eat well",
        "My brothers live in Oslo, drive trucks and have a band",
        "我以前在上海工作，住在浦东",
        "我女儿在二小上学，养了只猫",
    ],
)
def test_what_leans_on_another_stays_with_it(sentence: str) -> None:
    assert facts_apart(sentence) == []


def test_each_fact_of_one_speaker_says_who_it_is_of(tmp_path) -> None:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        told = {
            "ann": "I live in Leeds, work as a nurse and play the oboe",
            "bo": "我30岁，在苏州做木工，养了一条狗",
            "cy": "My brothers live in Oslo, drive trucks and have a band.",
        }
        for user, text in told.items():
            memory.add(text, user_id=user, timestamp=WHEN)
        kept = {
            user: [one["memory"] for one in memory.get_all(user_id=user)["results"]]
            for user in told
        }
    assert kept["ann"] == ["User lives in Leeds.", "User works as a nurse.", "User plays the oboe."]
    assert kept["bo"] == ["用户30岁。", "用户在苏州做木工。", "用户养了一条狗。"]
    assert len(kept["cy"]) == 1


def test_of_two_facts_in_a_sentence_one_is_forgotten(tmp_path) -> None:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        memory.add("I take warfarin and I sing in a choir.", user_id="ann", timestamp=WHEN)
        memory.add("Please forget the choir.", user_id="ann", timestamp=WHEN)
        kept = [one["memory"] for one in memory.get_all(user_id="ann")["results"]]
    assert kept == ["User takes warfarin."]


def test_a_clause_is_of_the_relative_before_it_but_for_what_is_done_about_them() -> None:
    assert owner_before("我爸68,前年放了两个支架", 6, "前年放了两个支架") == "我爸"
    assert owner_before("我妈身体不好，下周请假回老家", 7, "下周请假回老家") is None
    assert owner_before("我爸68,我自己45,单位体检查出脂肪肝", 12, "单位体检查出脂肪肝") is None
