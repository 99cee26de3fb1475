"""Every typical form of a statement, and how two texts agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.memory.language import language_of
from memograd.memory.statements import parse_statement, same_text, wording
from memograd.memory.statements.statement import SINGLE_VALUED

# text | subject | slot | value, with a minus before the slot of what is denied
FORMS = """
Alice lives in Boston. | Alice | residence | Boston
Alice has moved from Rome to New York in May 2023. | Alice | residence | New York
Alice is based in Oslo now | Alice | residence | Oslo
Alice no longer lives in Boston | Alice | -residence | Boston
Alice works at Google as an engineer | Alice | employer | Google
Alice got a new job at Bosch | Alice | employer | Bosch
Alice works as a nurse | Alice | job | nurse
Alice is a software engineer. | Alice | job | software engineer
Alice's dog is called Rex | Alice's dog | name | Rex
Alice's name is Alice Smith | Alice | name | Alice Smith
Alice's favourite food is sushi | Alice | favourite food | sushi
Alice's favorite color is blue | Alice | favourite color | blue
Alice is allergic to peanuts | Alice | allergy | peanuts
Alice has a peanut allergy | Alice | allergy | peanut
Alice is 34 years old | Alice | age | 34
Alice turned 35 | Alice | age | 35
Alice's birthday is on 3 May | Alice | birthday | 3 May
Alice is married to Bob | Alice | marital status | married
Alice is vegan | Alice | diet | vegan
Alice's phone number is 555-1234 | Alice | phone | 555-1234
Alice really likes tea | Alice | likes | tea
Alice loves hiking | Alice | likes | hiking
Alice hates olives | Alice | -likes | olives
Alice doesn't like tea | Alice | -likes | tea
Alice prefers tea | Alice | prefers | tea
Alice has two cats | Alice | has | two cats
Alice has no car | Alice | -has | car
Alice visited Rome | Alice | visited | Rome
Alice works as a midwife and the days fly by | Alice | job | midwife
Alice did it, Alice moved to Geneva | Alice | residence | Geneva
Alice lives in Boston, Massachusetts | Alice | residence | Boston, Massachusetts
Alice comes from Sweden | Alice | hometown | Sweden
Alice moved to Brisbane on 19 January 2024, and Alice can't sleep | Alice | residence | Brisbane
Alice lives in Boston with her cat | Alice | residence | Boston
Alice works as a nurse at St Mary | Alice | job | nurse
Alice is dating Tom | Alice | partner | Tom
Alice broke up with Tom | Alice | -partner | Tom
Alice quit their job at Bosch | Alice | -employer | Bosch
Alice gave up smoking | Alice | -habit | smoking
Alice switched from tea to coffee | Alice | * | coffee
Alice switched instruments! Alice had their first oboe lesson | Alice | plays | oboe
Alice has a new favorite food! Alice tried tacos | Alice | favourite food | tacos
Alice renamed their cat Momo | Alice's cat | name | Momo
The meeting with Bob was moved to Friday | meeting with Bob | date | Friday
Alice cancelled their trip to Rome | Alice | -plan | trip to Rome
张三从腾讯辞职了 | 张三 | -employer | 腾讯
张三和李四分手了 | 张三 | -partner | 李四
张三戒烟了 | 张三 | -habit | 烟
会议改到周五下午 | 会议 | date | 周五下午
张三取消了旅行 | 张三 | -plan | 旅行
Alice's boss is Carol | Alice | attribute:boss | Carol
张三住在北京。 | 张三 | residence | 北京
张三搬到了上海 | 张三 | residence | 上海
张三现在住在成都 | 张三 | residence | 成都
张三不住在北京了 | 张三 | -residence | 北京
张三在腾讯上班 | 张三 | employer | 腾讯
张三在北京上班，挺远的 | 张三 | workplace | 北京
张三是医生 | 张三 | job | 医生
张三是个程序员。 | 张三 | job | 程序员
张三的职业是会计 | 张三 | job | 会计
张三今年35岁 | 张三 | age | 35
用户的上司2024年44岁 | 用户的上司 | age | 44
张三的生日是5月3日 | 张三 | birthday | 5月3日
张三的狗叫旺财 | 张三的狗 | name | 旺财
张三的电话是13800001111 | 张三 | phone | 13800001111
张三的电话改成了13800001111 | 张三 | phone | 13800001111
张三的邮箱地址是a@x.cn | 张三 | email | a@x.cn
张三喜欢咖啡 | 张三 | likes | 咖啡
张三特别爱书法 | 张三 | likes | 书法
张三不喜欢咖啡 | 张三 | -likes | 咖啡
张三讨厌香菜 | 张三 | -likes | 香菜
张三不再喜欢咖啡 | 张三 | -likes | 咖啡
张三最喜欢的颜色是蓝色 | 张三 | favourite 颜色 | 蓝色
张三对花生过敏 | 张三 | allergy | 花生
张三对花生不过敏 | 张三 | -allergy | 花生
张三结婚了 | 张三 | marital status | 结婚
张三有两只猫 | 张三 | has | 两只猫
张三去过巴黎 | 张三 | visited | 巴黎
张三来自四川 | 张三 | hometown | 四川
张三是上海人 | 张三 | hometown | 上海
论坛的规模是三千人 | 论坛 | attribute:规模 | 三千人
王丽是张三的同事，其生日是03月20日 | 王丽 | birthday | 03月20日
张三身高176cm | 张三 | height | 176cm
"""

NOT_UNDERSTOOD = [
    "", "   ", "Alice is so happy", "It is 5 years old", "She lives in Rome", "Hello there",
    "Losing Alice's job was hard",
    "What a lovely day it was at the lake", "它住在北京", "今天天气不错", "你喜欢咖啡",
]  # fmt: skip


@pytest.mark.parametrize("line", FORMS.strip().splitlines())
def test_the_typical_forms(line: str) -> None:
    text, subject, slot, value = (part.strip() for part in line.split("|"))
    statement = parse_statement(text)
    assert statement is not None
    assert (statement.subject, statement.slot, statement.value) == (subject, slot.strip("-"), value)
    assert statement.positive != slot.startswith("-")


@pytest.mark.parametrize("text", NOT_UNDERSTOOD)
def test_what_fits_no_form_is_not_guessed(text: str) -> None:
    assert parse_statement(text) is None


@given(st.text(max_size=120))
def test_any_text_is_parsed_without_an_exception(text: str) -> None:
    statement = parse_statement(text)
    assert statement is None or (statement.subject and statement.value)


def test_ended_tells_no_longer_from_not() -> None:
    for text, ended in (
        ("Alice no longer likes tea", True),
        ("Alice doesn't like tea any more", True),
        ("Alice doesn't like tea", False),
        ("张三不再喜欢茶", True),
        ("张三不喜欢茶", False),
    ):
        statement = parse_statement(text)
        assert statement is not None and statement.ended is ended


def test_single_valued_slots() -> None:
    def single(text: str) -> bool:
        statement = parse_statement(text)
        assert statement is not None
        return statement.single_valued

    assert all(map(single, ["Ann lives in Rome", "Ann's favourite tea is oolong", "张三35岁"]))
    assert not any(map(single, ["Ann likes tea", "Ann's friend is Bob", "张三的朋友是李四"]))
    parsed = {
        s.slot for line in FORMS.strip().splitlines() if (s := parse_statement(line.split("|")[0]))
    }
    assert len(parsed & SINGLE_VALUED) >= 12


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("我用的手机是华为Mate60", "zh"),
        ("我喜欢iPhone 13 Pro Max", "zh"),
        ("喜欢 Pro Max", "zh"),
        ("I learned the word 你好 today", "en"),
        ("hello", "en"),
        ("", "en"),
    ],
)
def test_language(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("Alice likes tea.", "alice likes the tea", True),
        ("Alice likes tea", "Alice likes  TEA!", True),
        ("Alice paid 4.5 dollars", "Alice paid 45 dollars", False),
        ("Alice codes in C", "Alice codes in C++", False),
        ("Alice can swim", "Alice cannot swim", False),
        ("Bob bit the dog", "The dog bit Bob", False),
        ("张三喜欢茶。", "张三很喜欢茶", True),
        ("张三会游泳", "张三不会游泳", False),
        ("狗咬了张三", "张三咬了狗", False),
        ("张三有2只猫", "张三有3只猫", False),
    ],
)
def test_same_text(first: str, second: str, same: bool) -> None:
    assert same_text(first, second) is same
    assert same_text(second, first) is same


@given(st.text(max_size=80))
def test_a_text_is_the_same_as_itself(text: str) -> None:
    assert same_text(text, text)
    assert wording(text) == wording(text)
