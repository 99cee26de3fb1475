"""Requests to forget: what is to be forgotten, told by the form of the sentence.

    Could you delete what I told you about my salary?     my salary
    Don't save this: my PIN is 1234.                      my PIN is 1234
    我的血型，请别再记了。                                  我的血型

"I forgot my keys", "Delete the last row" and 别忘了 ask for nothing of the kind: a verb of
forgetting counts only behind asking words, and with something personal, said or noted behind it. A
relation model sees more requests than these forms; they serve the rules, and name the topic.

Invariant: the tables of requests and of ordinary talk in `tests/memory/test_reader_forgetting.py`.
Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import language_of, simplified

LONGEST: Final = 200  # characters; a longer sentence is a story
_STAYS: Final = re.compile(
    r"\b(?:can|may|should) stay\b|\bstays\b(?! (?:with|between|among)\b)"
    r"|\byou (?:can|may|should)(?: still)? (?:have|keep|remember|note|store|save)\b"
    r"(?! (?:it|this|that) (?:out|to yourself|quiet))"
    r"|(?<!n't )(?<!dont )(?<!not )(?<!never )\bkeep (?:(?:just|only) )?"
    r"(?:(?:the|my|our|his|her|that)\b|(?-i:[A-Z]\w))"
    r"|^\W*(?:just|only) (?:keep|remember|note|save|store|that (?:I|my|we|our)\b)"
    r"|\b(?:public|common) knowledge\b|\bno secret\b"
    r"|\bleave (?:the (?:rest|others?)|everything else"
    r"|(?:the|my) [\w-]+ (?:where it is|in|alone|as is))\b"
    r"|\b(?:fine|ok|okay|all ?right)(?!\s*\?)(?:,? (?:obviously|of course|though|tho|by me|with me"
    r"|to (?:keep|have|store|remember)|thanks|thx|ta|please|pls|however|then))*\W*$"
    r"|\bstands\b|\b(?:don'?t|do not|doesn'?t) mind\b"
    r"|(?<![别別勿甭])(?<!不[要必用])(?<!没必要)(?:可以留|(?<![不没必])要留|留[着著]|保留)"
    r"|无所谓|無所謂|[无無]妨|没事|(?<![跟和与][我他她])(?:没关系|沒關係)|不要紧|不用[删刪]|还是要记|^[^别別不勿甭]*[照存][留存着著]|(?<!不)可以[。!！]*$"
    r"|(?:别的|其他的?|其余的?)(?:随便|隨便|都行|无妨)|照[旧舊说說样樣常]|倒?是真的|随便[。！!]*$"
    r"|[记記]个?[^，,。]{1,8}就(?:得了|行|好|够)|你就[记記留存](?!住)"
    r"|(?<!不)可以[记記]|(?:该|該|还是|還是)(?:要|得)?[记記](?!不)|不[碍礙](?:事|的)?[。!！]*$"
    r"|(?<![别別勿甭不])[只光](?:用|要|需|管)?(?:[记記留存]|保留)"
    r"|^[^别別不勿甭删刪忘抹]*[记記留存][^，,。]{0,14}就(?:可以|行|好|够|夠|得|成)了?[。!！]*$"
    r"|[别別](?:忘|删|刪|丢|丟)(?!不)|的事(?:接着|接著|继续|繼續)[说說聊讲講]"
    r"|照去|(?:继续|繼續|照常|照做|照办)[。！!]*$"
    r"|(?<!不)可以(?:接着|继续)?[聊谈談说說提講讲](?:的|了)?[。!！]*$|公开的[。!！]*$|大家都知道",
    re.IGNORECASE,
)
_NONE_STAYS: Final = re.compile(
    r"\b(?:nothing|none|neither|not any\w*|no (?:mention|word|trace|record|part|bit)s?) [^,.;!?]*"
    r"\b(?:can|may|should) stay\b",
    re.IGNORECASE,
)


def says_what_stays(clause: str) -> bool:
    """Whether a clause of a request to forget says what is to stay: "The dog can stay", 只记我的狗.

    "Nothing about the ring may stay" asks.
    """
    return _STAYS.search(clause) is not None and _NONE_STAYS.search(clause) is None


MAY_ASK: Final = re.compile(
    r"\b(?:forget|delet|eras|wip(?:e|ing)|remov|scrub|strik|scrap|drop|clear|scratch|bin|lose|redact"
    # "Keep going!" and "Keep it up!" ask for nothing of the kind.
    r"|keep(?! (?:\w+ing|(?:\w+ ){1,2}going|(?:\w+ ){0,3}up|on|at it|me|us|calm|in touch)\b)"
    r"|un-?(?:see|say|remember|learn|hear|note|save|record|tell)|ignor|disregard|discard|purg|void|expung|withdraw|retain"
    r"|cut|leave|kept|stor(?:e|ing)|sav(?:e|ing)|record|remember(?!ed|,)|memor|notes?|file|log|list|writ"
    r"|never ?mind|rather (?:you|u)|off the|out of|get rid|cross (?:\w+ )?out|hold on|hang on"
    r"|pretend|vanish|disappear|bury|gone\b|as (?:if|though)\b"
    r"|never (?:brought|happened|reached|came)|rub(?:bed|bing)? (?:\w+ ){0,4}out"
    r"|take (?:\w+ ){0,4}(?:back|out|off)|did(?:n'?t| not) (?:say|hear|mention|tell))\w*"
    r"|忘|删|刪|抹|撤|移[除掉走]|销|銷|[去划擦清拿][掉了]|免了|不[必用要]|[别別甭勿唔莫]|当|當|作[废廢罢罷]"
    r"|留|存|记|記|收回|保密|扔|丢|剔|空气|空氣|耳旁风|耳边风",
    re.IGNORECASE,
)
"""A word that requests to forget, or not to keep, have; most sentences with one ask nothing."""


def asked_for(text: str) -> str:
    """A request to forget without the clauses that say what is to stay."""
    return "".join(one for one in _clauses(text) if not says_what_stays(one))


def _clauses(text: str) -> list[str]:
    return re.split(r"(?<=[,.;!?，。；！？])|(?= but )|(?=但)", text)


def request_to_forget(text: str) -> tuple[str, bool] | None:
    """What is to be forgotten, as the speaker words it, and whether the request is unmistakable.

    Unmistakable are those that speak of what was said or noted; others count only where an
    assistant is spoken to. None for all other sentences.
    """
    if len(text) > LONGEST:
        return None
    return _request_chinese(text) if language_of(text) == "zh" else _request_english(text)


def asks_to_forget_that(text: str) -> bool:
    """Whether a sentence asks to forget the one before it: `Please delete that.`

    "Forget it" alone says no more than "never mind".
    """
    if language_of(text) == "zh":
        bare = _bare_chinese(text)
        asked = rf"{_LEAD_ZH}(?:{_ACT}|{_VOID})|{_IT}[就都也]*{_NOT_ZH}{_KEEP_ZH}{_IT}"
        return not re.fullmatch(r"[那就都]*忘[记掉]?", bare) and bool(re.fullmatch(asked, bare))
    bare = _bare_english(text)
    it = r"(?:it|that|this|them|all (?:of )?(?:it|that|this))(?: again)?"
    asked = rf"{_LEAD}(?:(?:{_FORGET}|{_DROP}) {it}(?:{_NOTES})?|{_NOT}{_KEEP} {it})"
    idle = r"(?:oh |well |just |so )*(?:forget|drop|scratch|never ?mind)(?: about)? \w+"
    told = not re.fullmatch(idle, bare, re.I) or "please" in text.casefold()
    return told and re.fullmatch(asked, bare, re.I) is not None


def asks_to_forget_next(text: str) -> bool:
    """Whether a sentence asks not to keep what comes behind it: `Off the record.`"""
    if language_of(text) == "zh":
        asked = rf"{_NOT_ZH}{_KEEP_ZH}{_NEXT_ZH}|{_NEXT_ZH}{_NOT_ZH}{_KEEP_ZH}"
        return re.fullmatch(asked, _bare_chinese(text).rstrip("：:，,")) is not None
    return re.fullmatch(_AHEAD, _bare_english(text).rstrip(":,"), re.I) is not None


# English. Words that only ask: any number of them may stand before the verb.
_LEAD: Final = (
    r"(?:(?:please|kindly|just|oh|and|also|so|then|now|actually|hey|well|look|ok(?:ay)?|sorry|can"
    r"|could|will|would|you'd|you|we|i'd|i'm|i|me|it'd|it|be|grateful|great|nice|good|better|best"
    r"|lovely|glad|happy|if|like|want|need|love|prefer|appreciate|rather|feel|free|to|for|mind"
    r"|let's|go|ahead|may|should|must|have|might|simply|maybe|safely|asking|ask|wish|do)\b[, ]+)*"
)
_FORGET: Final = r"(?:forget(?:ting)?(?: all)?(?: about)?|(?:delet|eras|remov)(?:e|ing))"
_DROP: Final = (
    r"(?:(?:wip|strik)(?:e|ing)|clear(?:ing)?|drop(?:ping)?|scratch|purge|discard|undo|let go of"
    r"|get(?:ting)? rid of|tak(?:e|ing) (?:back|out)|withdraw|retract|ignor(?:e|ing)|disregard"
    r"|never ?mind|don't believe)"
)
_NOT: Final = (
    r"(?:(?:(?<!\bi )(?:don't|do not|didn't|did not|stop|never|no|needn't|shouldn't|not)"
    r"|(?<=\bi )(?:don't|do not|never|no longer)(?= (?:want|need|like)))(?: ever| need| have| want"
    r"| like| you| to| keep)* )"
)
_KEEP: Final = (
    r"(?:remember(?:ing)?|stor(?:e|ing)|sav(?:e|ing)|retain(?:ing)?|record(?:ing)?|hold on to"
    r"|keep(?:ing)? (?:an? |any )?(?:records?|notes?|track) of|(?:make a )?note(?: of)?|write down)"
)
_SAYING: Final = (
    r"(?:(?:ever |even |just |already )*(?:said|say|told|tell|mention(?:ed)?|shared?|wrote|talked)"
    r"(?: to)?(?: you)?(?: anything)?(?: earlier| before| yesterday| today| just now)*)"
)
_ABOUT: Final = r"(?: (?:about|of|on|regarding|concerning|that|where))?:?"
# What was said, what is known of it, and the note that was taken: what behind it is the topic.
_SAID: Final = (
    rf"(?:(?:(?:what(?:ever)?|everything|anything|all|that|(?:the|that) (?:thing|part|story|bit))"
    rf"(?: that)? )?(?:I|we)(?:'ve| have)? {_SAYING}{_ABOUT}"
    r"|(?:what(?:ever)?|everything|anything|all)(?: that)?(?: (?:you(?:'ve)?|was|is)"
    rf" (?:\w+ )?(?:know|have|remember|said|saved?|stored?|noted|known){_ABOUT}| about)"
    r"|(?:the|your|any|all|that|every) (?:\w+ )?(?:notes?|memor(?:y|ies)|records?|entr(?:y|ies)"
    rf"|info(?:rmation)?|facts?|details?)(?: you \w+)?{_ABOUT})"
)
_NOTES: Final = (
    r",? (?:from|in|out of|off) (?:your|ur|the) (?:\w+ )?"
    r"(?:memor(?:y|ies)|notes?|records?|files?|list)"
)
_PERSONAL: Final = (
    r"(?:that (?:I|my|we|our|(?-i:[A-Z]))|(?:about )?(?:my|our|where|who|what|which|how|when)\b"
    r"|the fact |(?:about )?(?-i:[A-Z])\w+'s )"
)
_REGRET: Final = (
    r"I (?:should not|shouldn't|wish I (?:had not|hadn't|had never)|regret|never meant to)"
    rf"(?: have)? (?:telling|saying|mentioning|{_SAYING})(?: you)?(?: that| about)? "
)
_AHEAD: Final = (
    rf"{_LEAD}(?:{_NOT}(?:{_KEEP} (?:this|the following)|(?:write|take|note) (?:this|it|that) down)"
    r"|(?:this is )?(?:strictly )?off the record)(?:,? (?:please|now))?"
)
_GONE: Final = r"(?:forgotten|deleted|erased|removed|wiped|struck|taken out)"
_END: Final = (
    r"(?:,? (?:please|thanks|thank you|ok|any ?more|any longer|now|again|for me|for good|forever"
    r"|completely|if you can|if possible|either|too))+$"
)
_FORMS: Final = tuple(
    (name, re.compile(rf"^{form}$", re.IGNORECASE))
    for name, form in (
        ("said", rf"{_LEAD}(?:{_FORGET}|{_DROP}) {_SAID} (?P<what>.+)"),
        ("said", rf"{_LEAD}pretend(?:ing)? (?:that )?(?:I|we) (?:never|didn't) {_SAYING}{_ABOUT}"
                 r" (?P<what>.+)"),
        ("said", rf"{_LEAD}{_NOT}{_KEEP} {_SAID} (?P<what>.+)"),
        ("said", rf"{_LEAD}(?:{_FORGET}|{_DROP}|take|leave|keep) (?P<what>.+?){_NOTES}"),
        ("said", rf"{_SAID} (?P<what>.+?) (?:no longer counts|doesn't count|is withdrawn)"),
        ("said", rf"{_AHEAD}(?:\s*(?:[,:;]|[-–—]+)\s*(?:but )?| but )(?P<what>.+)"),
        ("own", rf"{_LEAD}{_FORGET} (?P<what>{_PERSONAL}.+)"),
        ("own", rf"{_LEAD}{_NOT}{_KEEP} (?P<what>{_PERSONAL}.+?)(?:{_NOTES})?"),
        ("own", rf"{_LEAD}{_NOT}(?P<what>{_PERSONAL}.+?) (?:to be )?"
                rf"(?:remembered|stored|saved|kept)(?:{_NOTES})?"),
        ("own", rf"{_LEAD}(?P<what>{_PERSONAL}.+?) (?:(?:should|can|must|may|could|needs? to"
                rf"|has to|to) )?(?:now |please )?(?:be )?{_GONE}(?:{_NOTES})?"),
        ("turned", rf"(?:about )?(?P<what>.+?)(?:,|:|;| [-–—]) (?:but |so |and )?{_LEAD}"
                   rf"(?:(?:{_FORGET}|{_DROP}) (?:it|that|this|them)|{_NOT}(?:{_KEEP} "
                   r"(?:it|that|this|them)|(?:write|take|note) (?:this|it|that) down))"),
    )
)  # fmt: skip
_OF_WORK: Final = re.compile(
    r"\b(?:messages?|essays?|text|drafts?|paragraphs?|sentences?|e-?mails?(?! address)|accounts?"
    r"|files?|photos?|pictures?|apps?|browser|history|lines?|rows?|columns?|(?:my|this) code"
    r"|calendar|documents?|questions?|reminders?|comments?)\b(?! code)",
    re.IGNORECASE,
)
# "Forgetting my umbrella cost me an hour", "I want to forget my ex"
_NO_REQUEST: Final = re.compile(
    r"\w+ing\b|i (?:want|wish|try|need|have|must) to (?:forget|delete)", re.IGNORECASE
)
# "Remove my name from the email draft"
_ELSEWHERE: Final = re.compile(r", (?:i|let's|but)\b| (?:from|in) the \w+ \w+$", re.IGNORECASE)
_AROUND: Final = re.compile(
    rf" (?:that )?I(?:'ve)? {_SAYING}$|(?:{_NOTES})$|{_END}"
    r"|^(?:about )?(?:the fact )?(?:that )?(?:about )?(?=\w)",
    re.IGNORECASE,
)
_POINTS: Final = re.compile(
    r"(?:it|that|this|them|me|everything|all|the (?:rest|past)|\w{0,2})", re.IGNORECASE
)
# "Forget about dieting, I love cake": what follows the comma is no reason to forget.
_REASON: Final = re.compile(r"(?:(?:,| [-–—]|;) (?:I|it|that|it's|that's|this) .*| because .*)$")
_CAUSE: Final = re.compile(
    r"private|personal|secret|wrong|old|mistak|mixed|embarrass|joking|kidding|longer|regret"
    r"|sensitive|confidential|because",
    re.IGNORECASE,
)


def _bare_english(text: str) -> str:
    bare = " ".join(text.replace("’", "'").split()).rstrip(" .!?…")
    return re.sub(_END, "", bare, flags=re.I).rstrip(" .,!?")


def _request_english(text: str) -> tuple[str, bool] | None:
    bare = _bare_english(text)
    reason = _REASON.search(bare)
    if reason and _CAUSE.search(reason[0]):
        bare = bare[: reason.start()]
    if _NO_REQUEST.match(bare):
        return None
    for name, form in _FORMS:
        found = form.match(bare)
        if found is None:
            continue
        what = found["what"]
        owned = re.match(rf"(?:{_SAID} |{_REGRET}|{_PERSONAL})", what, re.I)
        stated = re.match(r"(?:about )?(?:that|where|wh\w+|how|the fact)\b", what, re.I)
        if name != "said" and (not owned or (not stated and _OF_WORK.search(what))):
            continue
        if name == "own" and _ELSEWHERE.search(what):
            continue
        topic = re.sub(rf"^(?:{_SAID} |{_REGRET})", "", what, flags=re.I)
        topic = _AROUND.sub("", _AROUND.sub("", topic)).strip(" ,.:;-–—")
        if _POINTS.fullmatch(topic):
            return None
        return topic, name == "said" or topic != re.sub(r"^that ", "", what)
    return None


# Chinese, by the same thought. Atomic groups: no run of asking words may take long.
_LEAD_ZH: Final = (
    r"(?>我?(?:还是|真的|很|非常)?(?:希望|想让|想请|想要|想|要|需要|宁愿)[你您]?|请|麻烦|拜托"
    r"|劳驾|还是|最好|那么|那|就|现在|也|能不能|能否|能|可不可以|可以|可否|帮我|替我|给我|[你您]"
    r"|都|先|直接|立刻|马上|全都?|彻底|永久|一定|务必|啊|以后|千万|[，,\s])*"
)
_NOT_ZH: Final = (
    rf"(?:{_LEAD_ZH}(?:别|不要|不用|不必|无需|无须|不需要|没必要|用不着|甭|勿"
    r"|我?不(?:想|希望|愿意?)(?:让?[你您])?|停止)(?>再|继续|一直|总是|老是|让[你您])*)"
)
_KEEP_ZH: Final = r"(?:记(?:住|着|得|下来?|录)?|保存|存着|存|保留|留着|留存|留下|惦记)(?:着|了)?"
_GONE_ZH: Final = (
    r"(?:忘掉|忘了|忘记|忘光|忘|删掉|删除|删去|删了|删|抹掉|抹去|抹除|清除|清掉|清空|去掉|擦掉"
    r"|划掉|移除|撤回|撤销|撤掉|撤下|抹了|销毁|清咗|刪咗|删咗)(?:了|掉)?"
)
_NOTES_ZH: Final = (
    r"从[你您]?的?(?:长期)?(?:记忆|记录|笔记|脑子|档案|数据库|资料)(?:[里中内]面?|库)?的?"
)
_TIME_ZH: Final = (
    r"(?>之前|以前|刚才|刚刚|刚|上次|昨天|前面|曾经|上周|前几天|早上|今天|当时|最近|已经)*"
)
_SAYING_ZH: Final = (
    r"(?:(?:[跟和对向同给][你您](?:说|提|讲|聊)|告诉(?:过)?[你您]?|说|提|讲|透露|聊)"
    r"(?>[过到起及了])*)"
)
_SAID_ZH: Final = (
    rf"(?:(?:关于|有关|[那这]条|所有)?(?:我{_TIME_ZH}|(?=[之以刚上昨前曾早今当最已]){_TIME_ZH}我?)"
    rf"{_SAYING_ZH}的?(?:关于|有关|[,，：:])?"
    r"|(?:所有|一切)?[你您]所?(?:记得|记住|知道|记录|保存)(?:的|下来)?(?:所有|一切)?(?:关于|有关)"
    r"|(?:[那这]条|[那这]些|所有|一切|全部)?(?:关于|有关))"
)
_REGRET_ZH: Final = (
    rf"我(?:真的?|实在|本来?)?(?:不该|不应该?|后悔|不小心){_TIME_ZH}{_SAYING_ZH}[你您]?了?"
)
_IT: Final = r"(?:它们?|他|她|[这那](?:个|些|件事|一点|条|事))?"
_ACT: Final = rf"(?:[把将]{_IT})?(?:给|都|全部?|彻底|永久)?{_GONE_ZH}{_IT}"
_VOID: Final = (
    r"(?:不算数?|作废|当我没(?:有)?[说提讲](?:过)?|别当真|收回|取消"
    r"|就?当[作做]?[你您]?没(?:有)?(?:听(?:过|见|到|说过?)|说过|这回事|这事|发生过?)"
    r"|当我(?:放屁|胡说|瞎说|冇[讲说](?:过)?|乱讲))"
)
_NEXT_ZH: Final = (
    r"(?:(?:以下|下面|接下来)的?(?:内容|话|信息|事情?)?|这(?:个|些|条|段话?|句话?|件事情?))"
)
_WHAT: Final = r"(?P<what>.{2,40}?)"
_FORMS_ZH: Final = tuple(
    (name, re.compile(rf"^{form}$"))
    for name, form in (
        ("said", rf"{_LEAD_ZH}[把将]{_WHAT}{_NOTES_ZH}(?:给|都|全部?)?{_GONE_ZH}"),
        ("said", rf"{_LEAD_ZH}{_NOTES_ZH}{_GONE_ZH}?{_WHAT}(?:{_GONE_ZH})?"),
        ("own", rf"{_LEAD_ZH}[把将]{_WHAT}(?:给|都|全部?|彻底|永久)?{_GONE_ZH}"),
        ("said", rf"{_LEAD_ZH}(?:就?当[作做成]?(?:我?从?来?)?没(?:有)?{_SAYING_ZH}"
                 rf"|就?当[作做]?没(?:有)?听(?:过|见|到)我?(?:说的?)?)(?:关于|有关)?{_WHAT}"),
        ("own", rf"{_LEAD_ZH}{_GONE_ZH}(?:吧|一下|[这那]一?[条点])?[：:，,]?"
                rf"(?P<what>(?!我(?:要|想|在|又|刚|带|把|没)).{{2,40}}?)"),
        ("own", rf"{_NOT_ZH}(?:{_KEEP_ZH}|知道)[：:，,]?{_WHAT}"),
        ("own", rf"我?(?:想|要|决定)?(?:收回|撤回|取消)我?(?P<what>{_SAID_ZH}.{{2,40}}?)"),
        ("said", rf"(?P<what>{_SAID_ZH}.{{2,40}}?)[，,]?(?:那句话?|这话|全|都|就|现在)?{_VOID}"),
        ("next", rf"{_NOT_ZH}{_KEEP_ZH}{_NEXT_ZH}?[，,：:；;。—]+(?P<what>.{{2,80}})"),
        ("next", rf"{_NEXT_ZH}{_NOT_ZH}{_KEEP_ZH}[，,：:；;。—]+(?P<what>.{{2,80}})"),
        ("turned", rf"{_WHAT}(?:[，,][^，,]{{2,14}})?[，,、：:;；—\s]*{_LEAD_ZH}"
                   rf"(?:{_ACT}|{_NOT_ZH}{_KEEP_ZH}{_IT})"),
    )
)  # fmt: skip
_OF_WORK_ZH: Final = re.compile(
    r"文字|句(?!话)|段落|[这那]段(?!话)|文章|邮件|代码|照片|图片|文件|作业|表格|消息|软件|[一二三四五\d][行列]"
    r"|朋友圈|聊天|浏览|视频|闹钟|提醒|账号|微信|日程|(?<!名)字$|(?:不?开心|难过|伤心|仇|烦)"
)
_OWNED_ZH: Final = re.compile(
    rf"^(?:{_SAID_ZH}|{_REGRET_ZH}|我的|我们|咱|我(?!不|忘|永远|昨天|差点|经常|老[是忘]|总|把|吃|记|的钥匙))|^[^我你他她那这，,]{{2,6}}的[^，,]"
)
_TAIL: Final = re.compile(
    r"(?:的)?(?:[这那]件事情?|[这那]事儿?|这个信息|相关信息|的?信息|的?记录|的?记忆|这条|这一点|这回事"
    r"|的?内容|[这那]句话|的?说法|的话|的?一切|的?资料)$"
)


_END_ZH: Final = (
    r"(?>[，,]?(?:谢谢[你您]?|拜托|好吗|好么|行吗|可以吗|好不好|[吧吗啊呀哦了]|就行|就好|一下))+$"
)
_POINTS_ZH: Final = re.compile(
    r"[这那](?:个|些|件事)|[以接]?下[面来]?|一切|什么|自己|的[话事人]|.?"
)


def _bare_chinese(text: str) -> str:
    bare = re.sub(r"[\s。.！!？?~～…]+$", "", simplified(text.replace(" ", "")))
    return re.sub(_END_ZH, "", bare)


def _request_chinese(text: str) -> tuple[str, bool] | None:
    bare, written = _bare_chinese(text), text.replace(" ", "")
    candidates = [bare]
    # "我的旧邮箱不用记了，请删掉": the last clause only says it once more.
    head, comma, last = bare.rpartition("，")
    if comma and re.fullmatch(rf"(?:{_NOT_ZH}|{_LEAD_ZH})(?:{_ACT}|{_KEEP_ZH})?", last):
        candidates.insert(0, _bare_chinese(head))
    for sentence in candidates:
        for name, form in _FORMS_ZH:
            found = form.match(sentence)
            if found is None:
                continue
            what = found["what"]
            if name in ("own", "turned") and (
                not _OWNED_ZH.match(what) or _OF_WORK_ZH.search(what)
            ):
                continue
            topic = re.sub(rf"^(?:我?{_SAID_ZH}|{_REGRET_ZH})[：:，,]?", "", what)
            topic = re.sub(r"^(?:[这那](?:件|个)?事情?|[这那]一?[条点])[，,：:]?", "", topic)
            told = topic != what
            topic = _TAIL.sub("", topic).strip("，,：: 的") or topic
            if _POINTS_ZH.fullmatch(topic):
                continue
            place = simplified(written).find(topic)  # the same characters as they were written
            topic = written[place : place + len(topic)] if place >= 0 else topic
            return topic, name == "said" or told
    return None
