"""What the words of a message sound like: a correction, a denial, an addition, a bare request.

Invariant: cues decide nothing by themselves; a relation model says what is meant, and they how sure
it must be. Pure functions of texts, in English and Chinese.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import is_chinese
from memograd.memory.reader.fact import Heard
from memograd.memory.reader.idle import DREAMT
from memograd.memory.statements import parse_statement

CORRECTS: Final = re.compile(
    r"^\W*\*|\*\W*$|\b(?:scratch that|i mean|i meant|meant to|no wait|wait[,.! ]|oops|whoops|typo"
    r"|correction|actually"
    # "Sorry to hear about Ron" corrects nothing.
    r"|sorry(?! (?:to (?:hear|see|learn)|(?:about|for) (?:your|his|her|their|the loss))\b)"
    r"|soz|my bad|mistyped|misspoke|fat.?finger|autocorrect"
    r"|nope|(?:scrap|strike) that|misread|muddled|silly me|did i say"
    r"|i wrote(?! (?:it|that|this|them|everything) (?:all )?down)"
    r"|i should (?:say|have said)"
    r"|wrong (?:line|row|one|way|key)|should (?:read|say|have (?:read|said|been))"
    r"|corrected|misremembered|apologies|forgive me|strictly speaking|to be precise"
    r"|make that|i said .* but|mix(?:ed)? .{1,12} up|edit:|, not |\*\w+)\b|\w\*"
    r"|^\W*[说說記记写寫][大小多少早晚高低]了[，,]"
    # "Just looked at the booking, it's Stansted": it has been so from the beginning.
    r"|\b(?:checked|looked|re-?read|had a look)\b(?! (?:like|after|forward|out))[^.,;:!?]{0,40}"
    r"(?:[,;:]? and|[,;:]| -)? ?(?:it'?s|it is|it says)\b"
    r"|[说說讲講記记打写寫搞弄看听聽念敲][错錯混反岔]|嘴瓢|口误|口誤|更正|纠正|糾正|不对|不對|不是.{1,10}是"
    r"|应该是|應該是|手滑|[错錯]了|等等|哦不|噢不|[❌✅]",
    re.IGNORECASE,
)
FAINT: Final = re.compile(r", not |\b(?:actually|autocorrect)\b|等等", re.IGNORECASE)
"""Of these cues, the ones that people also use where they correct nothing."""
DENIES: Final = re.compile(
    r"\b(?:joke|joking|kidding|teasing|messing with|ma(?:de|king) (?:that|it) up"
    r"|not (?:true|serious)|i lied|(?:was|is|'s) an? (?:\w+ )?(?:fib|lie|porky|bluff)"
    r"|pull(?:ed|ing) (?:your|ur|ya) leg|w[io]und(?:ing)? (?:you|u) up"
    r"|having (?:you|u) on)\b"
    r"|开玩笑|玩笑|吹牛[的呢啦]|逗你|骗你|騙你|瞎说|瞎編|瞎编|胡说|胡說|(?<![真像装裝])(?<!真的)假的(?![吗嗎?？])|唬你",
    re.IGNORECASE,
)
DENIED: Final = re.compile(
    r"\W*(?:(?:ha|lol|lmao|ok|no|nah|just|i'?m|i was|was|only|totally"
    r"|哈|嘻|嘿|其实|刚才|刚刚|我|是)\W*)*"
    rf"(?:{DENIES.pattern})",
    re.IGNORECASE,
)
"""A message that begins with a denial, and so denies the message before it."""
_SECOND: Final = r"second(?! (?:day|week|month|year|time|thoughts?|opinion|floor|owner|half)\b)"
_SECOND_ZH: Final = "第二(?![天年月周次名题章段行页日])"
ADDS: Final = re.compile(
    r"^\W*(?:and|plus|oh and|also)\b|\b(?:also|as well|too|add(?:ed|s|ing)?|another|on top of"
    rf"|in addition|besides|along with|{_SECOND}|extra|both)\b"
    rf"|也|还有|另外|再加|加上|又|同时|除了|外加|添了|多了|新增|{_SECOND_ZH}",
    re.IGNORECASE,
)
ADDS_SURELY: Final = re.compile(
    r"^\W*(?:and|plus|oh and|also)\b|\b(?:also|as well|add(?:ed|s|ing)?|another|on top of"
    rf"|in addition|besides|along with|{_SECOND}|extra)\b|(?<!me )\btoo(?=\W*$|\s*[.,!?;])"
    rf"|还有|另外|再加|加上|同时|除了|外加|添了|新增|{_SECOND_ZH}|多了(?=[一两个只位条辆份门])"
    r"|[又也](?=[养买添加学报找开收认领接招租考办生装喂种爱会吃喝住做姓练有是在想喜去買報開認領學種會練養])",
    re.IGNORECASE,
)
"""Something more of a kind, for sure: "Too many" and 又涨了 are not."""
ALL_SAID: Final = re.compile(
    r"\b(?:everything|all)\b.{0,20}\b(?:said|told|mentioned|above)\b|(?:[说讲提]的|[说讲提]过的).{0,4}(?:全"
    r"|都)|全(?:部|都)?(?:忘|删)",
    re.IGNORECASE,
)
ASIDE: Final = re.compile(r",? (?:after all|these days|nowadays|at the moment)(?=[.!]*$)", re.I)
_NAMED: Final = re.compile(r"[A-Z]|\d")
_JUDGES: Final = re.compile(r"[最很太真好挺更超]|有点|非常|的$|得")


def only_faint(message: str) -> bool:
    """Whether it sounds like a correction by a word alone that people also use elsewhere."""
    faint = _FAINT_WORD.sub(" ", message)
    return CORRECTS.search(message) is not None and CORRECTS.search(faint) is None


_FAINT_WORD: Final = re.compile(r"\b(?:actually|autocorrect)\b|等等", re.IGNORECASE)


def comparable(old: str, new: str) -> bool:
    """Whether both name a value of one type: two names or numbers, or two other words.

    "in Boston" and "in a small apartment" are not, nor are 律师 and 最累的.
    """
    ours, theirs = parse_statement(new), parse_statement(old)
    if ours is None or theirs is None or not ours.same_subject(theirs):
        return False
    if ours.same_value(theirs):
        return True
    if is_chinese(new):
        return not _JUDGES.search(ours.value)
    return bool(_NAMED.search(ours.value)) == bool(_NAMED.search(theirs.value))


def of_other_kind(message: str, item: str) -> bool:
    """Whether both are plain statements of two properties: what one does, and where one lives."""
    ours, its = parse_statement(message), parse_statement(item)
    open_ = ("has", "is", "")
    return bool(
        ours and its and ours.slot != its.slot and ours.slot not in open_ and its.slot not in open_
    )


_NAME: Final = re.compile(r"(?!User\b)[A-Z][a-z]+|[\u4e00-\u9fff]+")
# The commonest ones; two subjects that begin with one are hardly one thing.
_FAMILY: Final = (
    "李王张張刘劉陈陳杨楊赵趙黄黃周吴吳徐孙孫胡朱林何郭罗羅梁宋郑鄭谢謝韩韓唐冯馮董萧程曹袁邓鄧许許傅沈曾彭吕苏蘇卢"
    "蒋蔡贾丁魏薛叶余潘杜戴钟汪田任姜范姚谭廖邹熊陆郝孔崔邱秦"
)
_CALLED: Final = re.compile(
    r"(?:.* )?(?!User\b|I\b)[A-Z][a-z]+(?: [A-Z][a-z]+)?"
    rf"|[{_FAMILY}][\u4e00-\u9fff]{{1,2}}"
)


def of_other_person(message: str, item: str) -> bool:
    """Whether both are plain statements of people by name, and not of one: 李婷婷 and 张伟."""
    ours, its = parse_statement(message), parse_statement(item)
    if ours is None or its is None:
        return False
    called = [_CALLED.fullmatch(one.subject) for one in (ours, its)]
    names = [set(_NAME.findall(found[0])) if found else set() for found in called]
    return all(names) and not names[0] & names[1]


def leaves_alone(heard: Heard, item: str) -> bool:
    """Whether words say that a message cannot close an item, whatever it looks like.

    It tells of another person, of what may be one day or would be or was dreamt, of an exception,
    answers another question, or grants what the item says (朝北就朝北吧).
    """
    if of_other_person(heard.whole, item) or _SUPPOSES.match(heard.own):
        return True
    theirs = _OF_ANOTHERS.match(heard.own)
    if theirs is not None and (theirs["who"] or theirs["zh"]) not in item:
        return True  # "Lena's is 2 November" says nothing of the user's birthday
    peer = _OF_PEER_ZH.match(heard.own)
    if peer is not None and peer["who"] not in item and _COUNTS_ZH.search(item):
        return True  # 阿伟跳槽去了字节，开到四万八
    if _ONCE.search(heard.own) or DREAMT.match(heard.own):
        return True
    if _HABIT.search(item) and _is_of_one_day(heard.own):
        return True
    granted = _GRANTS.search(heard.own)
    if granted is not None and granted[1] in item:
        return True
    answers = [ANSWERED.match(text) for text in (*(fact.text for fact in heard.facts[:1]), item)]
    return len(answers) > 1 and all(answers) and len({one.groups() for one in answers if one}) > 1


_DIED: Final = re.compile(
    r"(?<!\bif )(?P<who>[A-Z][a-z]+),? (?:(?:has|sadly|just|finally|suddenly|peacefully) )*"
    r"(?:passed away|died(?! (?:laughing|inside|again|down|on (?:the|level)|in (?:the )?game"
    r"|of (?:laughter|shame|boredom|embarrassment)|a (?:bit|little)|when\b)))\b"
    r"|(?P<zh>[\u4e00-\u9fff]{2,3}?)(?:[昨今前][天日晚]?[^，,。]{0,4})?(?:去世|过世|病死)了"
)


def tells_death(message: str, item: str) -> bool:
    """Whether a message says that the one whom an item calls by name has died."""
    return any(
        re.search(
            rf"\b(?:called|named) {found['who']}\b|'s \w+ {found['who']}\b"
            if found["who"]
            else rf"叫{found['zh']}(?![\u4e00-\u9fff])",
            item,
        )
        for found in _DIED.finditer(message)
    )


_OF_ANOTHERS: Final = re.compile(
    r"\W*(?:(?:and|but|oh|so) )?(?:my |our )?(?P<who>(?!(?:It|That|He|She|Who|What|There|Here|Let"
    r"|Today|Tomorrow|Mine)\b)[A-Z][a-z]+|(?:sister|brother|mum|mom|dad|wife|husband|son|daughter|friend"
    r"|partner|boss|neighbour|neighbor))['’]s (?:is|are|was) "
    r"|(?P<zh>(?:我)?(?:爸|妈|哥|姐|弟|妹|老公|老婆|儿子|女儿)|[小老阿][\u4e00-\u9fff])的是"
)
_OF_PEER_ZH: Final = re.compile(
    r"\W*(?:我的?|我们)?(?P<who>同事|朋友|室友|舍友|闺蜜|同学|邻居|发小|哥们儿?|前任"
    rf"|[小老][{_FAMILY}]|阿(?!姨)[\u4e00-\u9fff])"
    r"(?![的们和跟把给帮让叫问说])[^我俺咱。！？]*?[\d零〇一二两三四五六七八九十百千万]"
)
_COUNTS_ZH: Final = re.compile(r"[\d零〇一二两三四五六七八九十百千万]")
"""What is told of a friend with a number in it: no number of the user's changes by that."""
ANSWERED: Final = re.compile(
    r".{1,30}, asked \"(?P<q>.*)\", answered: |.{1,20}被问“(?P<zh>.*)”时回答："
)
"""An item that is an answer, with the question."""
_SUPPOSES: Final = re.compile(
    r"\W*(?:等以后|等哪天|哪天|要是|假如|万一|如果|倘若"
    r"|if (?:i|we) (?:ever|won|had)\b|one day (?:i|we)\b|in another life|suppose|imagine if"
    r"|(?:i )?dream(?:t|ed)|had a dream)",
    re.IGNORECASE,
)
_ONCE: Final = re.compile(
    r"就[这這]一?[回次](?!.*以后)|[只就]是[这這][回次]|只[限有][这這]一?[回次]|[临臨][时時](?:改|挪|[调調]|取消)"
    r"|下(?:周|次|回|个?星期)(?:起)?(?:照旧|照常|[还還]是老|恢复)"
)
"""What a habit makes an exception of stays a habit: 改到明天了，就这一回."""
_HABIT: Final = re.compile(r"每(?:天|日|周|週|个?月|個月|晚|早|年)|天天|固定|平[时時]|[从從][来來]")
_ONE_DAY: Final = re.compile(
    r"(?:^|[，,。！\s])[^，,。！\s]{0,3}?(?:[今昨前][天晚早日]|[这這]次|[刚剛][刚剛才])"
)
_FROM_NOW: Final = re.compile(
    r"[从從][^，。]{0,8}起|[开開]始|[以往今][后後]|[减減加][到成量]|改|[换換]|不再|[辞辭停退搬戒卖賣丢丟新]"
    r"|分(?:手|了|开|開)|取消|[没沒]了|以前|更正|[错錯]"
)
"""今天七点才起 says nothing against 每天五点起床; 从今天起 does."""
_UNLIKE: Final = re.compile("[才就没沒忘]")
"""How an exception is told: late, early or left out. 昨天老板给我加到每天三场 is none."""
_GRANTS: Final = re.compile("([\u4e00-\u9fff]{1,6})就\\1")


def _is_of_one_day(message: str) -> bool:
    """Whether the message tells how one day was unlike the others, and of nothing that stays so."""
    told = _ONE_DAY.search(message) and _UNLIKE.search(message)
    return told is not None and _FROM_NOW.search(message) is None


def is_elliptic(message: str, item: str) -> bool:
    """Whether the message gives a bare value, and no statement with a subject of its own.

    "it's B27, misread the board" does; 小李生日是5月1号 tells something of somebody else.
    """
    for clause in re.split(r"[,.!?;，。！？；]+(?!\d)", message):
        found = re.search(r"\d|[一二三四五六七八九十]", clause)
        if found is None:
            continue
        before = clause[: found.start()]
        if is_chinese(item) or is_chinese(message):
            return len(before.strip()) <= 4
        return len(before.split()) <= 3
    return True


# 是五邑大学 五谷的五; 是张立，弓长张: which character is meant, said by a word that has it.
_EXPLAINS: Final = re.compile(
    r"(?<=[\u3400-\u9fff])[\s，,、。（(]+"
    r"(?:[\u3400-\u9fff]{1,4}的|[\u3400-\u9fff]{2})(?P<char>[\u3400-\u9fff])(?:字|那个)?[)）]?"
    r"(?=$|[\s，,。！!])"
)


def without_explained(message: str) -> str:
    """A Chinese message without the clauses that only say which character a value has."""
    return _EXPLAINS.sub(
        lambda m: "" if m["char"] in re.split(r"[\s，,、。]+", message[: m.start()])[-1] else m[0],
        message,
    )


_SWAPS: Final = re.compile(
    r"\b(?:other way (?:a?round|about)|wrong way (?:a?round|about)|vice versa|back to front"
    r"|(?:mixed|muddled|switched|swapped|crossed) (?:them|these|those|the two|both)"
    r"(?: (?:up|round|around|over))?"
    r"|(?:got|have|had) (?:them|these|those|the two|both) (?:mixed(?: up)?|muddled(?: up)?"
    r"|backwards?|reversed|swapped|switched|crossed)"
    r"|(?:swap|switch|flip|reverse) (?:them|those|these|the two)(?: (?:a?round|over))?"
    r"|(?:it'?s|that'?s|is|was) (?:reversed|backwards|swapped|flipped))\b"
    r"|[说說记記写寫搞弄讲講](?:刚好|正好|全)?(?:[反倒]|颠倒|顛倒)了?"
    r"|(?:刚好|正好|^\W*(?:[哎呀额呃啊哦]+\W*)?)(?:(?:相?反|颠倒|顛倒|倒过来)了?)+\W*$"
    r"|反过来|反過來|倒过来才对|[对對互调調][换換]一?下|(?:俩|两个|兩個)[^，,。]{0,3}(?:[反混]了|[换換]过来|颠倒)",
    re.IGNORECASE,
)
_FILLS_ZH: Final = re.compile("[哎呀额呃啊哦噢嗯不对我又刚才了]")
_FEW: Final = 3  # words


def only_swaps(message: str) -> bool:
    """Whether a message says that two things were taken for each other, and no more: "oops, other
    way round", 哎说反了."""
    rest = _SWAPS.sub(" ", message)
    told = re.search(r"[\d\u4e00-\u9fff]", _FILLS_ZH.sub("", rest)) is not None
    return rest != message and not told and len(re.findall(r"[\w']+", rest)) <= _FEW


_SHORT: Final = 40  # characters of a message that may be a value alone


def corrects_last(heard: Heard, relation: str, *, recent: bool) -> tuple[bool, bool]:
    """Whether a message says that it puts right what was just said, and whether it may: it says so,
    or is short ("241*")."""
    words = CORRECTS.search(heard.own) or _SWAPS.search(heard.own)
    says = recent and relation != "end" and words is not None
    short = len(heard.own) <= _SHORT and relation in ("correct", "retract")
    return says, says or (recent and short)
