"""Who a Chinese text speaks of: relations, titles, callings, names, animals.

    我老公, 老公 at the head of a clause, 王奶奶, 有个男生, 小蒋, 我家猫叫煤球

Names of two characters have no form of their own, so only those with 小, 老, 阿 or doubled, and
what somebody is called, are known. Invariant: what is found stands in the text, which is to be in
simplified characters. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memograd.memory.language import simplified
from memograd.memory.reader.people import UNNAMED, Person, Sex, one_each

_HER: Final = (
    "妈妈|妈|母亲|老婆|妻子|媳妇|女朋友|女友|姐姐|姐|妹妹|妹|女儿|闺女|奶奶|外婆|姥姥|阿姨|姑姑|姑妈|姨妈|小姨|舅妈|婶婶"
    "|嫂子|岳母|婆婆|闺蜜|表姐|表妹|堂姐|堂妹|侄女|外甥女|外孙女|孙女"
)
_HIM: Final = (
    "爸爸|爸|父亲|老公|丈夫|先生|男朋友|男友|哥哥|哥|弟弟|弟|儿子|爷爷|外公|姥爷|叔叔|舅舅|大伯|伯父|伯伯|岳父|公公|姐夫"
    "|妹夫|表哥|表弟|堂哥|堂弟|侄子|外甥|外孙|孙子"
)
_EITHER: Final = (
    "老板|领导|上司|同事|室友|邻居|导师|老师|房东|朋友|同学|同桌|徒弟|师傅|客户|教练|爱人|对象|孩子"
    "|哥们儿?|兄弟|发小"
)
_PET: Final = "狗狗|小狗|小猫|猫咪|狗|猫|乌龟|兔子|仓鼠|鹦鹉|金毛|柯基|泰迪|橘猫|拉布拉多"
_NAME: Final = (
    r"(?:[小老阿](?![大二三四五六七八时心区学孩吃火组程红说声家师板是公婆伴头大伙鼠虎姨年人百姓实早鸡猫狗拉])[\u4e00-\u9fff](?=[其也就都下上这那个说去来要想在"
    r"是有把被跟和结怀离生转提回刚已还又不没今明昨给带陪教帮让找送买考打做辞钻睡叫约请问发搬,，。！!？?、的\s]|$)"
    r"|(?P<twice>[\u4e00-\u9fff])(?<![天刚慢常偷好早哈人妈爸哥姐弟妹爷奶叔婶舅姑姨公婆太宝星谢试看想说聊等多少久年月日次个处家事样时往渐仅])(?P=twice))"
)
_OWN: Final = re.compile(
    rf"(?:我们?|俺|咱)(?:家|的)?(?:大|小|二)?"
    rf"(?:(?P<her>{_HER})|(?P<him>{_HIM})|(?P<either>{_EITHER})|(?P<it>{_PET}))(?!们)(?P<name>{_NAME})?"
)
# 老公转成白班了: whoever says so means their own.
_BEGINS: Final = r"(?:^|(?<=[，,。！？!?、\s；;：:“])|(?<=[跟和给带陪让被找向替帮把]))"
_NOT_THEIRS: Final = r"(?![们俩呀圈节])"
BARE_KIN: Final = (
    "老公|老婆|媳妇|女朋友|男朋友|女友|男友|儿子|女儿|闺女|奶奶|爷爷|外婆|外公|姥姥|姥爷|妈妈|爸爸|老妈|老爸|婆婆|公公|岳母"
    "|岳父|哥哥|姐姐|弟弟|妹妹|表哥|表姐|表弟|表妹|小姨|舅舅|舅妈|姑姑|爸妈|父母"
)
"""Relations that people name without 我."""
_BARE: Final = re.compile(
    rf"{_BEGINS}(?:(?P<her>{_HER})|(?P<him>{_HIM})){_NOT_THEIRS}(?P<name>{_NAME})?"
)
_HIRED: Final = (
    "教授|导师|老师|老板娘|老板|店长|组长|班长|领导|经理|房东|医生|大夫|护士|教练|师傅|同事|室友|邻居|朋友|客户|(?P<his>师兄|学长"
    "|学弟|师弟|大叔|大爷)|(?P<hers>师姐|学姐|学妹|师妹|大妈)"
)
_CALLING: Final = re.compile(rf"{_BEGINS}(?P<name>{_HIRED}){_NOT_THEIRS}")
# 有个男生背了西瓜上山: nobody known before, so 那个男生.
_SOME: Final = re.compile(
    r"(?:[有来遇碰见到了]|一|那|这|隔壁住)(?:个|位|名)[^，。！？,个位]{0,9}?"
    r"(?P<who>(?:(?P<him>男生|男的|男孩|老头|大爷|大叔|小伙子?|学弟|师兄|学长)"
    r"|(?P<her>女生|女的|女孩|老太太|大妈|阿姨|姑娘|学妹|师姐|学姐)"
    r"|小孩|孩子|醉客|客人|乘客|同事|朋友|邻居|医生|护士|老师|新人|师傅|同学))"
)
_SURNAMES: Final = (
    "王李张刘陈杨赵黄周吴徐孙朱马胡林郭何高罗郑梁谢宋唐许邓韩冯曹彭曾肖田董潘袁蔡蒋余于杜叶程魏苏吕丁任卢姚沈钟姜崔谭"
    "陆范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾龚邵万覃武钱戴严莫孔向常"
)
_TITLED: Final = re.compile(
    rf"(?P<name>[{_SURNAMES}](?:(?P<her>奶奶|阿姨|姨|大姐|师姐|学姐|姐|太太|女士|小姐|大妈|婶|嫂)|(?P<him>爷爷|叔叔?|大哥|师兄|学长|哥|先生|大爷)"
    r"|总|老师|医生|大夫|教授|师傅|经理|主任|护士|律师|教练|老板|校长|店长|主管))"
)
_NAMED: Final = re.compile(
    rf"(?:我家|[狗猫事娃友人生叫]|(?<![\u4e00-\u9fff])|(?<=[，,。！!？?\s送跟和给带对有]))(?P<name>{_NAME})"
)
# 老大叫果果, 养了只乌龟叫大福: what somebody is called.
_CALLED: Final = re.compile(
    r"(?P<who>[狗猫龟兔鸟鼠它]|[人生孩娃友师妹弟哥姐女儿大二他她老子])[，,]?(?:名字)?叫(?:做)?"
    rf"(?P<name>{_NAME}|(?!什么|啥)[\u4e00-\u9fff]{{2,3}}(?=[，,。！!？?；;\s]|$))"
)
# 哈日是我养了十一年的狗
_IS_PET: Final = re.compile(
    rf"(?:^|(?<=[，。！？,\s]))(?P<name>(?![这那它他她我])[\u4e00-\u9fff]{{2,4}})是[^，。]{{0,12}}?(?P<it>{_PET})(?=[，,。！\s]|$)"
)
_PETS: Final = re.compile(rf"(?:我们?家?的?|家里的?|只|条|[养捡买]了?)(?P<name>{_PET})")
# 她爸: somebody of theirs.
_THEIRS: Final = re.compile(rf"[他她]的?(?:(?P<her>{_HER})|(?P<him>{_HIM}))")
_WITH: Final = re.compile(r"[和跟与、](?=$|[^，,。]{1,4})")
# 周末跟女朋友去: the other one is who speaks.
_ALONE: Final = re.compile(
    r"(?:^|[，,。！？!?；;\s])(?:[今昨明前后]天|[今昨明]晚|周末|上周|下周|上午|下午|晚上|中午|早上|刚刚?|又|还|就|都|也|想|要|去|会|终于"
    r"|一直|经常|我们?|\d+月?\d*[号日]?|[一二三四五六七八九十]+月)*[和跟与]$"
)

_DAY: Final = (
    r"(?:[上下这本]+个?)(?:周|星期|礼拜|月)(?:[一二三四五六日天末])?|[去今明前后]年|\d+月\d*[号日]?|\d+[号日]|(?:周|星期|礼拜)"
    r"[一二三四五六日天末]|前阵子|前两天|[今昨前明]儿"
)
_LEAD: Final = (
    rf"(?:(?:{_DAY})*(?:医生|大夫|老师|老板|领导|护士|教练|师傅)(?:[上这]次|昨天|今天)?(?:让|叫|说|建议|劝|给)|"
    rf"(?:{_DAY})+|(?:后来|然后|不过|但是?|可是?|所以|因为|[今昨前明]天|[今昨]晚|现在|结果|其实|原来|听说|而且|最近|平时|刚才|刚刚|反正|毕竟"
    r"|事后|上次|上周|这次|晚上|早上|还有|另外|当时|以前|之前|从小|好像|感觉|我觉得|我看|估计|可能|幸好|还好|难怪|怪不得|主要|关键)"
    r"[，, ]?)?"
)
_TO: Final = (
    "给|送|帮|陪|带|跟|和|找|让|教|请|问|叫|劝|骂|替|对|把|为|等|想|爱|看|接|养|骗|欠|约|追|怕|嫌|埋|抱"
    "|喜欢|认识|说服|答应"
)
_POINTED: Final = re.compile(
    rf"{_LEAD}(?:(?:我们?)?(?:又|就|还|再|也|都|先|会|要|想|得|没|不|已经|一直|只好|只能|偷偷|赶紧|在|正在|挂了)*(?:{_TO})[了过着]?)?"
    r"(?P<who>[他她它])(?![们俩])"
)
_PRONOUN: Final = re.compile(r"(?P<who>[他她它])(?!们|俩|人|日|乡)")
_SEX: Final[dict[str, Sex]] = {"她": "her", "他": "him", "它": "it"}


def pointed(sentence: str) -> Sex | None:
    """Which pronoun the sentence has that nobody in it can be; None where it has none."""
    found = _POINTED.match(simplified(sentence.lstrip()))
    return _SEX[found["who"]] if found else None


def pronouns(text: str) -> Iterator[tuple[int, Sex]]:
    """Place and sex of each pronoun."""
    for one in _PRONOUN.finditer(text):
        yield one.start(), _SEX[one["who"]]


def people(text: str) -> list[Person]:
    """The people and animals that are spoken of, each once however they are worded."""
    found: list[Person] = []
    for pattern in (
        _IS_PET,
        _CALLED,
        _OWN,
        _BARE,
        _SOME,
        _TITLED,
        _THEIRS,
        _CALLING,
        _NAMED,
        _PETS,
    ):
        for one in pattern.finditer(text):
            found.append(_person(pattern, one))
            if pattern in (_OWN, _BARE) and _is_among_others(text, one):
                found.append(Person(UNNAMED, UNNAMED, one.end(), one.end(), sure=False))
    kept = _joined(one_each(found), text)
    if any(not one.it for one in kept):  # 他 of a pet is said where nobody else may be meant
        kept = [
            Person(one.said, one.name, one.at, one.end, her=False, him=False, it=True)
            if one.it else one for one in kept
        ]  # fmt: skip
    return kept


def _person(pattern: re.Pattern[str], one: re.Match[str]) -> Person:
    parts = one.groupdict()
    her, him = (
        bool(parts.get("her") or parts.get("hers")),
        bool(parts.get("him") or parts.get("his")),
    )
    pet = pattern is _PETS or bool(parts.get("it"))
    pet = pet or (pattern is _CALLED and one["who"] in "狗猫龟兔鸟鼠它")
    said = name = parts.get("name") or one[0]
    if pattern is _OWN:
        said = one[0]
    elif pattern is _BARE:
        said = f"我{one[0]}"
    elif pattern is _SOME:
        said = name = f"那个{one['who']}"
    at = one.start("name") if parts.get("name") and pattern is not _OWN else one.start()
    return Person(
        said, name, at, one.end(), her or not him, him or not her, pet, sure=pattern is not _THEIRS
    )


# 我家猫叫煤球, 小李是我同事: one and the same.
_SAME: Final = re.compile(r"[，,]?(?:的?名字)?(?:叫做?|是)")


def _joined(people: list[Person], text: str) -> list[Person]:
    """The people, two of whom one is said to be the other as one."""
    kept: list[Person] = []
    for one in people:
        last = kept[-1] if kept else None
        if last and last.sure and one.sure and _SAME.fullmatch(text[last.end : one.at]):
            named, other = (last, one) if one.said.startswith("我") else (one, last)
            kept[-1] = Person(
                f"{other.said}{named.name}", named.name, last.at, one.end,
                last.her and one.her, last.him and one.him, last.it or one.it,
            )  # fmt: skip
        else:
            kept.append(one)
    return kept


def _is_among_others(text: str, one: re.Match[str]) -> bool:
    """Whether it stands beside somebody whom no form shows: 晓蕾和我妈."""
    before = text[: one.start()]
    beside = _WITH.search(before[-5:]) is not None and not _ALONE.search(before)
    return beside or _WITH.match(text[one.end() :]) is not None
