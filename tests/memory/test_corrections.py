"""Where the value of a correction goes, what is no value, and what a request to forget leaves."""

from datetime import date

import pytest

from memograd import Memory
from memograd.memory.manager.past import left_of, parts_of
from memograd.memory.manager.substitution import bare_value, corrected, put_in_place
from memograd.memory.reader.dates_chinese import resolve_chinese

WHEN = "2024-05-07T18:30:00+00:00"


@pytest.mark.parametrize(
    ("old", "message", "new"),
    [
        ("User's flight is at 6.20.", "7.20, not 6.20", "User's flight is at 7.20."),
        ("User married in 1969.", "Joan says 1968, so 1968.", "User married in 1968."),
        ("12 megs down and 3 up.", "it's 30 up. 12 down is right", "12 megs down and 30 up."),
        ("The alarm is 8am.", "*pm", "The alarm is 8pm."),
        ("Class is Mondays in B12.", "i wrote Monday? it's Tuesdays", "Class is Tuesdays in B12."),
        ("Write to a.b@gmial.com.", "a.b@gmail.com of course", "Write to a.b@gmail.com."),
        ("User takes it twice a day.", "once a day, sorry", "User takes it once a day."),
        ("用户的闺蜜在厦门开民宿。", "厦门❌ 福州✅", "用户的闺蜜在福州开民宿。"),
        ("用户的妈生日是农历三月初八。", "记岔了,初六", "用户的妈生日是农历三月初六。"),
        ("用户养了三百只鸭。", "少敲一个零,三千!三百只我喝西北风去?", "用户养了三千只鸭。"),
        ("用户周二下午两点复查。", "周二两点照旧哈", None),
        ("用户周二下午两点复查。", "周二三点,看错了", "用户周二三点复查。"),
        ("User's daughter lives in Perth.", "the Australian one, not the Scottish one", None),
        ("Luca is User's cousin.", "Brother! In Italian I confuse nothing", None),
    ],
)
def test_a_value_goes_where_it_belongs_or_nowhere(old, message, new):
    assert corrected(old, message) == new


@pytest.mark.parametrize(
    ("message", "value"),
    [
        ("correction from the wife, it's TEAL", None),
        ("the Australian one, so two flights", None),
        ("STANSTED omg. imagine", "STANSTED"),
        ("my left, silly me", "left"),
        ("嘴瓢,是浙江工商,动画没说错", "浙江工商"),
        ("打錯,我住中和", None),
        ("帕梅拉是魔鬼吧 跳完人没了", None),
    ],
)
def test_what_is_a_value(message, value):
    assert bare_value(message) == value


def test_a_title_does_not_end_a_part_and_a_clause_gets_no_verb():
    assert len(parts_of("User's boss Mr. Okada drinks too much.")) == 1
    [pig, cow] = [part for part, _ in parts_of("User and others have a pig and a cow.")]
    assert (pig, cow) == ("User and others have a pig", "a cow")
    item = "用户有抑郁症,在吃舍曲林,养了条金毛。"
    assert left_of(item, parts_of(item), [2]) == "用户养了条金毛。"


def test_a_date_takes_no_place_of_a_word():
    def alike(value, others):
        return [0.9] * len(others)

    assert put_in_place("User is allergic to peanuts.", "I mean May 9th", alike) is None
    assert put_in_place("User likes tiramisu.", "actually no, panna cotta", alike) is not None


def test_a_lunar_day_is_not_the_beginning_of_a_month():
    day = date(2024, 5, 7)
    assert resolve_chinese("妈妈生日是三月初八", day).text == "妈妈生日是三月初八"
    assert resolve_chinese("月初搬家", day).text == "2024年5月初搬家"


@pytest.mark.parametrize(
    ("said", "kept", "gone"),
    [
        (["wifi密码是happy8866,家里路由器是华硕的"], "华硕", "happy8866"),
        (
            ["I'm a GP in Stirling. Not for your notes: I see a therapist"],
            "Stirling",
            "therapist",
        ),
        (
            ["My daughter lives in Perth", "the Australian one, not the Scottish one"],
            "Perth",
            None,
        ),
        (["身份证尾号7713,家里养了仨乌龟", "身份证那个抹掉,乌龟无所谓"], "乌龟", "7713"),
        (
            ["I have a cat and I live in Rome", "forget where I live, the cat can stay"],
            "cat",
            "Rome",
        ),
    ],
)
def test_only_what_is_meant_goes(tmp_path, said, kept, gone):
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        for text in said:
            memory.add(text, user_id="ann", timestamp=WHEN)
        items = "\n".join(one["memory"] for one in memory.get_all(user_id="ann")["results"])
    assert kept in items and (gone is None or gone not in items)


def test_who_goes_on_about_a_value_keeps_it(tmp_path):
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        memory.add("Our family is staying at Iloilo, in my lola's ancestral house", user_id="ann")
        memory.add(
            "Everyone says Manila is where opportunity is. But the traffic and pollution hay naku."
            " Iloilo is boring but the air is clean.",
            user_id="ann",
        )
        told = " ".join(one["memory"] for one in memory.get_all(user_id="ann")["results"])
    assert "staying at Iloilo" in told
