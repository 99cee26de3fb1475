"""What a message asks of the memory, told by its words: to forget, not to save, to wipe everything.

A relation model says how surely a sentence wishes something to be forgotten; these words say it
where they are plain, and tell such a wish from talk ("never mind", "don't forget the milk").

Invariant: words decide nothing of what is remembered; they only say what is asked. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memograd.memory.language import is_chinese, simplified
from memograd.memory.reader.forget import (
    MAY_ASK,
    asks_to_forget_next,
    asks_to_forget_that,
    request_to_forget,
)
from memograd.memory.reader.sentences import split_sentences

EVERYTHING: Final = re.compile(
    r"\b(?:forget|delete|erase|wipe|clear|remove|purge)\b[^.!?]{0,25}\b(?:everything|all)\b"
    r"[^.!?]{0,30}\b(?:about me|know|of me|memor\w+|stored|saved)"
    r"|\b(?:wipe|clear|erase|reset|delete) (?:\w+ ){0,2}(?:your |the )?memory\b(?: of me)?[.! ]*$"
    r"|(?:忘掉|忘了|忘记|删除|删掉|删了|清除|清空|抹掉|刪除)[^。！？]{0,8}(?:所有|一切"
    r"|全部)[^。！？]{0,14}"
    r"(?:我|记忆|記憶|信息|资料|内容|东西)"
    r"|(?:把|将)?(?:所有|一切|全部)?[^。！？]{0,6}关于我的[^。！？]{0,8}(?:都"
    r"|全部?)[^。！？]{0,6}(?:忘|删|清)"
    r"|(?:清空|清除|重置)(?:你的?)?(?:所有|全部)?(?:记忆|記憶)",
    re.IGNORECASE,
)
# "We split the bills between us" asks for nothing.
_ASIDE: Final = (
    r"\boff the record\b"
    r"|(?:(?:^|[,.;:!?—–(-])\W*(?:(?:and|but|so|ok|well|just|strictly|only|this is) )*"
    r"|\b(?:stays?|keep (?:\w+ ){1,6}|kept|just|strictly|only|that['’]?s|it['’]?s|is) )"
    r"between (?:us|you and me)\b(?! (?:we|is|are|was|were|have|has|there)\b)"
)
TOLD_ASIDE: Final = re.compile(_ASIDE, re.IGNORECASE)
NOT_SAVED: Final = re.compile(
    rf"{_ASIDE}|\b(?:keep (?:this|that|it) (?:out of|to yourself)"
    r"|(?:do not|don'?t|never|no need to|without) (?:\w+ )?(?:sav|stor|remember|record|log"
    r"|keep)\w*\b"
    r"(?= (?:this|that|it|my|the|any|what|who|where|how|which|these|those|his|her|a record|in)\b"
    r"|\W*$)"
    r"|(?:do not|don'?t|never|no need to) (?:\w+ )?(?:not|jott?|writ)(?:e|ing)?"
    r" (?:this|that|it|these|those) down"
    r"|not for (?:the |your )?(?:memory|records?|file))"
    r"|(?:别|別|不要|不用|不必|请勿|勿|甭)[给帮替我你給幫]{0,2}(?:往?里?[写寫](?:进|進|下)|记|記"
    r"|存|保存|留)|[当當]我[没沒][说說]|就[当當]你?[没沒][听聽]"
    r"|仅此一次",
    re.IGNORECASE,
)
NOT_SAVED_AHEAD: Final = re.compile(
    rf"(?:{NOT_SAVED.pattern}|\bnot for your notes?)[^.!?。！？]{{0,30}}[:：]", re.IGNORECASE
)
RESUMES: Final = re.compile(
    r"\W*(?:(?:on|for) the record|for (?:the|your) notes?|(?:what )?you (?:can|may|should)"
    r" (?:\w+ )?(?:note|keep|save|remember)|(?:to|please) (?:note|save|remember)"
    r"|also|separately|anyway|any ?ways?|by the way|btw|besides|apart from that|other than that"
    r"|the rest|unrelated)\b"
    r"|\W*(?:另外|还有|還有|此外|对了|對了|除此|其他|至于|至於)",
    re.IGNORECASE,
)
BY_THE_WAY: Final = re.compile(
    r"\W*(?:oh |and |ps |p\.s\.? )*(?:by the way|btw|also|anyway|on another note|unrelated)\b"
    r"|\W*(?:对了|對了|另外|还有|還有|顺便|順便|顺带|順帶)",
    re.IGNORECASE,
)
SEEKS: Final = re.compile(
    r"\b(?:want|need|like|looking for|after) (?:some )?(?:help|advice|ideas|tips)\b"
    r"|[用买選选做学學][啥什][么麼]?|怎么|怎麼|求推荐|求推薦",
    re.IGNORECASE,
)
POINTS_BACK: Final = re.compile(
    r"\b(?:it|that|this|he|she|they|him|her|his|them|their|there)\b|[他她它這这那]", re.IGNORECASE
)
FORGETS: Final = re.compile(
    r"^\W*(?:(?:can|could|would|will) (?:you|u|ya) |(?:please|pls|plz|actually|ok|nah|no|and|oh"
    r"|so|eh|also),? )*"
    r"(?:wipe|erase|delete|remove|scrub|strike|forget|drop|clear|scratch|bin|lose|redact|unsee|unsay"
    r"|take)"
    r" (?:out |off )?(?:the |my |that |what |about |this |all |everything)(?!.*\b(?:file|photo"
    r"|app|email|folder|line \d|column"
    r"|paragraph|word|code|function|recipe|list)\b)"
    r"|\b(?:it|that|this|they|(?:the|my|our) [\w' -]{2,30}) (?:may|can|could|should|must"
    r"|ought to) (?:all )?be"
    r" (?:rubbed out|forgotten|erased|deleted|wiped|struck out)\b"
    r"|\b(?:don'?t|do not|needn'?t|no need to|please stop) (?:hang(?:ing)?|hold(?:ing)?) on to"
    r" (?:all|any|that|this|it|my|the|what|anything|everything)\b(?! (?:receipt|ticket|paper))"
    r"|^\W*(?:please,? )?(?:wipe|erase|delete|remove|scrub|redact|unsee|unsay) (?:that|this|it)"
    r"(?=[,.!?]|$)"
    r"|(?:^|(?<=[，。！？,.!? ]))(?![他她它])[^，。]{0,16}(?:给我|帮我|都|就|全)?"
    r"(?:删(?:了|掉|除)|抹(?:了|掉|去)|划掉|去掉|擦(?:了|掉)|清掉|撤[回掉]|忘了[吧它]|忘掉)"
    r"|.{0,12}[那这這][条條句个個段茬点點][话話儿兒]?[就也]?作[废廢罢罷]"
    r"|.{0,24}[当當](?:成|作|做)?(?:空气|空氣|耳[旁边]风|[没沒](?:看[见到]|听[见到过]|这[事回]))"
    r"|.{0,12}[当當]我(?:放屁|[胡瞎乱亂][说說讲講扯]|[没沒冇][讲講提])",
    re.IGNORECASE,
)
# "Forget it" and "never mind" speak of the talk, not of the memory.
IDLE: Final = re.compile(
    r"\b(?:forget it|never ?mind|nvm|nm|forget (?:the|that|this)"
    r" (?!(?:\w+ )?(?:bit|part|thing|line|stuff|detail)\b"
    r"|(?:i|my|we|our)\b(?! (?:asked|said|wrote)))\w+(?!\W*$)"
    r"|(?:scrap|scratch|drop|skip"
    r"|ditch)"
    r" (?:that|this|the) (?!(?:\w+ )?(?:bit|part|line|thing|one|last|stuff|from|off|out)\b)\w+"
    r"|(?:wanna|want to|trying to|try to|need to|help me(?: to)?) forget"
    r"|don'?t forget|i forgot|forgot|i (?:do not|don'?t|can'?t) (?:remember|recall))\b"
    r"|当我没问|没事了?|算了|忘了(?!我|这|那|刚|它|吧)|(?:想|为了|好)忘[掉记]?|差点忘|别忘"
    r"|忘记(?!我|这|那|刚)",
    re.IGNORECASE,
)
OF_MEMORY: Final = re.compile(
    r"\b(?:said|say|told|tell|mention\w*|stor\w+|sav\w+|(?<!don't )(?<!dont )remember\w*"
    r"|memor\w+|delete|erase|wipe"
    r"|remove"
    r"|about (?:me|my))\b|说的|说过|刚才|刚刚|记(?:录|住|忆|着|我)|存|删|清除",
    re.IGNORECASE,
)


WITHDRAWS: Final = re.compile(
    r"\W*我?(?:想|要|决定|決定)?(?:收回|撤回)(?=[^，。！？\s]{0,6}(?:[说說讲講提聊]|那句))"
)
"""Says in so many words that it takes back what was said: 我收回刚才说的年薪."""
BY_ORDER: Final = re.compile(
    r"\W*(?:[请請把将將]|刚才)*(?:(?:[头頭前]|最?[后後])[两兩俩三]|第[一二三四])[句条條]"
    r"[^，,。！？\s]{0,4}(?:撤回|收回|忘|[别別][记記存留])"
)
"""Asks by their order to forget what was said: 头两句都撤回."""
_ASK_NOT: Final = re.compile(r"[别別](?:再)?[问問](?:了|我)?[。！!]+(?=.)")
"""分了。别问。 asks for nothing to be forgotten."""
_SPEAKS_TO: Final = re.compile(
    r"[你您妳咱俺]|[这這那][条條句段茬话話]|上一?[条條句]|刚|剛|前面|之前"
)
_REPORTED: Final = re.compile(r"[我他她它][说說](?=[你您妳])[^，。！？,.!?\s]*")
"""我说你先把这题写完 tells what somebody was told: its "you" is not the one who reads."""
SAID_TO_OTHERS: Final = re.compile(
    r"(?:\b(?:is|was|that['’]?s) what|[,”\"] ?(?:as)?) ?(?:i|he|she|they|we|(?:my|the|our) \w+)"
    r" (?:(?:always|keep|keeps|just) )?(?:told|tells?|said to|says? to|shouted at|telling) "
    r"(?!you\b|u\b)\w+|[，,](?:我[跟对]?[他她]|[他她]|我?(?:妈|爸|奶奶|爷爷|外婆|老师|医生|老板|老婆|老公|婆婆))"
    r"(?:总|老|常|一直|都|还|又|就)*(?:这么|这样|那么)?[说讲劝念叨骂](?:的|我|了)*[。！!]*$",
    re.IGNORECASE,
)
OF_A_THING: Final = re.compile(
    r"\b(?:keep|stor\w+|writ\w+|leave) (?:this|that|it|these|those|them|(?:the|my) \w+)"
    r" (?:(?:in|on|at|near|under|by|outside|inside|beside|next to) (?!(?:(?:your|the|any|my) )?"
    r"(?:memory|mind|notes?|records?|files?|logs?|history|profile|database|head)\b)|outside\b|too\b)"
    r"|[存放留][在到进進]?(?:冰箱|手机|电脑|银行|卡|柜|车|家|U盘)[里裡上]?",
    re.IGNORECASE,
)
"""Says where a thing is not to stand or lie, and asks nothing of a memory."""
_TELLS_OF_NOTES: Final = re.compile(
    r"\b(?:i|we|he|she|they)"
    r" (?:didn['’]?t|did not|never|forgot to|don['’]?t|couldn['’]?t|can['’]?t)"
    r" (?:\w+ )?(?:writ|sav|record|keep|log|not(?:e|ing)\b|stor)",
    re.IGNORECASE,
)
"""Tells what somebody does: "I didn't write that down and now I lost the recipe"."""
_PRAISES: Final = re.compile("[写寫说說讲講答回译譯改][得的](?:很|真|挺|好|不错|不錯|蠻|蛮|太)")
OFF_RECORD: Final = re.compile(
    r"\W*(?:(?:ok|so|well|this is|just|strictly|totally|completely)\W+)*"
    r"(?:off the record|between (?:us|you and me)|not for the (?:record"
    r"|memory))\b\W+(?=(?:\w+\W+){2,}\w)"
    r"(?!(?:please|what|that|forget|delete)\b)",
    re.IGNORECASE,
)
"""A message that says of itself that it is not to be kept: "Off the record. I used to drink." """
_KEEPS_ON: Final = re.compile(
    r"\b(?:don'?t|do not|never|please don'?t|not to) (?:you )?(?:dare )?(?:ever )?"
    r"(?:forget|delete|erase|remove|wipe|lose|drop|scrap|bin)\b"
    r"|(?:别|不要|不用|不能|不许|不准|勿|甭|莫)(?:再|给我|把|乱|误|也|一起|随便|全|都"
    r"|[^，。！？,.!? ]{1,6})?"
    r"(?:删|忘|丢|抹|清掉|清除)"
    r"|(?<!不)(?<!别)要留(?!意|神|心)",
    re.IGNORECASE,
)
_TELLS_NOBODY: Final = re.compile(
    r"\b(?:don'?t|do not|never|not to|u can'?t|you can'?t|not) (?:you )?(?:ever |go |dare )?"
    r"(?:tell(?:ing)?(?! (?:me|us)\b)|let on|breathe a word|say (?:a word|anything|it|this"
    r"|that) to)\b"
    r"|[别別](?:再)?[问問](?:了|我)?(?=$|[\s，,。！!])"
    r"|(?:别|不要|不能|不许|勿|甭|莫|不准)(?:再|去|给我|拿|把这个?)?"
    r"(?:(?:跟|和|对|向|同|给)(?!我[说讲提聊透])[^，。！？,.!?\s]{1,8}(?:说|讲|提|聊|透露)"
    r"|告诉(?!我)|往外[说讲传]|说出去|讲出去|外传|声张|传出去)",
    re.IGNORECASE,
)
_CHORE: Final = re.compile(
    r"\b(?:take|put|bring) (?:out )?the (?:trash|bins?|rubbish|garbage|recycling)\b|倒垃圾",
    re.IGNORECASE,
)
_CALLS_OFF: Final = re.compile(
    r"取消(?:了|吧|掉)?|\bcancel(?:l?ed)?\b|\bcall(?:ed)? (?:it )?off\b", re.I
)
_CLAUSE: Final = re.compile(
    r"(?<=[,.;!?，。；！？])|(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])|(?= but )"
    r"|(?= so (?:please |can (?:you|u) )?(?:un|forget|delete|drop|wipe|remove|scrap|erase))"
)


_OF_TEXT: Final = re.compile(
    r"\b(?:first|second|third|fourth|last|final|middle)(?: (?:two|three|few|couple(?: of)?|\d))?"
    r" (?:sentences?|lines?|points?|paragraphs?|bullets?|tips?|items?|words?|steps?|verses?)\b"
    r"(?! (?:that )?i\b)"
    r"|(?:第[一二三四五\d]|[头頭前]|最?[后後])[两兩俩三几一]?[句条條段行点點]"
)
_OF_WHAT_WAS_SAID: Final = re.compile(
    r"\b(?:i (?:just )?(?:said|told|wrote|mentioned|gave)|remember|memory|notes?)\b"
    r"|我(?:刚|剛|[说說讲講提])|[记記]|存|忘|撤回|收回",
    re.IGNORECASE,
)
_DOCUMENT: Final = re.compile(
    r"\b(?:essay|letter|e-?mail|recipe|bio|contract|article|speech|poem|draft|cv|résumé)\b"
    r"|合同|文章|[简簡][历歷]|[邮郵]件|稿|作文|[发發]言|[报報]告|文案",
    re.IGNORECASE,
)


def is_of_text(text: str, before: Sequence[tuple[str, str]]) -> bool:
    """Whether it counts the sentences or points of a text, one that it names or that the assistant
    has just written: "drop the last two points", 第二句删掉."""
    if _OF_TEXT.search(text) is None or _OF_WHAT_WAS_SAID.search(text):
        return False
    who, said = before[-1] if before else ("", "")
    return _DOCUMENT.search(text) is not None or (
        who == "assistant" and len(split_sentences(said)) > 1
    )


def asks_nothing_of_memory(text: str) -> bool:
    """Whether all that sounds like a request in it forbids to forget, asks to tell nobody, names a
    chore, calls something off or was said to somebody else: 橘子的病要留喔，别删到; "Don't tell
    him"; 体检先取消吧; "clear the table is what I told the kids"."""
    if SAID_TO_OTHERS.search(simplified(text)):
        return True
    clauses = [one for one in _CLAUSE.split(simplified(text)) if one]
    idle = (_KEEPS_ON, _TELLS_NOBODY, _CHORE, _TELLS_OF_NOTES, OF_A_THING)
    left = [one for one in clauses if not any(words.search(one) for words in idle)]
    rest = "".join(left)
    if len(left) < len(clauses):
        return not (MAY_ASK.search(rest) or requests(rest))
    return _CALLS_OFF.search(rest) is not None and not (MAY_ASK.search(rest) or requests(rest))


def is_another_matter(text: str, *, asks: bool) -> bool:
    """Whether it leaves what is not to be saved: it says so, or asks and points back at nothing.

    "Don't write it down: I'm being made redundant. What I want help with is my allotment."
    """
    seeks = asks or SEEKS.search(text) is not None
    return RESUMES.match(text) is not None or (seeks and not POINTS_BACK.search(text))


def requests(text: str) -> bool:
    """Whether the sentence asks, by its form, to forget something."""
    return (
        request_to_forget(text) is not None
        or asks_to_forget_that(text)
        or asks_to_forget_next(text)
    )


def speaks_to_nobody(message: str) -> bool:
    """Whether a Chinese message has no word of asking, nor speaks to somebody or points at what
    was said: 她对这一行门儿清."""
    own = _REPORTED.sub("", message)
    asks = MAY_ASK.search(message) or (_SPEAKS_TO.search(own) and not _PRAISES.search(message))
    return is_chinese(message) and not asks


def asked_plainly(text: str) -> str:
    """What takes back in so many words, worded as most people ask: 请忘掉刚才说的年薪."""
    text = _ASK_NOT.sub("", text)
    return WITHDRAWS.sub("请忘掉", text, count=1)


def asked_apart(own: str) -> list[str]:
    """The requests of one that names two things, each by itself; empty where it names none or one.

    "don't save my weight or my job": don't save my weight, don't save my job.
    """
    found = _TWO_ASKED.search(own) or _TWO_ASKED_ZH.search(own)
    if found is None:
        return []
    return [f"{found['ask']}{found[name]}{found['end']}".strip() for name in ("one", "other")]


_TWO_ASKED: Final = re.compile(
    r"(?P<ask>\b(?:(?:forget|drop|delete|remove|erase|wipe|scrub|lose|bin)"
    r"(?: (?:what|everything|anything|all) (?:i |we )?(?:just )?(?:said|told you|mentioned)?)?"
    r"(?: about)?"
    r"|(?:do not|don['’]?t) (?:save|keep|store|remember|note|log)) )"
    r"(?P<one>(?:the|my|our|his|her|their) [\w'’ -]{2,30}?),? (?:and|or|nor|&|\+) (?:about )?"
    r"(?P<other>(?:(?:the|my|our|his|her|their) )?[\w'’ -]{2,30}?)"
    r"(?P<end>(?=[.,!?;]|$|\W(?:pls|please|ok)))",
    re.IGNORECASE,
)
_TWO_ASKED_ZH: Final = re.compile(
    r"(?P<one>[^，,。！!\s和跟与]{1,10}?)(?:和|跟|还有|以及|、)(?P<other>[^，,。！!\s和跟与]{1,10}?)"
    r"(?:[这那]?(?:两样|两个|两条|俩|两件事?)|的事)?"
    r"(?P<end>(?:(?:你|也|都|就|全|帮我|给我|请|一起|先)+[^，,。！!]{0,4})?"
    r"(?:[别别]记|不要[存记]|别存|[忘删抹清](?:了|掉|除))[^，,。！!]{0,4})(?P<ask>)"
)
