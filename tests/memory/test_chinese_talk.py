"""Chinese as people chat: requests around facts, pasted notices, dreams, lists in a line, what
explains a character, and remarks that must not harm what is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from memograd.memory import Memory, RawTurn
from memograd.memory.manager.cues import leaves_alone, without_explained
from memograd.memory.manager.fitted import put
from memograd.memory.reader.about import person_meant
from memograd.memory.reader.asked import speaks_to_nobody
from memograd.memory.reader.dates_chinese import resolve_chinese
from memograd.memory.reader.fact import Heard
from memograd.memory.reader.idle import is_idle
from memograd.memory.reader.parts import own_sentences, question_before
from memograd.memory.reader.screen_chinese import without_asking
from memograd.memory.reader.sentences import foreign, split_sentences
from memograd.memory.reader.setting import Setting
from memograd.memory.reader.wording import say, say_assistant
from memograd.memory.records.scope import Scope
from memograd.memory.relations.model import SHIPPED

TIME = datetime(2024, 5, 7, tzinfo=UTC)
needs_model = pytest.mark.skipif(
    not SHIPPED.is_file(), reason="the relation model's weights are not in this copy"
)


def setting(text: str = "") -> Setting:
    return Setting(RawTurn("t", "user", text, TIME, 1), ("user",), True, None, "")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("我下月去喀什，住三晚，帮我列个行李单", "我下月去喀什，住三晚"),
        ("租的单间 押一付三 月租2800 你觉得值吗", "租的单间 押一付三 月租2800"),
        ("你帮我排个菜单 我每顿饭只有半小时做", "我每顿饭只有半小时做"),
        ("我跟亲戚说我升了经理 其实没有 你可别笑", "我跟亲戚说我升了经理 其实没有"),
        ("下个月考雅思，每天能学两小时，给个计划", "下个月考雅思，每天能学两小时"),
        # A question says what the rest is about, so it stays.
        ("孩子有点过敏性鼻炎，要不要忌口", "孩子有点过敏性鼻炎，要不要忌口"),
        ("我做夜班护士，锻炼放什么时间好", "我做夜班护士，锻炼放什么时间好"),
        (
            "带爸妈去三亚，帮我挑个酒店吧？娃一晒就起疹子",
            "带爸妈去三亚，帮我挑个酒店吧？娃一晒就起疹子",
        ),
        # So does what tells something, or only looks as if it asked.
        ("新同事人真好，帮我改了三遍稿子", "新同事人真好，帮我改了三遍稿子"),
        ("最近总熬夜，脸上冒痘，出点油", "最近总熬夜，脸上冒痘，出点油"),
        ("新来的徒弟挺勤快，就是什么都不懂", "新来的徒弟挺勤快，就是什么都不懂"),
        ("我血压高，我能不能喝浓茶", "我血压高，我能不能喝浓茶"),
        ("我老伴帮我买了菜，她帮我做饭", "我老伴帮我买了菜，她帮我做饭"),
        ("我老公问过医生，医生说不能喝酒", "我老公问过医生，医生说不能喝酒"),
        ("能喝咖啡吗，能喝茶吗", "能喝咖啡吗，能喝茶吗"),
        ("女儿四月要去广州比赛，陪她几天", "女儿四月要去广州比赛，陪她几天"),
        ("家里冰箱空了，没什么吃的", "家里冰箱空了，没什么吃的"),
    ],
)
def test_what_only_asks_is_left_off(said: str, told: str) -> None:
    assert without_asking(said) == told


@pytest.mark.parametrize(
    ("said", "worded"),
    [
        ("还有我血糖降到5.8了", "用户血糖降到5.8了。"),
        ("你帮我记着：我每月10号要去复诊", "用户每月10号要去复诊。"),
        ("嗯 我改名了", "用户改名了。"),
        ("还有三天我就考试了", "还有三天用户就考试了。"),
        ("我表姐在珠海上班呢", "用户的表姐在珠海上班。"),
        ("我就是不想去嘛", "用户就是不想去。"),
        ("我女儿叫乐嘛", "用户的女儿叫乐嘛。"),
        ("下午要带我爸去拔牙", "2024年5月7日下午要带用户的爸去拔牙。"),
        ("晚上要看会儿书才能睡着", "用户说：晚上要看会儿书才能睡着。"),
        ("我每天上午上课，下午要去打工", "用户每天上午上课，下午要去打工。"),
    ],
)
def test_words_that_only_lead_in_are_left_off(said: str, worded: str) -> None:
    assert say(said, setting(said)).text == worded


@pytest.mark.parametrize(
    ("sentence", "before", "before_that", "meant"),
    [
        ("她下月开刀", "她六十三了，爱打太极", "我婆婆膝盖不好", "我婆婆"),
        ("大夫叫他戒酒", "", "", None),
        ("大夫叫他戒酒", "我舅舅肝不好", "", "我舅舅"),
        ("上个月他升了店长", "我表弟在奶茶店上班", "", "我表弟"),
        ("她下月开刀", "她六十三了", "我婆婆和我姨妈都膝盖不好", None),
        ("他要去爬山", "师傅来过了。还有东东今年上小学", "", None),
    ],
)
def test_a_pronoun_is_followed_over_two_messages(
    sentence: str, before: str, before_that: str, meant: str | None
) -> None:
    assert person_meant(sentence, "", before, before_that) == meant


def test_the_points_of_a_list_in_one_line_stay_together() -> None:
    said = "可以带：1. 蟹粉小笼 2. 鲜肉月饼 3. 青团。"
    assert split_sentences(said) == [said]
    assert say_assistant("1. 蟹粉小笼 2. 鲜肉月饼", setting()).text == (
        "助手说：蟹粉小笼；鲜肉月饼。"
    )
    assert split_sentences("我考了 3. 他考了5.") == ["我考了 3. 他考了5."]


@pytest.mark.parametrize(
    "pasted",
    [
        "【新华社快讯】国家卫健委公布新版医保目录，91种药品降价",
        "【中国铁路12306】G1024次列车已改为08:15开车，请留意",
        "【省教育厅】高考成绩6月25日公布",
    ],
)
def test_what_an_office_or_a_paper_wrote_is_not_the_users_own(pasted: str) -> None:
    assert own_sentences(pasted) == []
    assert own_sentences("【更正】我对虾过敏，不是对蟹") != []


def test_a_pasted_paper_is_not_the_users_own() -> None:
    said = "帮我看下这份合同：租客赵强，住虹口区四平路88号，月租三千八"
    assert any(begin <= said.index("租客") for begin, _ in foreign(said))
    assert not foreign("我很喜欢这份工作：离家近，双休，食堂也不错")


@pytest.mark.parametrize(
    ("said", "idle"),
    [
        ("昨天夜里梦见我搬去了火星", True),
        ("做了个怪梦，我成了宇航员", True),
        ("我老是做噩梦，睡不踏实", False),
        ("我的梦想是开书店", False),
    ],
)
def test_a_dream_tells_nothing_of_who_dreams(said: str, idle: bool) -> None:
    assert is_idle(said) is idle


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("是许丽 言午许", "是许丽"),
        ("写错了，是五邑，五谷的五", "写错了，是五邑"),
        ("叫黎明 黎明的黎字", "叫黎明"),
        ("是下周三 不是周二", "是下周三 不是周二"),
        ("是苏州 我姐的家", "是苏州 我姐的家"),
    ],
)
def test_which_character_is_meant_is_no_value(said: str, left: str) -> None:
    assert without_explained(said) == left


def test_a_value_does_not_double_the_character_behind_it() -> None:
    assert put("預產期是11月12號。", (4, 9), "11月21号") == "預產期是11月21号。"
    assert put("住12号楼。", (1, 3), "21") == "住21号楼。"


def test_nobody_is_asked_where_nobody_is_spoken_to() -> None:
    assert speaks_to_nobody("她对报税门儿清")
    assert speaks_to_nobody("娃今天边哭边喊再也不学奥数了,我说你先把这题写完")
    assert not speaks_to_nobody("生日那条你忘了吧")
    assert not speaks_to_nobody("血型的事你就眨眨眼")
    assert not speaks_to_nobody("My sister knows her way about")


@pytest.mark.parametrize("said", ["这周瑜伽课挪到周六，就这一次", "钢琴课临时取消了，下周照常"])
def test_an_exception_leaves_the_habit(said: str) -> None:
    heard = Heard(RawTurn("t", "user", said, TIME, 1), own=said)
    assert leaves_alone(heard, "用户每周二晚上上瑜伽课。")


@pytest.mark.parametrize(
    ("said", "alone"),
    [
        ("今天闹钟没响，七点才起", True),
        ("昨晚店里忙，我九点就去了", True),
        ("快过年了订单多，今天四点就到了", True),
        ("从今天起六点半再起", False),
        ("今天开始不练了", False),
        ("昨天辞职了", False),
        ("我七点起", False),
        # What stays so from that day on is told without a word of an exception.
        ("昨天老师给我加到每天七点", False),
        ("今天教练说每天六点练", False),
    ],
)
def test_one_day_leaves_what_is_done_every_day(said: str, alone: bool) -> None:
    heard = Heard(RawTurn("t", "user", said, TIME, 1), own=said)
    assert leaves_alone(heard, "用户每天五点起床练琴。") is alone
    assert not leaves_alone(heard, "用户五点要起床练琴。")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder = tmp_path_factory.mktemp("m")
    with Memory.open(folder, reader="trained", manager="trained", env_file=None) as memory:
        yield memory


def after(memory: Memory, *messages: str, user: str) -> list[str]:
    for message in messages:
        memory.add(message, user_id=user, timestamp=TIME)
    return [one["memory"] for one in memory.get_all(user_id=user)["results"]]


@needs_model
def test_what_is_taken_back_in_so_many_words_is_forgotten(trained: Memory) -> None:
    assert after(trained, "我房贷还有八十万", "我收回刚才讲的房贷", user="taken") == []


@needs_model
def test_a_remark_without_a_word_of_asking_forgets_nothing(trained: Memory) -> None:
    kept = after(trained, "我老公在农行", "他在银行上班嘛 对这个门儿清", user="remark")
    assert "农行" in "".join(kept)
    cried = ("帕梅拉是魔鬼吧 跳完人没了", "娃今天边哭边喊再也不学奥数了,我说你先把这题写完")
    assert "奥数" in "".join(after(trained, "孩子在学奥数", *cried, user="cried"))


@needs_model
@pytest.mark.parametrize(
    ("told", "then", "kept"),
    [
        ("我同事叫徐丽", "是许丽 言午许 你写错了", "用户的同事叫许丽。"),
        ("我导师姓江", "打错字了 姓姜 生姜的姜", "用户的导师姓姜。"),
    ],
)
def test_an_explained_character_corrects(trained: Memory, told: str, then: str, kept: str) -> None:
    found = after(trained, told, then, user=f"explained {told}")
    assert found == [kept]


@needs_model
def test_what_follows_an_answer_told_at_length_is_no_second_answer(trained: Memory) -> None:
    talk = [
        {"role": "assistant", "content": "您以前做过什么手术吗？"},
        {"role": "user", "content": "小时候割过阑尾，前年又做过一次胆囊手术。鞋码42，脚偏宽。"},
    ]
    trained.add(talk, user_id="answer", timestamp=TIME)
    texts = [one["memory"] for one in trained.get_all(user_id="answer")["results"]]
    assert any("42" in one for one in texts)
    assert not any("手术吗" in one and "42" in one for one in texts)


@needs_model
def test_people_who_clear_out_a_flat_ask_to_forget_nothing(trained: Memory) -> None:
    talk = [
        {"role": "user", "name": "阿凯", "content": "你什么时候搬"},
        {
            "role": "user",
            "name": "小雨",
            "content": "月底前我得把出租屋里的东西都清掉，你那台打印机来拿吗",
        },
        {"role": "user", "name": "阿凯", "content": "周六来"},
    ]
    trained.add(talk, user_id="clear", timestamp=TIME)
    turns = trained.store.states.current(Scope(user_id="clear").owner).turns
    assert any("打印机" in turn.text for turn in turns)


def test_what_an_assistant_ends_with_a_full_stop_is_no_question() -> None:
    said = RawTurn("1", "assistant", "买之前量一量沙发放在哪里。", TIME, 1, role="assistant")
    asked = RawTurn("2", "assistant", "沙发放在哪里？", TIME, 1, role="assistant")
    answer = RawTurn("3", "user", "客厅", TIME, 1, role="user")
    assert question_before([said], answer) is None
    assert question_before([asked], answer) == "沙发放在哪里？"


def test_a_day_of_the_month_that_is_pointed_at_is_not_resolved() -> None:
    said = "票改成25号的，26号那趟没座了"
    text = resolve_chinese(said, TIME.date()).text
    assert text == "票改成2024年5月25日的，26号那趟没座了"


@needs_model
def test_what_a_child_swears_never_to_do_again_is_not_deleted(trained: Memory) -> None:
    """再也不练 says that it was so until now, and denies nothing."""
    trained.add("孩子在学奥数", user_id="swears", timestamp=TIME)
    said = "娃今天边哭边喊再也不学奥数了,我说你先把这题写完"
    found = trained.add(said, user_id="swears", timestamp=TIME)["results"]
    assert "DELETE" not in [one["event"] for one in found]
    texts = [one["memory"] for one in trained.get_all(user_id="swears")["results"]]
    assert any("奥数" in one for one in texts)
