"""What a sentence states, in either language, and the Chinese forms.

    张三住在北京    张三的电话是138…    张三不再喜欢咖啡

A Chinese sentence is first laid bare (dates, degree words, 现在, final particles), then the forms
are tried in order, the special before the general. The English ones stand in `english`. Every form
has a row in `tests/memory/test_statements.py`.

Invariant: text that no form fits gives None, never a guess, and never an exception. Pure functions.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from memograd.memory.language import language_of, simplified
from memograd.memory.statements.english import parse_english
from memograd.memory.statements.statement import Statement
from memograd.memory.text_caches import of_texts

_ENDED: Final = re.compile(r"不再|再也不|已经不|不住在.*了$|不喜欢.*了$|戒了|戒掉")
_LIGHT: Final = re.compile(
    r"现在|目前|如今|最近|刚刚|刚才|其实|真的|真心|已经|非常|特别|十分|超级|一直|特(?=喜|爱)|挺|很|也(?=喜|爱|住|在|有)"
    r"|就(?=喜|是|爱|叫)|的确|确实|终于|又(?=换|搬|改)|依然|仍然|还是(?=喜|住)"
)
_DATE: Final = re.compile(
    r"(?:从|自)?\d{4}年(?:\d{1,2}月(?:\d{1,2}日)?)?(?:那周|那个周末)?(?:起|开始)?[,,]?"
)
_END: Final = re.compile(r"[。.!！;；~\s]+$|(?<=.)[呢啊啦哦嘛呀吧]+[。.!！]*$")
PROFESSIONS: Final = (
    r"(?:.{0,8}(?:医生|护士|老师|教师|教授|工程师|程序员|设计师|会计|律师|厨师|司机|警察|演员|歌手|作家"
    r"|记者|编辑|翻译|画家|摄影师|建筑师|科学家|研究员|经理|主管|总监|行长|柜员|销售|客服|店长|老板|秘书"
    r"|助理|学生|研究生|博士生|军人|农民|工人|木匠|电工|飞行员|乘务员|药剂师|分析师|顾问|教练|导游|主播"
    r"|公务员|消防员|快递员|服务员|理发师|裁缝|会计师|法官|检察官|牧师|园丁|音乐家|舞蹈家|校长|院长"
    r"|运动员|产品经理|咨询师|架构师|策划|文员|出纳|空姐|主任|董事长|总裁|总经理|译员|导演))"
)
_ATTRIBUTES: Final = {
    "电话": "phone", "电话号码": "phone", "手机号": "phone", "手机号码": "phone",
    "联系电话": "phone", "联系方式": "phone", "号码": "phone",
    "邮箱": "email", "邮箱地址": "email", "电子邮箱": "email", "邮件地址": "email",
    "地址": "address", "住址": "address", "家庭住址": "address", "家庭地址": "address",
    "生日": "birthday", "出生日期": "birthday", "工作": "job", "职业": "job", "职位": "job",
    "单位": "employer", "公司": "employer", "工作单位": "employer", "公司名称": "employer",
    "年龄": "age", "岁数": "age", "名字": "name", "姓名": "name", "全名": "name",
    "家乡": "hometown", "老家": "hometown", "籍贯": "hometown", "身高": "height",
    "个头": "height", "个头儿": "height", "体重": "weight", "性别": "gender",
    "工作地": "workplace", "工作地点": "workplace", "上班地点": "workplace",
    "居住地": "residence", "现居地": "residence", "婚姻状况": "marital status",
    "学历": "education", "教育背景": "education", "文化程度": "education",
}  # fmt: skip
_PLACE: Final = re.compile(
    r"(?:[省市县区镇村]|北京|上海|天津|重庆|广州|深圳|杭州|南京|苏州|成都|武汉|西安|青岛|太原|厦门"
    r"|长沙|郑州|广东|山东|江苏|浙江|四川|湖北|湖南|山西|陕西|福建|河南|河北|家|国外|那边|附近)$"
)
_S = r"(?P<s>[^,，。:：;；]{1,25}?)(?<![改变换])"
_COUNT = r"(?:[一两二三四五六七八九十几]|\d+)[只个条辆台位部套本把张件双头匹间栋对]"
_DAY: Final = (
    r"(?:下周|本周|这周|下个?月|周[一二三四五六日天末]|星期[一二三四五六日天]|\d{1,4}[年月日号点]|明天|后天"
    r"|[上下]午|晚上|早上|[一二三四五六七八九十]+[月号日点])"
)
_FORMS: Final[tuple[tuple[str, str, bool], ...]] = (
    ("allergy", rf"^{_S}不对(?P<v>.+?)过敏$", False),
    ("allergy", rf"^{_S}对(?P<v>.+?)(?:并不|不|并没有|没有)过敏$", False),
    ("allergy", rf"^{_S}对(?P<v>.+?)(?:严重|有点|会)?过敏$", True),
    ("called", rf"^{_S}(?:希望|想|要)(?:别人|大家)?(?:被)?(?:叫|称呼)"
               r"(?:他|她|其|自己)?(?:为)?(?P<v>.+)$", True),
    ("age", rf"^{_S}(?:今年|满|刚满)?(?P<v>\d+|[一二三四五六七八九十]+)岁(?:了|半)?$", True),
    ("marital status", rf"^{_S}(?P<v>已婚|未婚|单身|离婚|结婚|订婚|丧偶)(?:了)?$", True),
    ("marital status", rf"^{_S}是(?P<v>已婚|未婚|单身|离异)(?:的|状态)?$", True),
    ("diet", rf"^{_S}(?:是|成为|成了|开始)(?:个|一个|一名)?"
             r"(?P<v>素食主义者|素食者|吃素)(?:了)?$", True),
    ("employer", rf"^{_S}在(?P<v>.+?)(?:上班|工作|任职|就职|供职)(?:了)?$", True),
    ("employer", rf"^{_S}(?:入职|跳槽到|跳槽去|加入|换到)了?"
                 r"(?P<v>.+?(?:公司|银行|医院|学校|集团|单位|大学|报社|研究所|工作室|机构|局|所|厂"
                 r"|阿里|腾讯|百度|华为|字节|美团|京东|小米))(?:了|工作|上班)?$", True),
    ("residence", rf"^{_S}(?:家)?(?:不)?(?:是)?(?:居住在|居住于|住在|定居在|定居于|定居"
        r"|住(?![的址处所]))(?P<v>.+?)(?:了|这个小区|小区)?$", True),
    ("residence", rf"^{_S}(?:从.+?)?(?:把家)?(?:搬家到|搬家去|搬到|搬去|搬回|搬进|移居到|移居|迁到"
        rf"|迁居)了?(?P<v>.+?)(?:了|住|居住|生活)?$", True),
    ("residence", rf"^{_S}住的(?:那个|这个)?(?:小区|地方|城市)(?:是|叫)(?P<v>.+)$", True),
    ("hometown", rf"^{_S}(?:来自|是从)(?P<v>.+?)(?:来的)?$", True),
    ("hometown", rf"^{_S}是(?P<v>[^是\d一二三四五六七八九十百千万个好坏的女男]{{2,6}})人$", True),
    ("hometown", rf"^{_S}的(?:家乡|老家|籍贯)(?:在|是)(?P<v>.+)$", True),
    ("workplace", rf"^{_S}的?(?:工作地点?|上班地点)(?:在|是)(?P<v>.+)$", True),
    ("employer", rf"^{_S}从(?P<v>.+?)(?:辞职|离职|跳槽)(?:了)?$", False),
    ("partner", rf"^{_S}(?:和|跟|与)(?P<v>.+?)分手(?:了)?$", False),
    ("partner", rf"^{_S}(?:有|交)(?:了)?(?:个|一个)?(?P<v>女朋友|男朋友|对象)(?:了)?$", True),
    ("habit", rf"^{_S}(?:戒掉|戒)(?:了)?(?P<v>[^指指]+?)(?:了)?$", False),
    ("habit", rf"^{_S}(?:每天|常常|经常|总是|爱)?(?:抽|吸)(?P<v>烟)$", True),
    ("plan", rf"^{_S}取消(?:了)?(?P<v>.+)$", False),
    ("date", rf"^{_S}(?:的?时间|日期)?(?:改到|推迟到|延期到|延后到|提前到|挪到|改期到|改在|定在"
             rf"|推到)(?:了)?(?P<v>{_DAY}.*)$", True),
    ("date", rf"^{_S}(?:的?时间|日期)?(?:在|是在)(?P<v>{_DAY}.{{0,12}})$", True),
    ("job", rf"^{_S}(?:当上了?|当了?|担任了?|成为了?|成了|升任为?|晋升为|升职为|被提拔为|转行做"
        rf"|转行当|改行做|改行当)(?:个|一个|一名|一位)?(?P<v>.+?)(?:的)?$", True),
    ("job", rf"^{_S}(?:是|是做|做)(?:个|一个|一名|一位)?(?P<v>{PROFESSIONS})(?:的|工作)?$", True),
    ("job", rf"^{_S}从事(?P<v>.+?)(?:工作|行业)?$", True),
    ("likes", rf"^{_S}(?:不太|不怎么|不是很|不)(?:喜欢|爱|热爱|感兴趣)(?P<v>.+?)(?:了)?$", False),
    ("likes", rf"^{_S}(?:讨厌|厌恶|受不了|反感|痛恨)(?P<v>.+)$", False),
    ("likes", rf"^{_S}对(?P<v>.+?)(?:不感兴趣|没兴趣|没有兴趣)(?:了)?$", False),
    ("likes", rf"^{_S}对(?P<v>.+?)(?:感兴趣|有兴趣|着迷)$", True),
    ("likes", rf"^{_S}(?:喜欢上了?|爱上了?|迷上了?|喜欢|热爱|喜爱|酷爱|中意|爱好|爱)"
              r"(?P<v>.+)$", True),
    ("prefers", rf"^{_S}(?:更喜欢|偏爱|更爱|宁愿)(?P<v>.+)$", True),
    ("visited", rf"^{_S}(?:去过|去了|到过|参观了|参观过|游览了|游览过)(?P<v>.+)$", True),
    ("has", rf"^{_S}(?:没有|没养|不再养)(?P<v>.+)$", False),
    ("has", rf"^{_S}(?:有了|有|养了|养着|养|买了|拥有|领养了|收养了)(?P<v>{_COUNT}.+)$", True),
    ("plays", rf"^{_S}(?:会弹|弹|会拉|会吹)(?P<v>.+)$", True),
    ("speaks", rf"^{_S}(?:会说|会讲|说)(?P<v>.+?[语话文])$", True),
    ("studies", rf"^{_S}(?:在学习?|正在学习?|学习|主修|就读于)(?P<v>.+)$", True),
    ("uses", rf"^{_S}(?:用的|使用的)(?P<n>.{{1,8}}?)是(?P<v>.+)$", True),
    ("drinks", rf"^{_S}(?:每天|常常|经常|总是)?喝(?P<v>.+)$", True),
    ("eats", rf"^{_S}(?:每天|常常|经常|总是)?吃(?P<v>.+)$", True),
    ("drives", rf"^{_S}(?:每天|平时)?开(?P<v>.*车.*)$", True),
)  # fmt: skip
_COMPILED: Final = tuple((slot, re.compile(form), positive) for slot, form, positive in _FORMS)
_FAVOURITE = re.compile(
    rf"^{_S}(?:的)?最(?:喜欢|爱|喜爱)的(?P<n>.{{1,8}}?)(?:是|变成了?|改成了?|换成了?)(?P<v>.+)$"
)
_FAVOURITE_VERB = re.compile(rf"^{_S}最(?:喜欢|爱)(?P<n>[吃喝看听玩读])(?P<v>.+)$")
_CALLED = re.compile(
    rf"^{_S}(?:的)?(?:名字|姓名)?(?:名叫|叫做|叫作|名为|取名叫|取名|叫|改名为|改名叫)(?P<v>.+)$"
)
_ATTRIBUTE = re.compile(
    r"^(?P<s>[^,，。:：;；是]{1,25}?)的?(?P<n>[^的,，是]{1,8}?)"
    r"(?:是在|是|为|有|改成了?|改为了?|换成了?|变成了?|变为|改到了?|更新为)(?P<v>.+)$"
)
_OWNED_ATTRIBUTE = re.compile(
    r"^(?P<s>[^,，。:：;；是]{1,25})的(?P<n>[^的,，是]{1,8}?)"
    r"(?:是在|是|为|改成了?|改为了?|换成了?|变成了?|变为|改到了?|更新为|换了)(?P<v>.+)$"
)
_INTRODUCED = re.compile(r"^(?P<s>[^,，是]{1,6})是[^,，]{1,12}[,，]其(?P<n>[^是]{1,8})是(?P<v>.+)$")
_MEASURED = re.compile(rf"^{_S}(?P<n>身高|个头儿?|体重)(?:有|是|大概)?(?P<v>\d.+)$")
_NOT_SUBJECTS = ("这", "那", "它", "他", "她", "如果", "但", "因为", "所以", "不过", "就是", "你")


def parse_chinese(text: str) -> Statement | None:
    """The statement of one Chinese sentence, None where no form fits."""
    ended = bool(_ENDED.search(text))
    bare = _END.sub("", text)
    bare = _LIGHT.sub("", _DATE.sub("", bare))
    bare = re.sub(r"不再|再也不|已经不|(?<=.)不(?=住在|在.+(?:上班|工作)|吃|喝|是)", "〻", bare)
    negated = "〻" in bare
    bare = bare.replace("〻", "").replace(" ", "").strip("，, ")
    if negated:
        bare = bare.removesuffix("了")
    found = _match(bare)
    after: list[str] = []
    if found is None:
        first, *after = re.split("[,，。;；]", bare, maxsplit=1)
        found = _match(first)
    if found is None:
        return None
    subject, slot, value, positive = found
    value, *more = re.split(r"[,，。;；!！]", value.lstrip("，,。 "), maxsplit=1)
    rest = "，".join([*more, *after])
    subject, value = subject.strip('，, “”"'), value.strip(' “”"')
    if slot == "employer" and _PLACE.search(value):
        slot = "workplace"  # 在北京上班 says where, 在腾讯上班 says for whom
    if not subject or not value or subject.startswith(_NOT_SUBJECTS):
        return None
    return Statement(subject, slot, value, positive != (negated and positive), ended, rest)


def _match(bare: str) -> tuple[str, str, str, bool] | None:
    if found := _FAVOURITE.match(bare):
        return found["s"], f"favourite {found['n']}", found["v"], True
    if found := _FAVOURITE_VERB.match(bare):
        return found["s"], f"favourite {found['n']}", found["v"], True
    if found := _INTRODUCED.match(bare):
        return found["s"], _slot(found["n"]), found["v"], True
    if found := _MEASURED.match(bare):
        return found["s"].removesuffix("的"), _slot(found["n"]), found["v"], True
    for form in (_OWNED_ATTRIBUTE, _ATTRIBUTE):
        if (found := form.match(bare)) and found["n"] in _ATTRIBUTES:
            value = found["v"].removeprefix("叫")
            value = value.removesuffix("岁") if _slot(found["n"]) == "age" else value
            return found["s"], _slot(found["n"]), value, True
    if found := _CALLED.match(bare):
        subject = re.sub(r"的(?:名字|姓名)$", "", found["s"])
        if re.search(r"(?:住的(?:那个|这个)?小区|住的地方)$", subject):
            return re.sub(r"住的.*$", "", subject), "residence", found["v"], True
        if re.search(r"(?:单位|公司)$", subject):
            return re.sub(r"(?:他们|的)?(?:单位|公司)$", "", subject), "employer", found["v"], True
        return subject, "name", found["v"], True
    for slot, form, positive in _COMPILED:
        if hit := form.match(bare):
            noun = hit.groupdict().get("n")
            return hit["s"], f"attribute:用的{noun}" if noun else slot, hit["v"], positive
    owned = _OWNED_ATTRIBUTE.match(bare)
    if owned:
        return owned["s"], _slot(owned["n"]), owned["v"], True
    return None


def _slot(noun: str) -> str:
    return _ATTRIBUTES.get(noun, f"attribute:{noun}")


LONGEST = 300  # characters; a longer text is a story, not a statement


@of_texts
@lru_cache(maxsize=2_048)  # every message is compared with the same items again
def parse_statement(text: str) -> Statement | None:
    """What the sentence says, if it has one of the typical forms of its language."""
    text = simplified(unicodedata.normalize("NFKC", text)).replace("’", "'").strip()
    if not text or len(text) > LONGEST:
        return None
    return parse_chinese(text) if language_of(text) == "zh" else parse_english(text)
