"""Which Chinese sentences are worth remembering, told by their form.

The twin of `screen_english`. Invariant: the table of kept and dropped sentences in
`tests/memory/test_reader.py`. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import simplified

_OPENER: Final = re.compile(
    r"^(?:你好|您好|嗨|哈喽|喂|早|早上好|上午好|下午好|晚上好|嗯+|哦+|噢+|啊+|哇+|哈+|嘿+|唉|哎呀?|好的?|好吧|好呀|是的|是啊|对啊?|对了"
    r"|没错|谢谢(?:你|您|大家)?|多谢|感谢|真的|其实|说起来|话说|对对|嗯嗯|不是|不|那|行|可以|没关系|没事|不客气|顺便说一下|说实话|老实说)"
    r"[，,。.！!、~～\s]+"
)
_QUESTION: Final = re.compile(
    r"[?？]\W*$|(?:吗|么)[。.！!~～]*$|^(?:请问|为什么|怎么|如何|什么时候|哪里|哪个|谁"
    r"|多少|是不是|能不能|可不可以|有没有人)|(?:什么|哪里|谁|多少|多[高大远长久深重厚]|等于几|咋办|怎么办|是啥|怎么样|怎么办|哪儿"
    r"|几点|过[没沒]有?)(?:呢|呀|啊|来着)?[。!！]*$"
)
_REQUEST: Final = re.compile(
    r"^(?:请|麻烦|烦请|帮我|帮忙|帮个忙|给我|告诉我|跟我说|教我|你(?:能|可以|帮|给|来"
    r"|再|先|就|说)|您(?:能|可以|帮|给)|能(?:不能|帮|给|否)|可以(?:帮|给|请|告诉)|"
    r"推荐|介绍一下|查一下|查查|搜一下|写一?[篇段个首封]|翻译|解释|总结|想想|看看|说说"
    r"|聊聊|来[一个段]|再来|继续|提醒我|我想(?:问|请你|请教|知道|了解一下)|我想让你"
    r"|我要你|帮|替我|等等|等一下|让我们|咱们(?:去|来))"
)
_PROCEDURAL: Final = re.compile(
    r"^(?:请|麻烦你?|希望你|我希望你|你)?(?:以后|从现在起|从现在开始|今后|从今以后"
    r"|从今往后|之后|每次|总是|始终|永远|一直|一律|务必|不要再|别再|不要总是|别总是"
    r"|别老是)"
    r"|^(?:请|麻烦)?(?:用|以|使用)(?:中文|英文|英语|汉语|普通话|日语|简体|繁体|简短|简洁|轻松|正式|幽默).{0,12}(?:回答|回复|跟我|和我|交流|说)"
    r"|^(?:请|麻烦)?(?:回答|回复|跟我说话|和我说话|和我聊天)(?:我)?(?:时|的时候|要|请|都|尽量|用|问题)"
    r"|^我(?:希望|想要|要求|更?喜欢|需要)你(?:的回答|的回复|用|以后|能?够?一直|每次|回答|回复|说话|不要|别|称呼|叫)"
)
_NOTE: Final = re.compile(
    r"^(?:那个)?(?:我)?[跟和给](?:你|您)(?:说|讲)(?:一?[下声]|个事儿?|件事儿?)(?:啊|哈|哦|吧)?[:：，,\s]+(?=.{3,})"
    r"|^(?:请|麻烦|你要|你?[帮给]我)?(?:一定要?)?(?:记住|记着|记一下|记下来?|记得|注意|别忘了|不要忘了|别忘记)(?:一下|一点|了|啊)?[:：，,]?(?=.{3,})"
)
_REACTION: Final = re.compile(
    r"^(?:(?:好(?:的|吧|呀|啊|嘞|棒|厉害|$)|谢谢|多谢|感谢|哈哈|哈$|是的|是啊|嗯+|哦+|真的吗|太好了|太棒了|太赞了"
    r"|真棒|真好|不错|真不错|原来如此|原来是这样|明白了?|知道了|我知道了|我明白了|懂了"
    r"|了解|收到|没问题|没关系|不客气|再见|拜拜|回头见|下次见|明天见|改天见"
    r"|晚安|早安|早上好|晚上好|你好|您好|嗨|辛苦了?|加油|恭喜|祝|期待|有意思|有道理"
    r"|说得对|确实|当然|可不是|厉害|羡慕|佩服|放心|别担心|保重|一言为定|我也是"
    r"|我也这么(?:想|觉得)|我也觉得|我同意|同意|我猜|我想也是|听起来|看起来|看来"
    r"|那(?:太|真|挺|很|就|可|好)|这(?:太|真的?太|真是太|就|可)|你(?:真|太|好|很|也|们"
    r"|一定|肯定|应该|最近|怎么|最好|的(?:话|建议|支持|鼓励))|您(?:真|太|好|很)|为你"
    r"|替你|谢[了啦]|谢$|哇|天哪|天啊|我的天|停一下|慢慢来|改天|有空|真(?:羡慕|为你|替你|是太)"
    r"|我(?:真)?(?:为你|替你|理解|相信你|支持你|懂你|也很?(?:期待|高兴)|很高兴(?:听"
    r"|认识|见|你)|先走了?|得走了|要走了|先去忙|先忙|要睡了|去睡了|挺好的?|很好|还好"
    r"|没事|随便问问|开玩笑|就是问问|不知道|想想看?|看看)(?:吧|了|啦)?).*)$"
)
_ABOUT: Final = re.compile(
    r"[是有在叫住用做去来买搬换学养吃喝爱会想要对为到说过了]|喜欢|觉得|讨厌|认为|打算|计划|决定"
)


def strip_openers(text: str) -> str:
    """The sentence without "你好，" and "哇！" before it."""
    while found := _OPENER.match(simplified(text)):
        text = text[found.end() :]
    return text.strip(" ，,")


def is_question(text: str) -> bool:
    """Whether the sentence asks."""
    return bool(_QUESTION.search(simplified(text)))


def is_request(text: str) -> bool:
    """Whether the sentence asks somebody to do something now."""
    return bool(_REQUEST.search(simplified(text)))


def is_procedural(text: str) -> bool:
    """Whether the sentence says how the agent is to act from now on."""
    return bool(_PROCEDURAL.search(simplified(text)))


def strip_note(text: str) -> str:
    """The statement in "请记住，我的生日是5月3日"."""
    found = _NOTE.match(simplified(text))
    return text[found.end() :] if found else text


# 我下周去青岛，你帮我列个清单; 房租3500 你觉得贵吗: spoken to the assistant, and tells nothing.
_ASKING: Final = re.compile(
    r"^(?:那|所以|就|要不|有空|先)*(?:(?:能不能|能否|可以|麻烦|请|你|您)+(?:先|再)?(?:帮|替|给)(?:我|忙)"
    r"(?!的|[们家妈爸老买带做送发打留介请])"
    # 帮我排个计划; 同事人好，帮我搬家 tells of somebody.
    r"|(?:帮|替|给)我(?:先|再)?(?:[写想列查看算改编起拟排挑选估找]|推荐|翻译|整理|规划|安排|设计|总结|润色"
    r"|分析|解释|比较)(?![^，。]{0,3}[了过]))"
    r"|^(?:你|您)(?:说|觉得|看|猜|感觉|认为|知道)(?!他|她|我|得|到|过|的)"
    r"|^(?:你|您)(?:可?[别甭]|不许)"
    r"|^(?:给|出|来|列)(?:个|点|几[个条]|份)(?!我)[^，。]{0,6}(?:计划|方案|建议|单|表|攻略|思路|主意|点子|名字|意见|谱|推荐|办法|法子|模板|文案)"
)
_CLAUSES: Final = re.compile(r"[，,；;]\s*|\s+(?=[\u3400-\u9fff])|(?<=[\u3400-\u9fff])\s+")
_GOES_ON: Final = re.compile(r"[。！？!?…]+\s*\w")
_TOLD: Final = re.compile(r"(?:我|俺|咱)(?!想|要|该|能|可以)[^，。\s]{5,}[^？?]*$")


def without_asking(text: str) -> str:
    """The sentence without the clauses at its end in which the assistant is told what to do.

    A question at the end stays, for it says what the rest is about: 我下月去喀什，带什么药.
    """
    for place in reversed(list(_CLAUSES.finditer(text))):
        said, told = simplified(text[place.end() :].strip()), text[: place.start()]
        asks = _ASKING.match(said) and not _GOES_ON.search(said)
        if not asks or len(told) < 6 or is_question(told) or is_request(told):
            break
        text = told
    first = _CLAUSES.search(text)
    if first and _ASKING.match(simplified(text)) and _TOLD.match(simplified(text[first.end() :])):
        text = text[first.end() :]  # 你帮我排个计划 我每天只有两小时: what it is asked for
    return text


def is_reaction(text: str) -> bool:
    """Whether the sentence only reacts, greets, thanks or praises the other."""
    bare = re.sub(r"[\s。.！!~～…]+$", "", simplified(text))
    return len(re.findall(r"\w", bare)) < 2 or bool(
        _REACTION.match(bare) and not re.search(r"\d", bare)
    )


def is_statement(text: str) -> bool:
    """Whether the sentence says something about somebody or something in particular."""
    return len(re.findall(r"\w", text)) >= 4 and bool(
        _ABOUT.search(simplified(text)) or re.search(r"\d", text) or "我" in text or len(text) >= 8
    )
