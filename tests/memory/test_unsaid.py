"""A request to forget takes facts of its own message, but only those that it means."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memograd import Memory
from memograd.memory.manager.left_over import of_whom_all_goes

WHEN = "2024-05-07T18:30:00+00:00"


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder = tmp_path_factory.mktemp("memory")
    with Memory.open(folder, reader="trained", manager="trained", env_file=None) as opened:
        yield opened


def told(memory: Memory, *messages: str) -> list[str]:
    """All items of somebody who said these messages."""
    user = " ".join(messages)
    for message in messages:
        memory.add(message, user_id=user, timestamp=WHEN)
    return [one["memory"] for one in memory.get_all(user_id=user)["results"]]


def test_what_is_unsaid_in_the_same_message_is_not_kept(memory: Memory) -> None:
    said = (
        "I make 2,950 a month and I rent a flat in Bruges. Hm, second thoughts, unsay the salary."
    )
    assert told(memory, said) == ["User rents a flat in Bruges."]


def test_what_is_not_to_be_noted_is_told_in_its_own_sentence(memory: Memory) -> None:
    said = "My name is Olive and I am 83. I fell in the bath on Sunday, but do not note that down."
    items = told(memory, said)
    assert any("83" in text for text in items) and not any("bath" in text for text in items)


def test_another_matter_behind_what_is_not_to_be_saved_is_kept(memory: Memory) -> None:
    items = told(memory, "我上周确诊了抑郁症。这个不要存！对了我下周三体检，得空腹")
    assert any("体检" in text for text in items) and not any("抑郁" in text for text in items)


def test_that_one_is_the_one_that_stands_before_it(memory: Memory) -> None:
    items = told(
        memory,
        "My wife Ada sells cloth in Enugu. Her mother has sickle cell trait.",
        "I should not share her mother's health matters. Delete that one.",
    )
    assert any("Enugu" in text for text in items) and not any("sickle" in text for text in items)


def test_a_request_that_names_two_things_means_both(memory: Memory) -> None:
    items = told(
        memory, "我离过一次婚。现在在超市当收银员。月薪三千八。", "离婚和工资这两样都忘了吧"
    )
    assert items == ["用户说：现在在超市当收银员。"]


def test_all_of_somebody_goes_with_the_name(memory: Memory) -> None:
    items = told(memory, "前任叫许嘉，还欠我八千块", "我养了俩仓鼠", "许嘉这人的事全给我抹掉")
    assert items == ["用户养了俩仓鼠。"]


def test_all_of_somebody_goes_in_english_too(memory: Memory) -> None:
    said = "my ex Damian lives in Ghent and plays the sax. I play drums"
    assert told(memory, said, "remove Damian from your memory. every trace.") == [
        "User plays drums."
    ]


def test_a_day_that_is_put_right_has_its_date(memory: Memory) -> None:
    items = told(
        memory, "booked us a table at Enzo for Friday, 8pm", "not friday, saturday. 8pm is right"
    )
    assert items == ["Booked User and others a table at Enzo for Saturday 11 May 2024, 8pm."]


def test_what_was_said_about_somebody_points_at_no_other_thing(memory: Memory) -> None:
    items = told(
        memory,
        "My ex Colin lives two streets away.",
        "I've started pottery on Tuesdays, it's lovely",
        "Could you delete what I said about my ex? I don't want him in here.",
    )
    assert items == ["User has started pottery on Tuesdays, it's lovely."]


def test_the_next_bit_is_not_what_stands_before(memory: Memory) -> None:
    said = "I live in Ghent with Sofie. Don't store this next bit but I failed my driving test."
    assert told(memory, said) == ["User lives in Ghent with Sofie."]


def test_the_last_one_is_the_last_one(memory: Memory) -> None:
    items = told(
        memory,
        "I play bass in a ska band",
        "I think I'm falling for the drummer",
        "omg forget that last one",
    )
    assert items == ["User plays bass in a ska band."]


def test_an_address_loses_no_number_beside_a_phone_number(memory: Memory) -> None:
    items = told(
        memory,
        "my address is 8 Orchard Close and my name's Maureen",
        "Please remove my address and my phone number. You may keep the name.",
    )
    assert items == ["User's name's Maureen."]


def test_a_sum_goes_and_the_employer_stays(memory: Memory) -> None:
    items = told(memory, "im on 31k a year at the council", "don't keep the salary one pls")
    assert len(items) == 1 and "council" in items[0] and "31" not in items[0]


def test_of_a_sum_nothing_half_is_left(memory: Memory) -> None:
    assert told(memory, "I pay 900 a month for a flat in Leeds", "forget how much I pay") == []
    items = told(memory, "月薪一万二，在华为上班", "工资别记")
    assert items == ["用户说：在华为上班。"]


def test_a_treat_is_nobody(memory: Memory) -> None:
    assert told(memory, "as a treat what should I get my dog Rex?") == []


@pytest.mark.parametrize(
    ("fact", "between", "remark", "value"),
    [
        (
            "I'm from Grimsby originally",
            "fish pie topping, mash or pastry?",
            "Mash. Right.",
            "Grimsby",
        ),
        ("bedtime is 9 for me on school nights", "", "is that early for 13", "9"),
        (
            "My dog's called Biscuit",
            "",
            "who calls a dog Biscuit honestly, i wanted Rex",
            "Biscuit",
        ),
        (
            "im learning welsh, day 40",
            "",
            "welsh is mad. maybe i shouldve picked spanish",
            "welsh",
        ),
        ("i make 31k at the mill", "is that bad", "yikes", "makes 31k"),
    ],
)
def test_a_remark_puts_no_value_in_place(
    memory: Memory, fact: str, between: str, remark: str, value: str
) -> None:
    items = told(memory, *(one for one in (fact, between, remark) if one))
    assert any(value in text for text in items)


def test_an_answer_corrects_nothing_that_was_told_before(memory: Memory) -> None:
    memory.add("我想报个旅行团", user_id="tour", timestamp=WHEN)
    asked = {"role": "assistant", "content": "您是去桂林还是去张家界?"}
    memory.add([asked, {"role": "user", "content": "张家界吧"}], user_id="tour", timestamp=WHEN)
    items = [one["memory"] for one in memory.get_all(user_id="tour")["results"]]
    assert any("旅行团" in text for text in items)


def test_a_joke_is_about_what_was_said_last(memory: Memory) -> None:
    assert told(memory, "I have a dog called Rex", "haha just kidding") == []
    items = told(memory, "I have a cat called Tiger", "whats 2+2", "5? haha just kidding")
    assert items == ["User has a cat called Tiger."]


def test_a_typo_is_put_right_after_small_talk(memory: Memory) -> None:
    items = told(memory, "my house number is 117", "nice day", "oh, 171, I typed it backwards")
    assert any("171" in text for text in items) and not any("is 117" in text for text in items)


def test_all_of_what_is_somebody_s_is_not_all_of_them() -> None:
    ann, leo = "User's cousin Ann is a notary.", "User's son Leo is 9."
    assert of_whom_all_goes("Delete everything you have about Ann", ann)
    assert of_whom_all_goes("forget everything about my son", leo)
    assert not of_whom_all_goes("Delete everything you have about Ann's wedding", ann)
    assert not of_whom_all_goes("forget everything about my son's school", leo)
    assert not of_whom_all_goes("forget everything about work, Ann agrees", ann)


@pytest.mark.parametrize("said", ["Leo died laughing at dinner", "Leo died again on level 3"])
def test_who_dies_laughing_lives(memory: Memory, said: str) -> None:
    items = told(memory, "I have a brother named Leo", said)
    assert any(text.startswith("User has a brother named Leo") for text in items)
    assert not any("until" in text for text in items)


def test_a_clause_without_a_subject_is_of_the_relative_before_it(memory: Memory) -> None:
    items = told(memory, "我爸68,前年放了两个心脏支架,我自己45,单位体检就查出个脂肪肝")
    assert "用户的爸2022年放了两个心脏支架。" in items
    assert any("脂肪肝" in text and "爸" not in text for text in items)


def test_everything_about_a_relative_goes(memory: Memory) -> None:
    items = told(
        memory,
        "My cousin Marguerite is a notary in Lyon",
        "she owes me 900 euros, Marguerite does",
        "Delete everything you have about my cousin. We don't speak.",
    )
    assert items == []


def test_what_was_just_said_as_if_it_had_not_been(memory: Memory) -> None:
    items = told(
        memory,
        "我在常州做电池工艺工程师",
        "下周要偷偷去宁德时代面试",
        "刚说的这句当我没讲,忘掉",
    )
    assert items == ["用户在常州做电池工艺工程师。"]


def test_what_is_somebody_else_s_replaces_nothing(memory: Memory) -> None:
    items = told(memory, "my birthday is 14 october", "Lena's is 2 november, same sign as me?")
    assert "User's birthday is 14 october." in items


def test_how_many_there_are_is_no_other_age(memory: Memory) -> None:
    items = told(memory, "my kids are twins turning 6", "two girls, they'd love a party")
    assert any("turning 6" in text for text in items)


def test_who_is_called_by_name_has_died(memory: Memory) -> None:
    items = told(memory, "I have a budgie called Captain", "Captain passed away in the night.")
    assert not any(text == "User has a budgie called Captain." for text in items)


def test_who_asks_is_told_in_a_question(memory: Memory) -> None:
    assert told(memory, "As a diabetic, what should I eat?") == ["User is a diabetic."]
    asked = "as a long distance lorry driver whats the healthiest thing at a petrol station"
    assert told(memory, asked) == ["User is a long distance lorry driver."]
    assert told(memory, "convert my height 5ft4 to cm pls") == ["User's height 5ft4."]


def test_whether_something_is_true_takes_nothing_back(memory: Memory) -> None:
    items = told(memory, "我对芒果过敏，嘴会肿", "刷到个视频说过敏能脱敏治好，真的假的？")
    assert any("芒果" in text for text in items)


def test_who_is_told_of_takes_no_value_s_place(memory: Memory) -> None:
    said = "Declan, thats my brother, is settled in Perth and wont stop sending pics"
    items = told(memory, "I live in Cork, never left and never will", said)
    assert any("Cork" in text for text in items) and not any("in Declan" in text for text in items)


def test_a_denied_value_says_which_is_right(memory: Memory) -> None:
    items = told(memory, "Our boiler is from 2009", "2019 not 2009. and yeah the gauge says 0.6")
    assert any("2019" in text for text in items) and not any("from 0.6" in text for text in items)


def test_what_was_said_before_is_meant_where_the_request_says_so(memory: Memory) -> None:
    said = "I'm 44 and I have a parrot. Forget what I said about my boss."
    items = told(memory, "My boss is Gus and I work nights.", said)
    assert sorted(items) == ["User has a parrot.", "User is 44.", "User works nights."]


def test_a_break_up_asks_for_nothing(memory: Memory) -> None:
    items = told(memory, "跟女朋友住一起,她叫佳宁", "分了。别问。")
    assert any("佳宁" in text for text in items)


def test_what_is_void_is_not_asked_to_be_forgotten(memory: Memory) -> None:
    items = told(memory, "我有驾照,C1的", "我的驾照作废了,过期没换")
    assert any("C1" in text for text in items)


def test_a_code_this_morning_is_no_secret(memory: Memory) -> None:
    items = told(memory, "used my PAC code this morning and as of today I'm on giffgaff")
    assert any("giffgaff" in text for text in items)


def test_what_a_tool_answered_is_no_memory(memory: Memory) -> None:
    def talk(user: str, answer: str) -> list[str]:
        memory.add(
            [
                {"role": "user", "content": "is the ferry to Waiheke running"},
                {"role": "tool", "content": '{"route": "AKL-WHK", "next": "14:15"}'},
                {"role": "assistant", "content": answer},
            ],
            user_id=user,
            timestamp=WHEN,
        )
        return [one["memory"] for one in memory.get_all(user_id=user)["results"]]

    assert talk("asks", "The next ferry is delayed to 14:15, with a 1.8 m swell.") == []
    booked = talk("books", "I booked you on the ferry at 14:15 on Friday.")
    assert any("14:15" in text for text in booked)


def test_an_aside_in_parentheses_is_kept(memory: Memory) -> None:
    said = "proofread this please (I'm the school secretary in Otley) before I send it out"
    assert any("secretary" in text for text in told(memory, said))


def test_one_value_corrects_one_item(memory: Memory) -> None:
    items = told(memory, "I'm 5ft 3 and 81 kg, and I'm 46 and tired.", "*71 kg, fat fingers")
    assert any("71 kg" in text for text in items) and any("46" in text for text in items)
    assert not any("81" in text for text in items)


def test_a_member_of_a_list_ends_and_the_others_stay(memory: Memory) -> None:
    items = told(memory, "I'm subscribed to Netflix, Crave and Hulu.", "ok cancelled Crave")
    assert any(text.startswith("User is subscribed to Netflix and Hulu") for text in items)


def test_what_is_added_takes_nothing_back(memory: Memory) -> None:
    items = told(memory, "给我写代码一律用Python", "再加一条：注释写中文，变量名别用拼音")
    assert any("Python" in text for text in items) and any("拼音" in text for text in items)


def test_what_is_not_to_be_forgotten_stays(memory: Memory) -> None:
    told_ = "正找律师谈离婚。另外帮我排日程：孩子牙套每月16号复诊"
    items = told(memory, told_, "离不离还两说呢，这个你先别记了，清掉；复诊那个别忘。")
    assert any("复诊" in text for text in items)


def test_the_first_of_what_was_asked_is_no_value(memory: Memory) -> None:
    memory.add(
        [
            {"role": "user", "content": "I want a present for my mam's 70th"},
            {"role": "assistant", "content": "Any hobbies, for example knitting or chess?"},
            {"role": "user", "content": "the first, all day long"},
        ],
        user_id="present",
        timestamp=WHEN,
    )
    items = [one["memory"] for one in memory.get_all(user_id="present")["results"]]
    assert any("70th" in text for text in items) and any("knitting" in text for text in items)
