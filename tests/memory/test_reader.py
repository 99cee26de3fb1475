"""What the rule-based reader keeps and drops, how it words it, and its figures on real talk."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.data import Conversation, load_locomo
from memograd.memory.reader import Fact, RuleReader
from memograd.memory.records.items import Kind
from memograd.memory.records.turns import RawTurn

TIME = datetime(2023, 6, 9, 12, 30)  # a Friday


def read(*said: str, speaker: str = "user") -> list[Fact]:
    return RuleReader().read([RawTurn(f"t{n}", speaker, s, TIME, 1) for n, s in enumerate(said, 1)])


def chat(*said: tuple[str, str]) -> list[Fact]:
    return RuleReader().read(
        [RawTurn(f"t{n}", who, s, TIME, 1) for n, (who, s) in enumerate(said, 1)]
    )


DROPPED = """
Hello!
Hey there, how are you?
Thanks so much!
That sounds great.
Wow, I love that painting!
I'm so proud of you!
You're so kind.
I totally agree.
Can you recommend a restaurant in Boston?
Please write a poem about my dog.
Tell me something about 1984.
I can't wait to hear about it.
I won't give up!
I won't let you down.
I'd better get back to it.
Talk to you soon, I'm off to work.
How sweet!
No problem.
Let's do it together!
It was amazing.
Good luck with that.
Time flies.
你好！
谢谢你！
帮我写一首诗。
你能推荐一家餐厅吗？
太好了！
我明白了。
那太棒了。
今天天气怎么样？
再见！
好的，没问题。
你真厉害！
请翻译这句话。
香菜我说过没
哈哈哈
谢了
"""

KEPT = """
I moved to Boston last week. | User moved to Boston in the week before 9 June 2023.
Thanks! I'm a nurse. | User is a nurse.
My dog is called Rex. | User's dog is called Rex.
Hey, I've got two kids. | User has got two kids.
Researching adoption agencies. | User is researching adoption agencies.
Gonna visit my aunt tomorrow. | User is going to visit their aunt on 10 June 2023.
I live in Boston because I love jazz. | User lives in Boston because User loves jazz.
I bought a car and I love it. | User bought a car and User loves it.
I have a dog and a cat. | User has a dog and a cat.
You won't believe it, but I'm a nurse now. | User is a nurse now.
我有一只猫，叫咪咪。 | 用户有一只猫，叫咪咪。
我住在北京，因为我喜欢这里。 | 用户住在北京，因为用户喜欢这里。
Bob works at Google. | User said: Bob works at Google.
Please remember that my flight is at 9:40. | User's flight is at 9:40.
我昨天搬到了北京。 | 用户2023年6月8日搬到了北京。
我上司今年44岁。 | 用户的上司2023年44岁。
你好，我是一名医生。 | 用户是一名医生。
请记住，我的生日是5月3日。 | 用户的生日是5月3日。
金融科技论坛的地点是北京。 | 用户说：金融科技论坛的地点是北京。
哈日昨晚没了。 | 用户说：哈日2023年6月8日晚上没了。
好友结婚了。 | 用户说：好友结婚了。
我用的手机是华为Mate60。 | 用户用的手机是华为Mate60。
"""


@pytest.mark.parametrize("said", DROPPED.strip().splitlines())
def test_what_is_no_news_is_dropped(said: str) -> None:
    assert read(said) == []


@pytest.mark.parametrize("line", KEPT.strip().splitlines())
def test_statements_are_kept_and_stand_alone(line: str) -> None:
    said, text = (part.strip() for part in line.split("|"))
    assert [fact.text for fact in read(said)] == [text]


@pytest.mark.parametrize(
    "said",
    [
        "I am a fan of Port Wanderers now and no longer of City Athletic.",
    ],
)
def test_what_is_so_now_is_not_taken_back(said: str) -> None:
    """Only the old value ended: to take all of it back would lose the new one."""
    facts = read(said)
    assert facts and not any(fact.retracts for fact in facts)
    assert any("now" in fact.text for fact in facts)


def test_one_date_stays_with_the_whole_story() -> None:
    [fact] = read("I went to Rome yesterday and I saw Bob.")
    assert fact.text == "User went to Rome on 8 June 2023 and User saw Bob."


def test_a_fact_tells_where_it_comes_from_and_since_when() -> None:
    [moved, job] = read("Hi! I moved to Boston last Sunday.", "I work at Google.")
    assert (moved.sources, job.sources) == (("t1",), ("t2",))
    assert (moved.kind, job.kind) == (Kind.EPISODIC, Kind.SEMANTIC)
    assert moved.valid_from == datetime(2023, 6, 4)
    assert job.valid_from == TIME
    assert moved.subject == "User"


def test_plans_are_known_since_they_were_told() -> None:
    [english] = read("I will visit Rome next month.")
    [chinese] = read("我明年要去日本。")
    assert english.text == "User will visit Rome in July 2023."
    assert chinese.text == "用户2024年要去日本。"
    assert english.valid_from == chinese.valid_from == TIME


def test_without_a_time_nothing_is_dated() -> None:
    [fact] = RuleReader().read([RawTurn("t", "user", "I moved yesterday.", None, 1)])
    assert fact.text == "User moved yesterday."
    assert fact.valid_from is None


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Please forget that I live in Boston.", "User lives in Boston."),
        ("Forget what I said about my trip to Rome.", "User's trip to Rome."),
        ("忘掉我住在北京这件事。", "用户住在北京。"),
        ("别记我的电话号码。", "用户的电话号码。"),
    ],
)
def test_what_is_taken_back(said: str, text: str) -> None:
    [fact] = read(said)
    assert fact.retracts
    assert fact.text.rstrip(".。") == text.rstrip(".。")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Always answer in Chinese.", "User said: Always answer in Chinese."),
        ("Please don't use emojis.", "User said: Please don't use emojis."),
        ("I'd like you to be brief.", "User would like you to be brief."),
        ("以后请用中文回答我。", "以后请用中文回答用户。"),
        ("请用简短的话回答。", "用户说：请用简短的话回答。"),
    ],
)
def test_how_the_agent_is_to_act_is_remembered(said: str, text: str) -> None:
    [fact] = read(said)
    assert (fact.text, fact.kind) == (text, Kind.PROCEDURAL)


@pytest.mark.parametrize(
    "said",
    ["My name is Ann.", "I'm allergic to nuts.", "我叫王芳。", "我对花生过敏。"],
)
def test_who_somebody_is_goes_to_the_core(said: str) -> None:
    [fact] = read(said)
    assert fact.kind is Kind.CORE


def test_the_assistant_is_not_listened_to_unless_asked() -> None:
    turns = [RawTurn("t1", "assistant", "I live in a data centre in Oslo.", TIME, 1)]
    assert RuleReader().read(turns) == []
    [fact] = RuleReader(ignore=()).read(turns)
    assert fact.text == "The assistant lives in a data centre in Oslo."


def test_two_people_are_told_apart() -> None:
    facts = chat(
        ("Ann", "Bob, I saw your brother in Rome yesterday."),
        ("Bob", "Cool, Ann! I moved in with him in May 2023."),
    )
    assert [fact.text for fact in facts] == [
        "Ann saw Bob's brother in Rome on 8 June 2023.",
        "Bob moved in with him in May 2023.",
    ]


def test_a_bare_answer_carries_its_question() -> None:
    [fact] = chat(("Ann", "They're cute! What are their names?"), ("Bob", "Luna and Oliver!"))
    assert fact.text == 'Bob, asked "What are their names?", answered: Luna and Oliver!'
    [chinese] = chat(("小安", "你的猫叫什么名字？"), ("小博", "露娜和奥利。"))
    assert "露娜和奥利" in chinese.text and "名字" in chinese.text


@pytest.mark.parametrize(
    "said",
    [
        "Translate this: I live in Bergen.",
        "> I live in Bergen",
        '"I live in Bergen and I work at the harbour"',
    ],
)
def test_the_words_of_others_become_no_facts(said: str) -> None:
    assert read(said) == []


@pytest.mark.parametrize("said", ["My wifi password is happy8866.", "我的银行卡密码是884422。"])
def test_a_secret_only_hides_its_turn(said: str) -> None:
    [fact] = read(said)
    assert fact.retracts and fact.forget and fact.sources == ("t1",)
    assert "8866" not in fact.text and "884422" not in fact.text


def test_tools_tell_nothing_of_the_user() -> None:
    assert RuleReader().read([RawTurn("t1", "tool", "I live in Bergen.", TIME, 1)]) == []


def test_what_ended_is_told_as_it_was_said() -> None:
    [ended] = read("I no longer like tea.")
    assert (ended.text, ended.retracts) == ("User no longer likes tea.", False)


def test_pasted_text_is_no_statement() -> None:
    assert read("I log " + "x" * 100_000) == []


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "Ann"]), st.text(max_size=80))))
def test_any_turns(said: list[tuple[str, str]]) -> None:
    """Any text: the same facts each time, each from a turn that is listened to."""
    facts = chat(*said)
    assert facts == chat(*said)
    heard = {f"t{n}" for n, (who, _) in enumerate(said, 1) if who != "assistant"}
    assert all(fact.text.strip() and set(fact.sources) <= heard for fact in facts)


def shares(conversation: Conversation) -> tuple[float, float, float]:
    """Share of turns that give a fact, share of evidence turns that do, facts a turn."""
    sessions: dict[int, list[RawTurn]] = {}
    for turn in conversation.turns:
        sessions.setdefault(turn.session, []).append(turn)
    facts = [fact for turns in sessions.values() for fact in RuleReader().read(turns)]
    read_from = {source for fact in facts for source in fact.sources}
    evidence = {turn for question in conversation.questions for turn in question.evidence}
    n = len(conversation.turns)
    return len(read_from) / n, len(evidence & read_from) / len(evidence), len(facts) / n


@pytest.mark.slow
def test_locomo(locomo_file: Path) -> None:
    """Most of the evidence from little more than half of the turns."""
    for conversation in load_locomo(locomo_file):
        turns, evidence, facts = shares(conversation)
        assert turns < 0.62
        assert evidence > (0.85 if conversation.id == "conv-26" else 0.75)
        assert facts < 1.05


def test_generated_lives(lives) -> None:
    for conversation in lives(3, 11, sessions=12, statements_per_session=12):
        turns, evidence, _ = shares(conversation)
        assert turns < 0.78, "about a quarter is small talk"
        assert evidence > 0.75


def test_memdaily(shared_data: Path) -> None:
    """Chinese users who tell one thing a message: nothing that is asked for later is dropped."""
    evidence = found = 0
    for file in sorted((shared_data / "memdaily").glob("0[1-6]_*_hybrid.json.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as opened:
            streams = json.load(opened)[:5]
        for stream in streams:
            turns = [
                RawTurn(str(m["mid"]), "user", m["message"], TIME, 1)
                for m in stream["message_list"]
            ]
            facts = RuleReader().read(turns)
            assert not any("我" in fact.text for fact in facts)
            read_from = {source for fact in facts for source in fact.sources}
            wanted = {str(mid) for q in stream["question_list"] for mid in q["target_step_id"]}
            evidence, found = evidence + len(wanted), found + len(wanted & read_from)
    assert found / evidence > 0.95
