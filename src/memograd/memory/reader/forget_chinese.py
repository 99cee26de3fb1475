"""Chinese requests to forget: what is to be forgotten, told by the form of the sentence.

    能不能把我说过的工资忘掉？      工资
    我的血型，请别再记了。          我的血型
    就当我没提过离婚的事。          离婚的事
    别记这个：我的密码是1234。      我的密码是1234

我忘了带钥匙, 别忘了 and 把最后一句删掉 ask for nothing of the kind. Invariant: the tables of
requests and of ordinary talk in `tests/memory/test_reader_forgetting.py`. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import simplified

_ASK: Final = (
    r"(?:(?:我(?:还是|真的|也)?(?:很|非常)?(?:希望|想让|想请|想要|要求|宁愿|请求|拜托|求|想叫"
    r"|需要)[你您]"
    r"|希望|请|麻烦|拜托|烦请|劳驾|有劳|还是|最好|那就|那么|那|就|现在|顺便|另外|对了|也|能不能"
    r"|能否|能"
    r"|可不可以|可以|可否|应该|帮我|帮忙|替我|给我|你|您|都|先|直接|赶紧|尽快|立刻|马上|全都?"
    r"|彻底|永久"
    r"|干脆|一定|务必|行行好|啊|呀)[，,\s]*)"
)
_NOT: Final = (
    r"(?:(?:请|麻烦|拜托|以后|从现在起|那|就|你|您|都|也|还是"
    r"|希望[你您]?|我希望[你您]|我想请[你您]|能不能"
    r"|可不可以|可以|最好|帮我|千万)[，,\s]*)*"
    r"(?:别|不要|不用|不必|无需|无须|不需要|没必要|用不着|没有必要|甭|勿"
    r"|不想让[你您]|我不想让[你您]"
    r"|我不希望[你您]|不希望[你您]|我不要[你您]|我不愿意?[你您]|停止|不应该)(?:再|继续|一直|总是"
    r"|老是)*"
)
_KEEP: Final = (
    r"(?:记(?:住|着|得|下来?|录|在心[里上]|挂)?|保存|存储|存着|存下|保留|留着|留存|留下|留底|惦记)"
    r"(?:着|了)?"
)
_FORGET: Final = r"(?:忘掉|忘了|忘记|忘却|忘光|忘|遗忘)(?:了|掉)?"
_DELETE: Final = (
    r"(?:删掉|删除|删去|删了|删|抹掉|抹去|抹除|清除|清掉|清理掉|清空|去掉|擦掉|擦除|划掉|移除"
    r"|撤回|撤销"
    r"|撤掉|销毁|丢掉|消除|拿掉)(?:了|掉)?"
)
_MEMORY: Final = (
    r"从[你您]?的?(?:长期)?(?:记忆|记录|笔记|脑子|脑海|备忘录?|档案|数据库|资料|存储|心)"
    r"(?:[里中内]面?|库)?(?:的)?"
)
_TIME: Final = (
    r"(?:之前|以前|刚才|刚刚|刚|上次|昨天|前天|前面|先前|早先|曾经|那天|上周|上个?月|前几天|早上"
    r"|今天|过去"
    r"|原来|前阵子|前段时间|当时|最近|之前曾|已经|方才)"
)
_SAYING: Final = (
    r"(?:(?:跟|和|对|向|同|给)[你您](?:说|提|讲|聊)|告诉(?:过)?[你您]?|说|提|讲|透露|聊|交代"
    r"|提供给[你您])"
    r"(?:过|到|起|及|了)*"
)
# What was said, what is known of it: what stands behind is the topic.
_SAID: Final = (
    rf"(?:(?:关于|有关|那条|这条|那个|所有|一切)*(?:我{_TIME}*|{_TIME}+我?){_SAYING}的?"
    r"(?:(?:那些|这些|所有)?(?:话|事情?|内容|信息)?里?(?:关于|有关|,|，|：|:)?)?(?:所有"
    r"|一切)?(?:关于|有关)?"
    r"|(?:所有|一切)?[你您](?:所)?(?:记得|记住|知道|记录|记下|保存|存|了解|掌握)(?:下来|到|过"
    r"|着)?的?"
    r"(?:所有|一切|那些)?(?:关于|有关)|(?:那条|这条|那些|所有|一切|全部|任何|和|跟|与)*(?:关于"
    r"|有关)"
    r"|(?:所有|一切|全部)(?:和|跟|与))"
)
_REGRET: Final = (
    rf"我(?:真的?|实在|本来?|当初|其实)*(?:不该|不应该?|后悔|悔不该|不小心|没打算"
    rf"|不是故意){_TIME}*{_SAYING}(?:[你您])?"
    r"(?:了|的)?(?:关于|有关|说)?[，,：:]?"
)
_RESULT: Final = (
    r"(?:吧|了|好吗|好么|行吗|可以吗|好不好|行不行|可以么|啊|呀|哦|谢谢|吗|一下|掉|就行)*"
)
_IT: Final = r"(?:它|它们|她|他|这个|那个|这些|那些|这件事|那件事|这事|这一点|这条)?"
_ACT: Final = rf"(?:(?:把|将){_IT})?(?:给|都|全部?|彻底|永久|统统)*(?:{_FORGET}|{_DELETE}){_IT}"
_VOID: Final = (
    r"(?:不算数?|作废|当我没(?:有)?(?:说|提|讲)(?:过)?|别当真|不要当真|收回|取消|不作数|无效"
    r"|算我没说|都是假的"
    r"|就?当(?:作|做)?[你您]?没(?:有)?(?:听(?:过|见|到|说过?)|说过|这回事|这事|发生过?)"
    r"|别放在心上)"
)
_TOPIC: Final = r"(?P<what>.{2,40}?)"
# What is about to be said: 别记这个：我的密码是1234
_NEXT: Final = (
    r"(?:(?:以下|下面|接下来|后面)(?:要?说)?的?(?:这[个些条段句])?(?:内容|话|信息|事情?)?"
    r"|这(?:个|些|条|段话?|句话?|件事情?|事儿?|一点))"
)
_FORMS: Final = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        (
            "said",
            rf"^(?:{_ASK})*(?:把|将){_TOPIC}{_MEMORY}(?:给|都|全部?|彻底)*(?:{_FORGET}|{_DELETE})$",
        ),
        ("said", rf"^(?:{_ASK})*{_MEMORY}(?:把|将)?{_TOPIC}(?:{_FORGET}|{_DELETE})$"),
        ("said", rf"^(?:{_ASK})*{_MEMORY}(?:{_FORGET}|{_DELETE}){_TOPIC}$"),
        ("bare", rf"^(?:{_ASK})*(?:把|将){_TOPIC}(?:给|都|全部?|彻底|永久)*{_FORGET}$"),
        ("own", rf"^(?:{_ASK})*(?:把|将){_TOPIC}(?:给|都|全部?|彻底|永久)*{_DELETE}$"),
        (
            "said",
            rf"^(?:{_ASK})*(?:{_FORGET}|{_DELETE})(?:一下)?[：:，,]?(?P<what>{_SAID}.{{2,40}}?)$",
        ),
        ("bare", rf"^(?:{_ASK})+{_FORGET}(?:一下)?[：:，,]?{_TOPIC}$"),
        ("own", r"^(?:忘掉|忘记|忘了)(?P<what>我(?!的?(?:要|想|是|在|又|刚|带|把)).{2,40}?)$"),
        ("own", rf"^(?:{_ASK})+{_DELETE}(?:一下)?[：:，,]?{_TOPIC}$"),
        ("said", rf"^{_NOT}{_KEEP}[：:，,]?(?P<what>{_SAID}.{{2,40}}?)$"),
        ("own", rf"^{_NOT}{_KEEP}[：:，,]?(?P<what>(?:我(?!说)|我们|关于|有关|咱).{{2,40}}?)$"),
        (
            "said",
            rf"^(?:{_ASK})*(?:就)?(?:当|当作|当做|权当|假装)(?:作|成)?我?(?:从来|从"
            rf"|根本)?(?:没有?|未)(?:曾)?"
            rf"{_SAYING}(?:[你您])?(?:关于|有关)?{_TOPIC}$",
        ),
        (
            "said",
            rf"^我?(?:想|要|得|必须|决定)?(?:收回|撤回"
            rf"|取消)(?:我)?(?P<what>(?:{_SAID}).{{2,40}}?)$",
        ),
        ("said", rf"^(?:{_ASK})*(?:撤回|收回|取消)(?P<what>我?(?:关于|有关).{{2,40}}?)$"),
        (
            "said",
            rf"^(?P<what>{_SAID}.{{2,40}}?)[，,]?(?:那句话?|这话|这句话?|全|都|就|现在|统统|已经"
            rf"|那是)*{_VOID}$",
        ),
        ("said", rf"^我说过?{_TOPIC}[，,](?:那句话?|这话|这句话?|全|都|就|现在)*{_VOID}$"),
        ("regret", rf"^{_REGRET}{_TOPIC}[，,；;。]+(?:{_ASK}|{_NOT})*(?:{_ACT}|{_KEEP}{_IT})$"),
        (
            "said",
            rf"^(?:{_ASK})*(?:就)?(?:当|当作|当做)(?:作|成)?没(?:有)?听(?:过|见|到"
            rf"|说过?)(?:我)?(?:说的?)?{_TOPIC}$",
        ),
        (
            "own",
            rf"^我?不(?:想|愿意?|希望)(?:再)?(?:留着|留下|保留"
            rf"|让(?:[你您]|别人|任何人|大家)(?:再)?(?:记[住得着]|知道))"
            rf"{_TOPIC}$",
        ),
        ("said", rf"^我(?:想|要|希望|需要)(?:把|将){_TOPIC}{_MEMORY}(?:{_FORGET}|{_DELETE})$"),
        (
            "said",
            rf"^我(?:想|要|希望|需要|决定)(?:{_DELETE}|收回|取消)(?P<what>{_SAID}.{{2,40}}?)$",
        ),
        ("own", rf"^(?:{_ASK})*(?:{_FORGET}|{_DELETE}){_IT}(?:吧|了)*[，,：:]+{_TOPIC}$"),
        (
            "named",
            r"^(?P<what>[^，,]{2,6}的[^，,]{1,14}?)[，,]?(?:请|麻烦|拜托|希望"
            r"|[你您]可以|能不能|可不可以|可以请)"
            rf"(?:{_ASK})*(?:{_ACT}|{_NOT}{_KEEP}{_IT})$",
        ),
        ("turned", rf"^{_TOPIC}[，,][^，,]{{2,14}}[，,](?:{_ASK})*{_ACT}$"),
        ("turned", rf"^{_TOPIC}[，,](?:就|都|全)*{_VOID}$"),
        ("others", rf"^{_NOT}{_KEEP}{_TOPIC}$"),
        ("bare", rf"^{_NOT}{_KEEP}{_NEXT}?[，,：:；;。—]+(?P<what>.{{2,80}})$"),
        ("bare", rf"^{_NEXT}(?:{_ASK})*{_NOT}{_KEEP}[，,：:；;。—]+(?P<what>.{{2,80}})$"),
        (
            "turned",
            rf"^{_TOPIC}[，,、：:;；—\s]*(?:{_ASK})+{_ACT}$",
        ),
        ("turned", rf"^{_TOPIC}[，,、：:;；—\s]*(?:{_ASK})*{_NOT}{_KEEP}{_IT}$"),
    )
)
_OF_WORK: Final = re.compile(
    r"文字|句(?!话)|段落|[这那]段(?!话)|文章|邮件|代码|照片|图片|相片|文件|作业|表格|消息|应用"
    r"|软件|[一二三四五\d]行|[一二三四五\d]列"
    r"|朋友圈|聊天|浏览|视频|闹钟|提醒|账号|帐号|微信|日程|(?<!名)字$"
)
_PERSONAL: Final = re.compile(
    r"我|咱|关于|有关|信息|记录|资料|说|告诉|提|讲|[这那]一?条|[这那]件事"
)
_THEME: Final = re.compile(rf"^(?:{_SAID}|我的|我们的|我(?=.{{1,8}}的)|那条|这条)")
_BOUND: Final = re.compile(
    r"^(?:我(?:昨天|今天|刚|差点|不小心|已经|又|老|总|经常|想|要|在)|[他她]|老师|妈妈|爸爸)"
)
# 别再记着李娜的生日 names somebody's property, 别再记着那些不开心的事 does not.
_OTHERS: Final = re.compile(r"^[^那这].+(?:的.+|在哪|住在|是谁|什么|哪[个所里家])")
_FEELING: Final = re.compile(r"开心|高兴|难过|伤心|过去|仇|烦|气|恨|不好的|坏|错")
_TAIL: Final = re.compile(
    r"(?:的)?(?:这件事情?|那件事情?|这事儿?|那事儿?|这个信息|相关信息|的?信息|的?记录|的?记忆"
    r"|这条|这一点|这回事"
    r"|的?内容|这些话|这句话|那句话|的?说法|的话|的?一切|的?资料|的?所有内容)$"
)
_NOTHING: Final = frozenset(
    [
        "这个",
        "那个",
        "这些",
        "那些",
        "这件事",
        "那件事",
        "一切",
        "它吧",
        "什么",
        "的话",
        "的事",
        "自己",
        "的人",
    ]
)


def request_to_forget(text: str) -> tuple[str, bool] | None:
    """What is to be forgotten, as the speaker words it, and whether the request is unmistakable.

    `忘掉我住在北京` gives 我住在北京. Unmistakable are those that speak of what was said or noted;
    others count only where an assistant is spoken to. None for all other sentences.
    """
    original = re.sub(r"[\s。.！!？?~～…]+$", "", text.replace(" ", ""))
    bare = simplified(original)
    candidates = [_without_end(bare)]
    # "我的旧邮箱不用记了，请删掉": the last clause only says it once more.
    head, comma, last = bare.rpartition("，")
    if comma and re.fullmatch(
        rf"(?:{_ASK}|{_NOT})*(?:{_ACT}|{_KEEP})?{_RESULT}(?:谢谢[你您]?)?", last
    ):
        candidates.insert(0, _without_end(head))
    for sentence in candidates:
        for name, form in _FORMS:
            found = form.match(sentence)
            if found is None or not _asks(name, found["what"]):
                continue
            what, told = _topic(found["what"])
            if what is not None:
                place = bare.find(what)  # the same characters as they were written
                what = original[place : place + len(what)] if place >= 0 else what
                return what, name in ("said", "regret") or told
    return None


def asks_to_forget_next(text: str) -> bool:
    """Whether a sentence asks not to keep what comes behind it: 下面的话不要记。"""
    bare = re.sub(r"[\s。.！!？?~～…：:，,]+$", "", simplified(text.replace(" ", "")))
    asked = rf"{_NOT}{_KEEP}{_NEXT}|{_NEXT}(?:{_ASK})*{_NOT}{_KEEP}"
    return re.fullmatch(asked, _without_end(bare)) is not None


def asks_to_forget_that(text: str) -> bool:
    """Whether a sentence asks to forget the one before it: 请删掉。"""
    bare = re.sub(r"[\s。.！!？?~～…]+$", "", simplified(text.replace(" ", "")))
    bare = _without_end(bare)
    idle = re.fullmatch(r"(?:那|就|都)*忘(?:记|掉)?", bare)
    asked = rf"(?:{_ASK}|[，,])*(?:{_ACT}|{_VOID})|{_IT}(?:就|都|也)*{_NOT}{_KEEP}{_IT}"
    return idle is None and re.fullmatch(asked, bare) is not None


def _without_end(text: str) -> str:
    while (
        shorter := re.sub(
            r"(?:[，,]?(?:谢谢[你您]?|拜托|好吗|好么|行吗|可以吗|好不好|行不行|吧|吗|啊|呀|哦|了"
            r"|就行|就好|一下|可以么))$",
            "",
            text,
        )
    ) != text:
        text = shorter
    return text


def _asks(name: str, what: str) -> bool:
    if name == "said":
        return not _BOUND.match(what)
    if name == "named":
        return not (_OF_WORK.search(what) or _BOUND.match(what))
    if name == "own":
        return _PERSONAL.search(what) is not None and not _OF_WORK.search(what)
    if name == "others":
        return _OTHERS.search(what) is not None and not _FEELING.search(what)
    if name == "turned":
        stray = _BOUND.match(what) or _OF_WORK.search(what)
        return _THEME.match(what) is not None and not stray
    return True


def _topic(what: str) -> tuple[str | None, bool]:
    """What is to be forgotten without 我说过的 and 这件事 around it, and whether the first was."""
    bare = re.sub(rf"^我?{_SAID}[：:，,]?", "", what) if re.match(rf"^我?{_SAID}", what) else what
    bare = re.sub(r"^(?:[这那](?:件|个)?事情?|[这那]一?[条点])[，,：:]?|^就是", "", bare)
    bare = re.sub(r"^就是", "", bare.lstrip("，,：:"))
    told = bare != what
    bare = _TAIL.sub("", bare).strip("，,：: 的") or bare
    return (bare if len(bare) >= 2 and bare not in _NOTHING else None), told
