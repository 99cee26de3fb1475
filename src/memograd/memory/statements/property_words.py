"""The words in which the property of a statement is usually told, to find what was said of it.

"Ann moved to Oslo" and "Ann is living in Rome" share but the name. Their property is one, and its
words ("live", "move", 住, 搬) find the older statement among many about Ann.

Invariant: every form of a listed property holds one of its words. Pure functions.
"""

from __future__ import annotations

from typing import Final

from memograd.memory.language import is_chinese
from memograd.memory.statements.english import PROFESSION_WORDS
from memograd.memory.statements.parse import parse_statement

_ENGLISH: Final = {
    "residence": "live living lives moved based settled home address",
    "job": "works work working job promoted became started career " + " ".join(PROFESSION_WORDS),
    "employer": "works work working job company employer quit",
    "marital status": "married single divorced engaged widowed separated wedding",
    "partner": "dating broke married single",
    "diet": "vegan vegetarian pescatarian",
    "age": "years old turned",
    "phone": "phone number mobile",
    "email": "email address",
    "name": "called named name renamed",
    "hobby": "hobby took up evenings weekends started switched",
    "plays": "play plays playing learning lessons instruments",
    "drives": "drives drive car",
    "uses": "uses use switched",
    "drinks": "drinks drink",
    "habit": "smokes drinks started quit",
    "plan": "planning plans booked cancelled",
    "likes": "likes loves enjoys hates",
    "prefers": "prefers",
    "allergy": "allergic allergy",
}
_CHINESE: Final = {
    "residence": "住 住在 居住 搬 搬到 定居 地址",
    "job": "工作 职业 担任 成为 从事",
    "employer": "上班 工作 任职 公司 单位 入职 跳槽",
    "workplace": "上班 工作 地点",
    "marital status": "已婚 未婚 单身 结婚 离婚 订婚",
    "partner": "女朋友 男朋友 对象 恋爱 分手",
    "diet": "素食 吃素",
    "age": "岁 年龄",
    "phone": "电话 手机 号码 手机号",
    "email": "邮箱",
    "name": "叫 名字 改名",
    "date": "时间 日期",
    "drinks": "喝",
    "habit": "抽烟 戒",
    "plan": "计划 打算 取消",
    "likes": "喜欢 爱 讨厌",
    "allergy": "过敏",
}


def property_words(text: str) -> str:
    """The subject and the words of the property, empty where the text is not understood."""
    statement = parse_statement(text)
    if statement is None:
        return ""
    noun = statement.slot.removeprefix("attribute:").replace("favourite", "favourite favorite")
    words = (_CHINESE if is_chinese(text) else _ENGLISH).get(statement.slot, noun)
    replaced = statement.instead_of.strip("*")
    return " ".join(filter(None, (statement.subject, words, replaced)))
