"""Who 我 and 你 are, written out: `我同事来了北京` -> `张三的同事来了北京`.

Invariant: after resolving, no 我 is left outside quotation marks, but in words (我国, 自我). Pure
functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import simplified
from memograd.memory.reader.setting import OTHER, SPEAKER, outside_quotes, put_names, without_marks

_QUOTED: Final = re.compile(r"“[^”]*”|\"[^\"]*\"|「[^」]*」|《[^》]*》")
KIN: Final = (
    r"(?:大|小|二)?(?:爸爸?|妈妈?|父亲|母亲|哥哥?|弟弟?|姐姐?|妹妹?|爷爷|奶奶|外公|外婆|姥姥|姥爷|叔叔?|阿姨"
    r"|姑姑|姑妈|姨妈|舅舅|舅妈|婶婶|伯父|伯母|伯伯|表哥|表姐|表弟|表妹|堂哥|堂姐|堂弟|堂妹|老公|老婆|丈夫"
    r"|妻子|爱人|男朋友|女朋友|男友|女友|儿子|女儿|孩子|侄子|侄女|外甥|外甥女|岳父|岳母|公公|婆婆|嫂子|姐夫"
    r"|妹夫|同事|上司|下属|领导|老板|朋友|闺蜜|同学|老师|室友|邻居|导师|学生|客户|家人|父母|爸妈|宠物|狗狗|猫咪"
    r"|对象(?![棋征])|媳妇[儿兒]?|先生(?![气氣了病孩])|丈母娘|老(?:爹|娘|爸|妈|婆子)|大伯|[小大二三](?:姨|舅|姑)|同桌|班主任|公婆|前(?:任|夫|妻|男友|女友|男朋友|女朋友)|哥们[儿兒]?|老伴[儿兒]?|闺女|孙女|孙子|儿媳|女婿|发小|领居|师傅|徒弟|房东|经理|助理|搭档)"
)
_PLACES: Final = r"(?:公司|单位|学校|部门|小区|班|团队|老家|村|医院|店)"


def resolve_person(text: str, speaker: str, other: str | None) -> str:
    """The sentence without 我; 你 too where `other` says who is addressed."""
    text = without_marks(text)
    said = outside_quotes(text, _QUOTED, lambda one: _resolve(one, other is not None))
    return put_names(said, speaker, other)


_OWNER: Final = re.compile(rf"(?:我们|咱们|咱|我)(?=(?:{KIN}|{_PLACES}))(?!家用|家具)")
# 我们 before what somebody has: 我们房贷 is no "we" that does something.
_OWN: Final = (
    r"(?:房贷|房租|房子|车子?(?![开来去])|宝宝|老大|老板|组长|组里|班主任|校长|科室|科里|科长|主任|院里|系里|厂里?|队里?"
    r"|寝室|宿舍|楼[上下里]|单元|村里|镇上|婚礼|婚房|客厅|厨房|卧室|阳台)"
)
_OURS: Final = re.compile(rf"(?:我们|咱们|咱)(?={_OWN})")
# 我家 is a home or those who live in it; 我家的 only before kin.
_HOME: Final = re.compile(rf"(?:我们|咱们|咱|我)家(?P<kin>(?:的)?(?={KIN}))?")


def _whose(text: str) -> str:
    """我的妈 for 我妈 and 我媽, 我的房贷 for 我们房贷, 我家 for 我们家."""
    for pattern, whose in ((_OWNER, "我的"), (_OURS, "我的"), (_HOME, "我家")):
        for found in reversed(list(pattern.finditer(simplified(text)))):
            kin = "的" if pattern is _HOME and found["kin"] is not None else ""
            text = f"{text[: found.start()]}{whose}{kin}{text[found.end() :]}"
    return text


def _resolve(text: str, addressed: bool) -> str:
    # 我我想 is one person who stutters; 他告诉我我病了 is told of somebody.
    text = re.sub(r"(^|[，,。！？!?；\s])我[…\.]*我+(?=.)", r"\1我", text)
    text = re.sub(r"我(?=我)", "我，", text)
    # A pronoun that only takes the noun up again: 我同事他在… says no more than 我同事在….
    text = re.sub(rf"({KIN})(?:他们|她们|他|她)(?!们|的)", r"\1", text)
    text = re.sub(r"(?:我|自)自己", "我", text)
    text = _whose(text)
    text = re.sub(r"(?:我[们們]|咱[们們])的", "我的", text)
    text = re.sub(r"我[们們](?:这种|这样的|這種|這樣的)|咱们(?:这种|这样的)", "我这种", text)
    text = re.sub(r"我[们們]|咱[们們]", f"{SPEAKER}等人", text)
    text = re.sub(r"(?<!自)我(?!国|省|市$)", SPEAKER, text)
    if addressed:
        text = re.sub(r"[你您]们", f"{OTHER}等人", text)
        text = re.sub(rf"[你您](?={KIN}|{_PLACES})", f"{OTHER}的", text)
        text = re.sub(r"[你您]", OTHER, text)
    return text
