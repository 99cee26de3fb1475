"""Which remembered item is about the topic that somebody asked to forget.

"My address" shares no word with "Ann lives in Mill Road": a topic also has the words in which such
a thing is usually told. Whose it is must be said by the item too. Invariant: an item about somebody
else, or with another number, is never the topic. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import language_of, simplified
from memograd.memory.reader.chinese import KIN, resolve_person
from memograd.memory.reader.forget import request_to_forget
from memograd.memory.statements import Wording, same_text, wording
from memograd.memory.statements.statement import plain

COVERED: Final = 0.6  # share of the topic's own words that an item must have
BY_PROPERTY: Final = 0.6  # how sure an item is that only tells such a thing

_ENGLISH: Final = tuple(
    (re.compile(rf"\b(?:{topic})\b", re.I), re.compile(rf"\b(?:{told})\b", re.I))
    for topic, told in (
        (
            r"address|where .+ lives?|home town|hometown|city .+ lives? in",
            r"lives?|living|moved|resides|address|home is|based in|mail for",
        ),
        (
            r"job|profession|occupation|where .+ works?|what .+ does|employer|for a living",
            r"works? (?:as|at|for|in)|job|profession|promoted|hired|became|career|employed"
            r"|reports to",
        ),
        (r"phone|number", r"phone|number|reached at|call(?:ed)? (?:\w+ )?(?:at|on)"),
        (r"birthday|date of birth|when .+ born", r"birthday|born"),
        (r"e-?mail(?: address)?", r"e-?mail"),
        (r"age|how old .+", r"years old|turned \d+|is \d+|age"),
        (r"rent|what .+ pays for .+ (?:flat|house|home)", r"rent|pays"),
        (r"salary|income|wages?|what .+ earns?", r"salary|earns?|income|paid|makes"),
        (
            r"diet|what .+ eats|eating habits",
            r"eats?|vegan|vegetarian|diet|kosher|halal|pescatarian",
        ),
        (r"allerg(?:y|ies)|allergic", r"allerg\w+|cannot go near"),
        (r"medications?|medicines?|pills|what .+ takes? .*", r"takes?|medic\w+|pills|put .+ on"),
        (
            r"travel plans|trip|holidays?|vacation|where .+ travels?",
            r"trip|travel\w*|holidays?|vacation|going to|flies|visit\w*",
        ),
        (r"hobby|hobbies|free time|pastime", r"free time|hobby|hobbies|into|took up|spends"),
        (
            r"partner|boyfriend|girlfriend|relationship|husband|wife|ex",
            r"dating|married|engaged|ex",
        ),
        (r"what .+ sav(?:es?|ing) .*for", r"sav(?:es?|ing)"),
        (r"(?:which|what) car .+|car", r"drives?|car|owns"),
        (r"school|where .+ goes to school|stud(?:y|ies)", r"school|enrolled|degree|studies|class"),
    )
)
_CHINESE: Final = tuple(
    (re.compile(topic), re.compile(told))
    for topic, told in (
        (r"住址|地址|住在?哪|住哪|家在哪|哪个城市", r"住|搬|家在|寄"),
        (r"工作|职业|上班|做什么的", r"工作|职业|上班|任职|当|从事|做.+的"),
        (r"电话|手机|号码|联系方式", r"电话|手机|号码|打"),
        (r"生日|出生", r"生日|出生"),
        (r"邮箱|邮件", r"邮箱|邮件"),
        (r"年龄|岁数|多大", r"岁"),
        (r"房租|租金", r"房租|租金|月租"),
        (r"工资|收入|薪水|挣多少", r"工资|收入|薪|挣|月入"),
        (r"饮食|吃什么(?!药)|忌口", r"吃|素|饮食"),
        (r"过敏", r"过敏"),
        (r"药", r"药|吃|治"),
        (r"旅行|旅游|去哪.*玩|行程|假期", r"旅|去|玩|度假|假期"),
        (r"爱好|兴趣|业余", r"爱好|喜欢|迷上|业余|空闲"),
        (r"对象|男朋友|女朋友|感情|婚姻", r"男朋友|女朋友|对象|结婚|离婚|交往"),
        (r"攒钱", r"攒"),
        (r"学校|上学|在学什么|专业", r"学|读|念"),
        (r"开什么车|车", r"车|开"),
        (r"联系", r"联系|短信|邮件|电话"),
    )
)
_LITTLE: Final = wording(
    "user go get keep have what which where who whom how when why name be do use like say tell ask"
    " fact thing about whole old for"
).terms | {"goe", "doe", "can"}
# "According to Ann, he ..." is about him; where a pronoun follows at once, about Ann.
_FRAME: Final = re.compile(
    r"^(?:According to (?P<a>[^,]{1,40}), (?:that )?"
    r"|(?P<b>[A-Z][\w' ]{0,30}?) (?:says|said|mentioned|added|explained|noted|told \w+"
    r"|corrected this)"
    r"(?: that|:|,)* (?=\w)"
    r"|据?(?P<c>[^，,]{2,6}?)(?:更正|补充|告诉对方|提|表示|说|讲)(?:说|到|道)?[，,：:])"
)
_PRONOUN: Final = re.compile(r"^(?:(?:he|she|they)\b|(?P<of>his|her|their)\b|[他她](?!们))", re.I)
_CHAIN: Final = re.compile(r"(?:[A-Z]\w*(?:'s?|s') (?:[a-z]\w* ){1,3})+(?P<who>[A-Z]\w+)")
_NAME: Final = re.compile(
    r"\b(?!(?:I|Wh\w+|How|The|That|A|An|In|On|At|From|Against|To|For)\b)[A-Z]\w+"
)
_HEAD_CHINESE: Final = re.compile(
    rf"^[^的，,]{{2,6}}的{KIN}(?P<kin>[\u4e00-\u9fff]{{2}})(?<![的住在是])"
    r"|^(?P<who>[^的，,]{2,6}?)(?:的|住|在|是|为|对|治|希望|每|喜|讨|开|会|今|打)"
)


def reported_topic(text: str) -> str | None:
    """What somebody asked to forget, with their name in it; None where the text is no such report.

    A chat model, or a life log, writes a request down as what happened: `Ann asked to erase what
    was said about which gym she goes to.` gives `which gym Ann goes to`.
    """
    bare = text.strip().rstrip(" .。!！")
    if language_of(bare) == "zh":
        said = _REPORT_ZH.match(bare)
        asked = said and request_to_forget("请" + re.sub(r"[他她](?!们)自?己?", "我", said["act"]))
        return resolve_person(asked[0], said["who"], None) if said and asked else None
    said = _REPORT.match(bare)
    if said is None:
        return None
    act = f"don't {said['act']}" if said["not"] else said["act"]
    own, comma, more = act.partition(",")
    own = re.sub(r"\b(?:his|her|their)\b", f"{said['who']}'s", own)
    own = re.sub(r"\b(?:he|she|they|him|them)\b", said["who"], own)
    asked = request_to_forget(own + comma + more)
    return asked[0] if asked else None


_REPORT: Final = re.compile(
    r"^(?P<who>[\w'’. -]{1,40}?) (?:(?:has |had )?(?:asked|asks|requested|wants|wanted|told)"
    r"|would like)(?: (?:me|us|you|them|everybody|everyone|the assistant|[A-Z]\w+))?"
    r"(?: (?:for it |please )?(?P<not>not )?to|,) (?P<act>.+)$"
)
_REPORT_ZH: Final = re.compile(
    r"^(?P<who>[^，。要请希想让]{1,10}?)(?:曾|已经?)?(?:要求|请求|希望|请|想让|想要|要|让|拜托)"
    r"(?:别人|对方|大家|助手|我们|[你您])?(?P<act>.+)$"
)


def about(topic: str, item: str) -> float:
    """How surely an item, or a clause of one, is about the topic: 0, or from 0.5 to 0.9."""
    topic, item = simplified(topic), simplified(item)
    chinese = language_of(topic) == "zh"
    if chinese != (language_of(item) == "zh"):
        return 0.0
    if same_text(topic, item):
        return 1.0
    item = _unframed(item)
    whose = _owner(topic, chinese)
    if whose and plain(whose) not in plain(item):
        return 0.0
    ours, theirs = wording(topic), wording(item)
    if ours.numbers - theirs.numbers:
        return 0.0
    covered = _share(_own_words(ours, whose), theirs)
    if covered >= COVERED:
        return 0.9 * covered
    told = _names_property(topic, chinese) and any(
        asked.search(topic) and said.search(_without(item, whose))
        for asked, said in (_CHINESE if chinese else _ENGLISH)
    )
    return BY_PROPERTY if told else 0.0


def is_whose(subject: str, item: str) -> bool:
    """Whether an item, or a clause of one, is about the subject of a statement."""
    owner = _owner(
        f"{subject}是" if language_of(subject) == "zh" else subject, language_of(subject) == "zh"
    )
    return plain(simplified(owner or subject)) in plain(_unframed(simplified(item)))


def _names_property(topic: str, chinese: bool) -> bool:
    """Whether it is a thing that is told ("Ann's new address", "where Ann lives"), no statement."""
    if chinese:
        return re.search(r"的[^的]{1,6}$|哪|什么|谁|怎样|怎么|多少|多大", topic) is not None
    question = r"(?:which|what|where|who|whom|how|when)\b.+"
    owned = r"(?:.*\w(?:'s|s')|the|their) (?:[\w-]+ ){0,2}[\w-]+"
    return re.fullmatch(rf"(?:{question}|{owned})", topic.rstrip(" ."), re.I) is not None


def _unframed(item: str) -> str:
    """What is said in `According to Ann, she ...`, the name for the pronoun at its beginning."""
    frame = _FRAME.match(item)
    if frame is None:
        return item
    who, rest = next(filter(None, frame.groups())), item[frame.end() :]
    return _PRONOUN.sub(lambda found: f"{who}'s" if found["of"] else who, rest, count=1)


def _owner(topic: str, chinese: bool) -> str:
    """The person that the topic is about, as it is named there: Tom in "Ann's uncle Tom"."""
    if chinese:
        head = _HEAD_CHINESE.match(topic)
        return (head["kin"] or head["who"]) if head else ""
    if chain := _CHAIN.search(topic):
        return chain["who"]
    named = _NAME.search(topic)
    return named[0].removesuffix("'s") if named else ""


def _without(item: str, whose: str) -> str:
    return item.replace(whose, " ") if whose else item


def _own_words(topic: Wording, whose: str) -> frozenset[str]:
    return topic.terms - wording(whose).terms - _LITTLE


def _share(words: frozenset[str], item: Wording) -> float:
    return len(words & item.terms) / len(words) if words else 0.0
