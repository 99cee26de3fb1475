"""Which sentences have too little in them to say anything: greetings, trying out, little tasks.

Invariant: the form of the sentence alone decides. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import language_of
from memograd.memory.reader import screen_chinese, screen_english

_TRIES_OUT: Final = re.compile(
    r"\W*(?:(?:测试|測試|试试|在吗|在嗎|喂+|test(?:ing)?|one|two|three|[一二三]|asdf\w*|qwer\w*|\d{1,3})[\W_]*)+",
    re.IGNORECASE,
)

_GREETS = (
    r"ttyl|brb(?: \w+)?|(?:ok )?back(?: now)?|gtg|g2g|cya|bye+|see (?:ya|you)(?: later| soon)?"
    r"|laters?|night ?night|g?'?night|(?:good )?(?:mornin[g']?|evening|afternoon|night)"
    r"|(?:right,? )?off to bed"
    r"|that'?s all(?: (?:for (?:now|today)|i needed))?|(?:even )?(?:shorter|longer|simpler)"
    r"|(?:ok(?:ay)?|k+|right|ta|thx|cheers|lol|haha+|nah|yep|perfect|great|cool|x+)"
    r"|thanks?(?: a (?:bunch|lot|million|ton)| so much)?|i'?m (?:off|out)|gotta (?:go|run)"
    r"|(?:那|好)?(?:下[回次]|回[头頭]|改天|[晚遲迟][点啲]|得[闲閒])再?[聊说說倾傾谈談]吧?|(?:我?先?[撤溜闪閃睡][了啦])+"
    r"|在不在|在[吗嗎]|回见|回見|好[嘞咧滴的]|[谢謝][谢謝啦了]|多[谢謝]|拜拜|[早晚]安?|得嘞|行|哈哈+"
)
_GOES_ON = (
    r"(?:and )?(?:now )?(?:the same (?:again|in \w+|for \w+)(?: please)?|with \d+ ?%"
    r"|rounded\b[^.!?]{0,30}|divided by \d+|(?:times|plus|minus) \d+)"
    r"|再(?:短|长|長|简单|簡單|正式|详细|詳細|口语)(?:一?[点些])?"
    r"|再?(?:[\d零一二两三四五六七八九十百千万.]+)?(?:乘以?|除以|减去|減去|[减減]个|再加个?)"
    r"[\d零一二两三四五六七八九十百千万.]+(?:呢|[等是].{0,3})?"
)
_COMES_AND_GOES: Final = re.compile(
    rf"\W*(?:(?:{_GREETS})(?:[^\w%]+|$))*(?:(?:{_GREETS}|{_GOES_ON})\W*)", re.IGNORECASE
)
"""Greetings, one after the other, and what a chain of little tasks goes on with."""


# 昨晚梦见自己中奖了. Who often dreams badly (老做噩梦) tells of their sleep.
DREAMT: Final = re.compile(
    r"\W*(?:我|又|还|還|[昨今前](?:[天日晚夜儿兒]|早)(?:晚上|夜里|夜裡)?|[刚剛](?:才|[刚剛])|早上|半夜|居然|竟然)*"
    r"(?:做(?:了?一?[个個]?[^，。\s]{0,3})[梦夢]|[梦夢][见見到])"
)


def is_idle(text: str) -> bool:
    """Whether it has too little in it, only greets and reacts, or tells a dream."""
    if len(re.findall(r"\w", text)) < 2:
        return True
    if _TRIES_OUT.fullmatch(text) or _COMES_AND_GOES.fullmatch(text) or DREAMT.match(text):
        return True
    chinese = language_of(text) == "zh"
    if len(text) > 8 if chinese else len(text.split()) > 3:
        return False
    screen = screen_chinese if chinese else screen_english
    return bool(screen.is_reaction(text))
