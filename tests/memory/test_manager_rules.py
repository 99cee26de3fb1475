"""Decisions by rules: tables of cases in both languages, and what must hold for every text.

A line of a table is `fact => item ; item => OPERATION number-of-the-item`; `~fact` is a fact that
retracts.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.memory.manager import decide_by_rules
from memograd.memory.reader import Fact
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import OpKind
from memograd.memory.records.scope import Scope

NOW = datetime(2024, 5, 1, tzinfo=UTC)

ENGLISH = """
Alice lives in Boston => => ADD
Alice lives in Boston => Alice lives in Boston. => NONE 1
alice lives in boston! => Alice lives in Boston => NONE 1
Alice lives in Boston => Alice's dog is called Rex ; Alice lives in Boston. => NONE 2
Alice moved to Boston => Alice lives in Boston => NONE 1
Alice moved to Chicago => Alice lives in Boston => UPDATE 1
Alice lives in Chicago now => Alice lives in Boston => UPDATE 1
Alice lives in a small apartment => Alice lives in Boston => ADD
User said: Rex is 5 years old => User said: Rex is 4 years old => UPDATE 1
Bob lives in Chicago => Alice lives in Boston => ADD
Bob lives in Boston => Alice lives in Boston => ADD
Alice's sister lives in Chicago => Alice lives in Boston => ADD
Alice is 35 years old => Alice is 34 years old => UPDATE 1
Alice is 35 => Alice is 34 years old => UPDATE 1
Rex is 5 years old => Rex is 4 years old => UPDATE 1
Rex is 5 years old => Alice is 5 years old => ADD
Alice's phone number is 555-1234 => Alice's phone number is 555-9999 => UPDATE 1
Alice's email is a@x.org => Alice's phone number is 555-9999 => ADD
Alice's dog is called Rex => Alice's cat is called Rex => ADD
Alice's dog is called Max => Alice's dog is called Rex => UPDATE 1
Alice's favourite food is ramen => Alice's favourite food is sushi => UPDATE 1
Alice's favorite food is ramen => Alice's favourite colour is blue => ADD
Alice's favorite color is green => Alice's favorite color is blue => UPDATE 1
Alice works at Google => Alice works at Meta => UPDATE 1
Alice works at Google as an engineer => Alice works for Google => UPDATE 1
Alice works as a nurse => Alice works as a teacher => UPDATE 1
Alice works as a nurse => Alice works at Google => ADD
Alice became a doctor => Alice works as a nurse => UPDATE 1
Alice is married to Bob => Alice is single => UPDATE 1
Alice got divorced => Alice is married => UPDATE 1
Alice's birthday is 3 May => Alice's birthday is 4 May => UPDATE 1
Alice likes tea => Alice likes coffee => ADD
Alice likes tea => Alice loves tea => NONE 1
Alice hates tea => Alice likes tea => UPDATE 1
Alice does not like tea => Alice likes tea => UPDATE 1
Alice doesn't like tea => Alice dislikes tea => NONE 1
Alice likes red wine => Alice likes white wine => ADD
Alice no longer likes tea => Alice likes tea => DELETE 1
~Alice likes tea => Alice likes tea => DELETE 1
~Alice likes tea => Alice likes coffee => NONE
~Alice likes tea => Bob likes tea => NONE
~Alice lives in Boston => Alice's dog is called Rex ; Alice lives in Boston => DELETE 2
~Alice works at Google => Alice works at Meta => NONE
~Alice's old phone number is 555-9999 => Alice likes tea => NONE
~Alice plans a trip to Rome => Alice is planning a trip to Rome in June => DELETE 1
~Alice likes tea => => NONE
Alice is allergic to peanuts => Alice is allergic to shellfish => ADD
Alice is allergic to peanuts => Alice has a peanut allergy => ADD
Alice is not allergic to peanuts => Alice is allergic to peanuts => UPDATE 1
Alice has a dog => Alice has a cat => ADD
Alice has a dog => Alice has a dog allergy => ADD
Alice has two dogs => Alice has three dogs => ADD
Alice has a dog => Alice has no dog => UPDATE 1
Alice visited Rome => Alice visited Paris => ADD
Alice visited Rome in 2022 => Alice visited Rome in 2023 => ADD
Alice visited Rome on 3 May 2023 => Alice visited Rome on 3 May 2023. => NONE 1
Alice ran 5 km on Monday => Alice ran 10 km on Monday => ADD
Alice drives a Tesla now => Alice drives a Honda => UPDATE 1
Alice uses vim instead => Alice uses emacs => UPDATE 1
Alice now prefers tea => Alice prefers coffee => UPDATE 1
The meeting with Bob is now on Friday => The meeting with Bob is on Thursday => UPDATE 1
The weekly meeting changed to Friday => The weekly meeting is on Thursday => UPDATE 1
Bob bit the dog => The dog bit Bob => ADD
Alice gave Bob a book => Bob gave Alice a book => ADD
Alice lives in Boston, Massachusetts => Alice lives in Boston => UPDATE 1
Alice lives in Boston => Alice lives in Boston, Massachusetts => NONE 1
The budget is 45 dollars => The budget is 4.5 dollars => ADD
Alice codes in C++ => Alice codes in C => ADD
Alice finished reading Dune => Alice started reading Dune => ADD
Alice's friend is Bob => Alice's friend is Carol => ADD
Alice's boss is Bob => Alice's boss is Carol => UPDATE 1
Alice moved to Rome => Alice lives in Oslo, has twins and runs a small bakery by the sea => ADD
Alice is vegan now => Alice is vegetarian => UPDATE 1
User wants short answers in Chinese => User wants short answers in English => ADD
User's name is Ann => User's dog's name is Ann => ADD
User lives in Denver now => User lives in Boston and User loves jazz => ADD
User lives in Denver now => User lives in Boston because User loves jazz => ADD
Alice lives in Denver => Alice lives in Boston with her cat Tom => ADD
Alice works at Meta => Alice works at Google as an engineer => ADD
Alice works at Google as an engineer => Alice works at Google with Bob => ADD
Alice works at Google => Alice works at Google as an engineer => NONE 1
~Alice lives in Boston => Alice lives in Boston with her cat Tom => NONE
~Alice lives in Boston => Alice lives in Boston and loves jazz => UPDATE 1
Alice lives in Oslo => Alice lives in Rome. It's lovely there. => UPDATE 1
Alice's dog is called Max => Alice's dog is called Rex. It is 3 years old. => ADD
Alice took up chess => Alice took up knitting => ADD
Alice switched from tea to coffee => Alice drinks water => ADD
Alice gave up drinking => Alice drinks milk => ADD
Alice broke up with Tom => Alice is dating Tom => UPDATE 1
Alice broke up with Tom => Alice is dating Bob => ADD
Alice renamed their cat Momo => Alice's cat is called Kiki => UPDATE 1
Alice quit their job at Meta => Alice works at Meta => UPDATE 1
Alice quit their job at Meta => Alice works at Google => ADD
The interview was postponed to 9 May => The interview is on 2 May => UPDATE 1
The interview was postponed to 9 May => The exam is on 2 May => ADD
Alice cancelled their trip to Rome => Alice is planning a trip to Rome => UPDATE 1
Alice became a doctor => Alice is a nurse and a mother of two ; Alice works as a cook => UPDATE 2
Now Alice wants to help people go through it => Alice wants to help people too => ADD
Alice switched jobs on Monday 3 May 2023 => Alice first had it on Monday 3 May 2023 => ADD
"""

CHINESE = """
张三住在北京 => => ADD
张三住在北京 => 张三住在北京。 => NONE 1
张三居住在北京 => 张三住在北京 => NONE 1
张三住在北京 => 张三有一只猫 ; 张三住在北京 => NONE 2
张三搬到了上海 => 张三住在北京 => UPDATE 1
张三现在住在上海 => 张三住在北京 => UPDATE 1
张三搬家到北京了 => 张三住在北京 => NONE 1
李四住在上海 => 张三住在北京 => ADD
李四住在北京 => 张三住在北京 => ADD
张三的妈妈住在上海 => 张三住在北京 => ADD
张三今年35岁 => 张三今年34岁 => UPDATE 1
张三35岁了 => 张三34岁 => UPDATE 1
李四35岁 => 张三35岁 => ADD
张三的电话是13800001111 => 张三的电话是13900002222 => UPDATE 1
张三的手机号是13800001111 => 张三的电话是13900002222 => UPDATE 1
张三的邮箱是a@x.cn => 张三的电话是13900002222 => ADD
张三的电话改成了13800001111 => 张三的电话号码是13900002222 => UPDATE 1
张三的生日是5月3日 => 张三的生日是5月4日 => UPDATE 1
张三的生日是5月3日 => 李四的生日是5月3日 => ADD
张三的狗叫旺财 => 张三的狗叫来福 => UPDATE 1
张三的狗叫旺财 => 张三的猫叫旺财 => ADD
张三最喜欢的颜色是绿色 => 张三最喜欢的颜色是蓝色 => UPDATE 1
张三最喜欢的水果是苹果 => 张三最喜欢的颜色是蓝色 => ADD
张三喜欢喝茶 => 张三喜欢喝咖啡 => ADD
张三很喜欢喝茶 => 张三喜欢喝茶 => NONE 1
张三不喜欢喝茶 => 张三喜欢喝茶 => UPDATE 1
张三讨厌喝茶 => 张三喜欢喝茶 => UPDATE 1
张三喜欢喝茶 => 张三不喜欢喝茶 => UPDATE 1
张三不再喜欢喝茶 => 张三喜欢喝茶 => DELETE 1
张三不喜欢喝茶了 => 张三喜欢喝茶 => DELETE 1
李四不喜欢喝茶 => 张三喜欢喝茶 => ADD
~张三喜欢喝茶 => 张三喜欢喝茶 => DELETE 1
~张三喜欢喝茶 => 张三喜欢喝咖啡 => NONE
~张三喜欢喝茶 => 李四喜欢喝茶 => NONE
~张三喜欢喝茶 => => NONE
~张三住在北京 => 张三有一只猫 ; 张三住在北京 => DELETE 2
~张三在腾讯工作 => 张三在百度工作 => NONE
张三在腾讯上班 => 张三在百度上班 => UPDATE 1
张三在腾讯工作 => 张三在腾讯上班 => NONE 1
张三跳槽到百度公司了 => 张三在腾讯公司上班 => UPDATE 1
张三是医生 => 张三是护士 => UPDATE 1
张三当上了经理 => 张三是程序员 => UPDATE 1
张三是医生 => 张三在北京工作 => ADD
张三是上海人 => 张三是医生 => ADD
张三结婚了 => 张三单身 => UPDATE 1
张三离婚了 => 张三已婚 => UPDATE 1
张三对花生过敏 => 张三对海鲜过敏 => ADD
张三不对花生过敏 => 张三对花生过敏 => UPDATE 1
张三对花生不过敏 => 张三对花生过敏 => UPDATE 1
张三对花生过敏 => 张三对花生严重过敏 => NONE 1
张三有两只猫 => 张三有一只狗 => ADD
张三有两只猫 => 张三有三只猫 => ADD
张三去过巴黎 => 张三去过罗马 => ADD
2023年5月7日张三去了巴黎 => 2022年5月7日张三去了巴黎 => ADD
2023年5月7日张三去了巴黎 => 2023年5月7日，张三去了巴黎。 => NONE 1
论坛的地点是北京 => 论坛的规模是三千人 => ADD
论坛的地点改成了上海 => 论坛的地点是北京 => UPDATE 1
论坛的规模是五千人 => 论坛的规模是三千人 => UPDATE 1
论坛的地点是北京 => 年会的地点是北京 => ADD
狗咬了张三 => 张三咬了狗 => ADD
张三给李四一本书 => 李四给张三一本书 => ADD
用户的同事的身高是150厘米 => 用户的同事身高150厘米 => NONE 1
用户的同事的身高是160厘米 => 用户的同事身高150厘米 => UPDATE 1
张三的朋友是李四 => 张三的朋友是王五 => ADD
张三的老板是李四 => 张三的老板是王五 => UPDATE 1
张三用的手机是小米12 => 张三用的手机是华为Mate60 => UPDATE 1
用户要求：以后请用中文回答。 => 用户要求：以后请用英文回答。 => ADD
张三住在上海 => 张三住在北京，喜欢爵士乐 => ADD
张三住在上海 => 张三住在北京，因为张三喜欢爵士乐 => ADD
张三从腾讯辞职了 => 张三在腾讯工作 => UPDATE 1
张三从腾讯辞职了 => 张三在百度工作 => ADD
面试推迟到周五 => 面试在周三 => UPDATE 1
面试推迟到周五 => 考试在周三 => ADD
张三戒酒了 => 张三每天喝茶 => ADD
张三改名叫张海 => 张三的名字是张三 => UPDATE 1
张三现在想帮助别人 => 张三想帮助动物 => ADD
"""

# What is taken out of an item that is a list: the rest stays.
TAKEN_OUT = """
~User lives in Boston. => User lives in Boston and loves jazz. => User loves jazz.
~User loves jazz. => User lives in Boston and loves jazz. => User lives in Boston.
~用户喜欢爵士乐。 => 用户住在北京，用户喜欢爵士乐。 => 用户住在北京。
"""

# Written before the rules were tuned on the tables above. 40 of 50 were right at the first run. One
# fault that it showed was mended since (taking back one of "cats and dogs" deleted both), and rules
# that gained nothing in a memory went: 42 are right.
HELD_OUT = """
Maria relocated to Lisbon => Maria lives in Porto => UPDATE 1
Maria has lived in Lisbon since 2020 => Maria lives in Porto => UPDATE 1
Maria's husband works at Siemens => Maria works at Siemens => ADD
Maria got a new job at Bosch => Maria works at Siemens => UPDATE 1
Maria quit smoking => Maria smokes => UPDATE 1
Maria enjoys hiking => Maria enjoys swimming => ADD
Maria can't stand olives => Maria loves olives => UPDATE 1
Maria's cat Tom died => Maria has a cat => ADD
Maria turned 41 => Maria is 40 years old => UPDATE 1
Maria's son is 7 years old => Maria's son is 6 years old => UPDATE 1
Maria speaks French => Maria speaks German => ADD
Maria's wifi password is hunter2 => Maria's wifi password is hunter1 => UPDATE 1
The project deadline moved to 12 June => The project deadline is 5 June => UPDATE 1
Maria switched from Spotify to Tidal => Maria uses Spotify => UPDATE 1
Maria goes to the gym on Mondays => Maria goes to the gym on Fridays => ADD
Maria no longer works at Siemens => Maria works at Siemens => DELETE 1
~Maria is allergic to cats => Maria is allergic to cats and dogs => NONE
~Maria has a meeting on Friday => Maria has a meeting with Tom on Friday => DELETE 1
Maria is engaged => Maria is single => UPDATE 1
Maria bought a house => Maria bought a car => ADD
Maria's favourite poet is Ursula Le Guin => Maria's favourite poet is Ursula K. Le Guin => NONE 1
Maria is not vegetarian any more => Maria is vegetarian => DELETE 1
Maria plays the piano => Maria plays the piano. => NONE 1
Maria broke her left arm => Maria broke her right arm => ADD
Maria moved from Porto to Lisbon => Maria lives in Porto => UPDATE 1
王芳去年搬去了成都 => 王芳住在重庆 => UPDATE 1
王芳换了新工作，在华为上班 => 王芳在中兴上班 => UPDATE 1
王芳的女儿叫小雨 => 王芳的儿子叫小雨 => ADD
王芳的体重是55公斤 => 王芳的体重是58公斤 => UPDATE 1
王芳爱吃辣 => 王芳不爱吃辣 => UPDATE 1
王芳爱吃辣 => 王芳爱吃甜 => ADD
王芳戒烟了 => 王芳抽烟 => UPDATE 1
王芳已经不在华为工作了 => 王芳在华为工作 => DELETE 1
王芳的丈夫是律师 => 王芳是律师 => ADD
王芳升职为总监 => 王芳是经理 => UPDATE 1
会议改到周五下午 => 会议在周四下午 => UPDATE 1
王芳每周三去健身房 => 王芳每周五去健身房 => ADD
王芳的车牌号是川A12345 => 王芳的车牌号是川A54321 => UPDATE 1
~王芳养了一只猫 => 王芳养了一只狗 => NONE
~王芳对猫过敏 => 王芳对猫过敏 => DELETE 1
王芳会说法语 => 王芳会说德语 => ADD
王芳喜欢看电影 => 王芳特别喜欢看电影 => NONE 1
王芳不想去日本了 => 王芳想去日本 => DELETE 1
王芳最喜欢的歌手是周杰伦 => 王芳最喜欢的演员是周杰伦 => ADD
王芳的航班是CA1234 => 王芳的航班是CA1235 => UPDATE 1
王芳买了一辆车 => 王芳买了一套房 => ADD
王芳怀孕了 => 王芳结婚了 => ADD
王芳在学钢琴 => 王芳在学画画 => ADD
王芳的老家是四川成都 => 王芳的老家是成都 => UPDATE 1
王芳左手骨折了 => 王芳右手骨折了 => ADD
"""


def cases(table: str) -> list[tuple[str, list[str], str, str | None]]:
    rows = []
    for line in table.strip().splitlines():
        fact, items, wanted = (part.strip() for part in line.split("=>"))
        op, _, number = wanted.partition(" ")
        rows.append(
            (fact, [i.strip() for i in items.split(" ; ") if i.strip()], op, number or None)
        )
    return rows


def remembered(*texts: str) -> list[MemoryItem]:
    scope = Scope(user_id="u")
    return [MemoryItem(str(n), text, scope, NOW, NOW) for n, text in enumerate(texts, 1)]


def decided(fact: str, items: list[str]) -> tuple[str, str | None]:
    retracts = fact.startswith("~")
    decision = decide_by_rules(
        Fact(fact.removeprefix("~"), ("t1",), retracts=retracts),
        remembered(*items),
    )
    assert decision.reason.endswith((".", "。", "!")) or decision.reason
    return decision.op.kind.value, decision.op.item_id


@pytest.mark.parametrize(("fact", "items", "op", "number"), cases(ENGLISH) + cases(CHINESE))
def test_the_tables(fact: str, items: list[str], op: str, number: str | None) -> None:
    assert decided(fact, items) == (op, number)


@pytest.mark.parametrize("line", TAKEN_OUT.strip().splitlines())
def test_only_what_is_meant_is_taken_out(line: str) -> None:
    fact, item, wanted = (part.strip() for part in line.split("=>"))
    told = Fact(fact.removeprefix("~"), (), retracts=True)
    assert decide_by_rules(told, remembered(item)).op.text == wanted


def test_the_tables_are_large_enough() -> None:
    assert len(cases(ENGLISH)) >= 60
    assert len(cases(CHINESE)) >= 60


def test_the_held_out_table_shows_the_honest_accuracy() -> None:
    table = cases(HELD_OUT)
    right = sum(decided(fact, items) == (op, number) for fact, items, op, number in table)
    assert len(table) >= 50
    assert right / len(table) >= 0.8


NAMES = st.sampled_from(["Alice", "Bob", "Carol", "张三", "李四"])


@given(st.integers(0, 999), st.integers(0, 999), NAMES)
def test_texts_that_differ_in_a_number_are_never_duplicates(a: int, b: int, name: str) -> None:
    for form in ("{} paid {} dollars for the lamp", "{}花了{}元买灯"):
        op, _ = decided(form.format(name, a), [form.format(name, b)])
        assert (op == "NONE") == (a == b)


@given(NAMES, NAMES)
def test_texts_that_differ_in_a_name_are_never_duplicates(first: str, second: str) -> None:
    op, _ = decided(f"{first} paid for the lamp", [f"{second} paid for the lamp"])
    assert (op == "NONE") == (first == second)


TEXTS = st.text(min_size=1, max_size=60).filter(str.strip)


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.lists(TEXTS, max_size=4), st.booleans())
def test_every_decision_is_whole(text: str, items: list[str], retracts: bool) -> None:
    """Any text: an operation that names a related item if it names one, always the same."""
    fact = Fact(text, (), retracts=retracts)
    decision = decide_by_rules(fact, remembered(*items))
    assert decision == decide_by_rules(fact, remembered(*items))
    assert decision.op.item_id is None or int(decision.op.item_id) <= len(items)
    assert (
        decision.op.kind is not OpKind.UPDATE
        or retracts
        or (text.strip(" .!。！") in (decision.op.text or ""))
    )
    assert not retracts or decision.op.kind is not OpKind.ADD


def test_what_was_true_before_does_not_replace_what_is_true_now() -> None:
    related = [MemoryItem("1", "Alice lives in Chicago", Scope("u"), NOW, NOW, valid_from=NOW)]
    early, late = datetime(2015, 1, 1), datetime(2025, 1, 1)
    decide = decide_by_rules
    assert decide(Fact("Alice moved to Boston", (), valid_from=early), related).op.kind == "ADD"
    assert decide(Fact("Alice moved to Boston", (), valid_from=late), related).op.kind == "UPDATE"


@pytest.mark.parametrize(
    ("happened", "told", "operation"),
    [
        (datetime(2024, 5, 6), datetime(2024, 5, 7), "UPDATE"),  # "moved yesterday"
        (datetime(2024, 4, 20), datetime(2024, 5, 8), "UPDATE"),
        (datetime(1999, 1, 1), datetime(2024, 5, 8), "ADD"),  # tells of old times
        (datetime(2024, 5, 6), datetime(2024, 5, 6), "ADD"),  # told before the other was
    ],
)
def test_what_is_told_later_is_news(happened: datetime, told: datetime, operation: str) -> None:
    since = datetime(2024, 5, 7, tzinfo=UTC)
    known = MemoryItem("1", "Alice lives in Boston", Scope("u"), NOW, NOW, valid_from=since)
    fact = Fact("Alice moved to Denver", (), valid_from=happened, told_at=told)
    assert decide_by_rules(fact, [known]).op.kind == operation
