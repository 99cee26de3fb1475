"""What a part of a memory is, in the words in which people ask to forget such a thing.

    212 lbs  ->  weight      earns 18 lakhs  ->  pay, salary, ...      月薪三千八  ->  工资, ...

"Don't save my weight" shares no word with what it means. Invariant: the words are in the form of
`past.words_of`. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import is_chinese, simplified
from memograd.memory.manager.past import words_of

_ENGLISH: Final = (
    (r"\d ?(?:lbs?|pounds|kg|kilos?|stone)\b|\bweighs?\b", "weight"),
    (r"\b\d['’]\d|\b1[.,]\d\d ?m\b|\b\d{3} ?cm\b|\btall\b", "height"),
    (r"\b(?:is|are|turn\w*) \d{1,2}(?: years old)?(?=[,.)]|$)", "age"),
    (r"\b(?:earn|mak|paid|pay|salar|income|wage)\w*\b.*\d|[£$€₹] ?\d|\b\d+k\b",
     "salary pay wage wages income money earnings"),
    (r"\b(?:works?|teaches|employed)\b"
     r"|\bis an? (?:\w+ ){0,2}\w+(?:er|or|ist|ian|nurse|clerk|chef)\b"
     r"|\bUser is \w+(?:er|or|ist|ian|nurse|clerk|chef) (?:at|for|in)\b", "job work employer"),
    (r"\b(?:lives?|rents?|stays|moved) (?:in|at|on|near|to)\b", "address home"),
    (r"\w,? \d+ ?m[gl]\b|\b(?:is on|takes|taking|prescribed|put (?:User|\w+) on) \w+|\btablets?\b"
     r"|\bpills?\b",
     "medication medicine meds drug pills"),
    (r"\bdiagnos\w+|\bdepress\w+|\banxi\w+|\bdiabet\w+|\basthma|\bepilep\w+|\bcancer|\bpregnan\w+"
     r"|\badhd\b|\bbipolar|\bsurgery|\btherap\w+", "health medical condition diagnosis illness"),
    (r"\bowes?\b|\bdebts?\b|\bloan|\bmortgage|\bborrow\w*", "debt money loan"),
    (r"\+?\d[\d ()-]{8,}\d", "phone number"),
    (r"\b(?:banks? with|bank account)\b", "bank"),
    (r"\b(?:husband|wife|boyfriend|girlfriend|partner|ex|dating|divorc\w+|separat\w+|marri\w+)\b",
     "marriage relationship divorce love"),
)  # fmt: skip
_CHINESE: Final = (
    (r"\d(?:斤|公斤|kg)", "体重"),
    (r"[一1]米|\d{3}(?:cm|公分|厘米)", "身高"),
    (r"[\d一二三四五六七八九十]岁", "年龄 年纪 岁数"),
    (r"月薪|年薪|工资|薪水|到手|收入|挣|一个月.*[千万块]", "工资 月薪 收入 薪水 薪资 年薪"),
    (r"病|症|炎|癌|过敏|怀孕|抑郁|焦虑|诊断|手术|血压|血糖", "病情 健康 身体 毛病 看病 病史"),
    (r"[吃服用].{1,8}(?:片|药|毫克|mg)|毫克|胶囊", "吃药 用药 药的 药名"),
    (r"上班|工作|[做干].{1,8}(?:的|生意)|是.{0,8}(?:师|员|工|医生|护士|老板|保安|司机)",
     "工作 职业 单位 公司 上班"),
    (r"住|租", "住址 地址 住的 住处 住在"),
    (r"欠|借|贷款|房贷", "欠钱 借钱 欠债 债务 贷款"),
    (r"女友|男友|女朋友|男朋友|前任|老婆|老公|离婚|离过|结婚|分手|对象|相亲",
     "感情 婚姻 离婚 恋爱 对象 结婚"),
    (r"\d{11}", "电话 手机 号码"),
    (r"[小中大]学|学院|幼儿园|[一二三四五六实]小(?!时)|念书|读书", "学校"),
    (r"酒店|宾馆|亚朵|如家|汉庭|全季|民宿|希尔顿|万豪", "酒店 住宿"),
    (r"[A-Z]{2}\d{3,4}|(?<![A-Za-z])[GDKZ]\d{1,4}(?!\d)", "航班 机票 车次 高铁"),
)  # fmt: skip


def named_by(part: str) -> frozenset[str]:
    """The words of a part, and those for the kind of thing that it tells."""
    kinds = _CHINESE if is_chinese(part) else _ENGLISH
    text = simplified(part)
    told = " ".join(words for pattern, words in kinds if re.search(pattern, text, re.IGNORECASE))
    return words_of(part) | words_of(told)
