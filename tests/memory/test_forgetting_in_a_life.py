"""A request to forget beside thirty items: what it names goes, and nobody else's fact.

Each case is told to a memory that knows the life of one person, with times that grow.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memograd import Memory
from memograd.memory.relations.model import SHIPPED

pytestmark = pytest.mark.skipif(not SHIPPED.is_file(), reason="the relation model is not here")

START = datetime(2024, 3, 1, 9, 0, tzinfo=UTC)
LIFE = """\
User teaches chemistry at a school in Stirling.
User's brother Callum runs a garage.
User is allergic to penicillin.
User has a tabby called Mogget.
User drives a Skoda Fabia.
User's car insurance runs out on 14 June.
User plays the cello on Wednesdays.
User and others booked a cottage on Mull for August.
User's landlord is a Mr Pettifer.
User doesn't eat mushrooms.
User said: Elk hair caddis mostly, size 14, at the White River.
User's mum has a new hip.
User wants to learn Italian.
User said: the window in the bathroom sticks.
User's neighbour Ingrid waters the tomatoes.
User runs 5k on Sundays in 31 minutes.
User takes the 8:12 train.
User is 43.
User needs a hinge for the chicken house.
User said: Eleven dollars seventy-two.
User's doctor put User on lisinopril, 10 mg.
User lives at 9 Sorrel Close.""".splitlines()
LIFE_ZH = """\
用户在职高教化学。
用户的哥哥开修车铺。
用户对青霉素过敏。
用户养了只狸花猫叫年糕。
用户开一辆斯柯达。
用户的车险6月14号到期。
用户周三练大提琴。
用户八月订了莫干山的民宿。
用户的房东姓裴。
用户不吃蘑菇。
用户的老伴儿桂芬膝盖不好。
用户想学意大利语。
隔壁老刘也是高血压，他吃的是倍他乐克。
用户说：卫生间的窗户卡住了。
用户的婆婆说要从湛江过来。
用户的老公阿伟在香港上班。
用户周日跑五公里，三十一分钟。
用户每天晚上二两白酒。
用户的家都吃大黄米的，放红枣。
用户坐8点12的地铁。
用户的女朋友瑶瑶也考研。
瑶瑶跟用户提分手了。
用户家猫的医生开了药，吃五天。""".splitlines()
NONE: list[str] = []


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    path: Path = tmp_path_factory.mktemp("life")
    with Memory.open(path, reader="trained", manager="trained", env_file=None) as opened:
        yield opened


CASES = [
    # What it names in words goes before what only looks so.
    (LIFE_ZH, NONE, "老刘的事你都别留着了 他吃啥药跟我没关系 让他知道该说我传他闲话了", ["老刘"]),
    (LIFE_ZH, NONE, "我婆婆的事别记了，免得哪天被阿伟看到说我嫌弃她", ["婆婆"]),
    (LIFE_ZH, NONE, "把瑶瑶的事全忘掉", ["瑶瑶"]),
    (LIFE, NONE, "Please remove my age.", ["43"]),
    (LIFE, NONE, "Forget everything about my landlord, he'd kill me", ["Pettifer"]),
    # What it names by its kind.
    (LIFE, NONE, "Actually my address shouldn't be kept, rub it out", ["Sorrel"]),
    # Nothing has it, or nothing surely enough, so nothing goes.
    (LIFE, NONE, "drop the medication from my profile, would you", []),
    (LIFE_ZH, NONE, "私房钱那个事儿你给我删了吧 让我老伴看见不得了", []),
    (LIFE_ZH, NONE, "对了我妈吃药那个你别存 她忌讳这个", []),
    (LIFE, NONE, "Forget what I told you about my husband, he'd be mad", []),
    # It asks for nothing of the kind.
    (LIFE_ZH, NONE, "我不吃蘑菇这个别删", []),
    (LIFE_ZH, NONE, "年糕的資料要留喔，別刪到", []),
    (LIFE_ZH, NONE, "那你可千万别往外说", []),
    (LIFE_ZH, NONE, "别跟我老伴说", []),
    (LIFE, ["I'm giving Callum my old Fenwick rod for his birthday."], "Dont tell him ha", []),
    (LIFE, NONE, "Thats what I figured. I dont even turn the thing on", []),
    (LIFE, NONE, "please don't delete the bit about penicillin", []),
    # Off the record nothing is kept, and nothing goes.
    (LIFE, NONE, "off the record. I used to have a pill problem. clean since june 2019", []),
    # What was just told goes as a whole, and no other item that shares a word.
    (
        LIFE,
        ["I kissed Rangi. Bev's husband. ex-husband, nearly. It's a mess."],
        "please don't keep any of that about Rangi, I'd die if it came up",
        ["Rangi", "mess"],
    ),
    # What is left of a cut says something, and is not the secret.
    (
        LIFE,
        ["Which reminds me, Denise is our treasurer and she's the one who owes me forty dollars."],
        "You needn't keep what I said about Denise and the money, I feel small",
        ["Denise", "owes", "reminds"],
    ),
    (
        LIFE,
        ["I go to the tuesday meeting at st jude, keeps me right."],
        "matter fact take that whole conversation out. the meetings. aint nobody's business",
        ["meeting", "right"],
    ),
]  # fmt: skip


# What goes on about what goes ("he works to the end of June") may be left.
LEFT = [
    (LIFE_ZH, ["阿杰提离职了，做到6月底。"], "阿杰的事都删了吧，人都走了，迟到什么的没必要留着",
     ["阿杰"]),
    (
        LIFE,
        ["I got to tell you something, I had a beer and two and drove from the Elks on Friday."],
        "That thing just now about the Elks I'd just as soon it was never said",
        ["Elks"],
    ),

]  # fmt: skip


@pytest.mark.parametrize(("life", "told", "request_", "gone"), CASES, ids=[c[2] for c in CASES])
def test_what_it_names_goes_and_nothing_else(
    memory: Memory, life: list[str], told: list[str], request_: str, gone: list[str]
) -> None:
    at = START
    for text in life:
        at += timedelta(minutes=7)
        memory.add(text, user_id=request_, infer=False, timestamp=at.isoformat())
    for message in told:
        at += timedelta(hours=30)
        memory.add(message, user_id=request_, timestamp=at.isoformat())
    before = items(memory, request_)
    at += timedelta(minutes=3)
    memory.add(request_, user_id=request_, timestamp=at.isoformat())
    after = items(memory, request_)
    assert not [text for text in after if any(word in text for word in gone)]
    assert [text for text in before if not any(word in text for word in gone)] == after


@pytest.mark.parametrize(("life", "told", "request_", "gone"), LEFT, ids=[c[2] for c in LEFT])
def test_what_it_names_goes_and_no_other_memory(
    memory: Memory, life: list[str], told: list[str], request_: str, gone: list[str]
) -> None:
    at = START
    for text in life:
        at += timedelta(minutes=7)
        memory.add(text, user_id=request_, infer=False, timestamp=at.isoformat())
    alone = items(memory, request_)
    for message in told:
        at += timedelta(hours=30)
        memory.add(message, user_id=request_, timestamp=at.isoformat())
    others = set(alone) & set(items(memory, request_))
    at += timedelta(minutes=3)
    memory.add(request_, user_id=request_, timestamp=at.isoformat())
    after = items(memory, request_)
    assert not [text for text in after if any(word in text for word in gone)]
    assert len(others) >= len(alone) - 1 and others <= set(after)


def test_what_is_called_off_is_not_forgotten(memory: Memory) -> None:
    memory.add("我2月4号体检，空腹。", user_id="off", timestamp=START.isoformat())
    later = START + timedelta(days=2)
    memory.add("体检要改期了，先取消吧。", user_id="off", timestamp=later.isoformat())
    assert any("2月4号体检" in text for text in items(memory, "off"))


def items(memory: Memory, user: str) -> list[str]:
    found = memory.get_all(user_id=user, limit=200)["results"]
    return sorted(item["memory"] for item in found)
