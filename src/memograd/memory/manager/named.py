"""What a request to forget names, and how far an item has it.

    Please lose all you know about the key safe and the agency.    {key, safe}, {agency}
    我婆婆的事别记了，免得哪天被阿伟看到                               {婆婆}

Only the clauses that ask are read, and those that list ("the percs, the meetings", 体重目标啥的): a
reason ("before my wife sees it", 免得他看到) and what is to stay name nothing that goes. In Chinese
two characters beside each other are a word, so some are none; they hardly stand in an item.

Invariants: a request that only points has no topic; pure functions of texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memograd.memory.language import is_chinese, simplified
from memograd.memory.manager.past import CHARACTERS, stems
from memograd.memory.reader.forget import KEEPS, MAY_ASK
from memograd.memory.statements import property_words

_CLAUSE: Final = re.compile(
    r"(?<=[.;!?])\s+|,\s+|(?<=[\u4e00-\u9fff]),|[，。；！？：]|(?<=[\u4e00-\u9fff])\s+|\s+[-–—]+\s+"
    r"|\s+(?=(?:because|'?cause|cos|so that|in case|before|otherwise|or else)\b)",
    re.IGNORECASE,
)
REASON: Final = re.compile(
    r"^\W*(?:because|'?cause|cos|so that|in case|before|otherwise|or else|since|as (?:he|she"
    r"|they)\b)"
    r"|\b(?:i'd die|(?:s?he|they|it)(?:'d| would) (?:kill|hate|be)|none of|(?:ai|is)n'?t (?:any"
    r"|no)body"
    r"|(?:any|no)body'?s business)\b"
    r"|[要好爱]面子|丢[人脸]|难听|免得|省得|以免|万一|反正|因为|[怕恐]|隐私|忌讳|闲话|看着就?烦|(?:让|给"
    r"|被)[^，,。]{1,8}(?:看[见到]|知道|发现|听[见到])"
    r"|走了$|不想[^，,。]{0,6}(?:看|回忆|想)|没公[布开]|过几天",
    re.IGNORECASE,
)
"""A clause that says why, not what."""
_LISTS: Final = re.compile(r"(?:什么|啥|之类|等等)的|啊[^，,。]{1,6}啊|(?:啥的|什么的)$")
_LISTS_EN: Final = re.compile(
    r"\W*(?:and |or )?(?:the|my|her|his|their|our)(?: [\w'-]+){1,3}\W*", re.I
)
_NAME: Final = re.compile(r"\W*[A-Z][\w'-]+\W*")
_NOT_OF_MEMORY: Final = re.compile(
    r"\b(?:gotta|got to|have to|has to|need to|must)\b|\b(?:write|draft|make|give|send|find"
    r"|show) (?:me|us)\b"
    r"|[帮给]我(?:想|写|找|列)",
    re.IGNORECASE,
)
"""A clause with a word of forgetting that asks for something else, or nothing."""
_ABOUT: Final = re.compile(r"\b(?:about|regarding|concerning|to do with)\b|的事|有关|关于")
_AND: Final = re.compile(r"\s+(?:and|or|nor|plus|&)\s+|(?<=.)(?:还有|以及|、)(?=.)", re.IGNORECASE)
_NO_TOPIC: Final = stems(
    "please pls plz thanks ta sorry actually just can could would you want back out second thoughts"
    " changed mind again now wait never here there say said saying tell told telling get got"
    " getting rid"
    " bit thing things part stuff shouldn typed wrote what which who whom where when how why"
    " about used"
    " have with from this that these those it its they them their she her hers he him his my me"
    " mine"
    " notes note memory memories records record your head books file files profile info information"
    " anything everything something nothing all any every whole some lot lots else more any longer"
    " forget delete erase wipe remove scrub strike scrap drop clear scratch bin lose redact keep"
    " kept"
    " unsee unsay unhear ignore disregard discard purge void withdraw retain cut leave left"
    " store save"
    " saved remember mention mentioned talk talked conversation rather pretend happened hear"
    " heard know"
    " known need needn don dont not are was were been being will shall should may might must let"
    " lets"
    " for the and but then than too also really very well right ever even still yet off over"
    " into onto"
    " matter fact mess business thing last first earlier before message messages one ones today"
    " mean"
    " did does had has isn aren wasn weren i'd i'm i've we've you've he's she's it's that's"
    " let's as"
    " soon hang hold hanging holding onto only out up down go going come came take taken taking"
    " make"
    " put rubbed rub seen see now well ask asked asking like love happy ended anymore ok okay oh"
    " hey"
)
_SAID: Final = re.compile(
    r"^(?:User said: |The assistant said: |User asked: |用户说：|用户问：|助手说：)"
)
_ASKS_ZH: Final = re.compile(
    r"什么的|啥的|之类的?|那个|这个|那些|这些|那[条句件段]|这[条句件段]|[这那]|的事情?|事儿?"
    r"|刚才|刚刚|刚|前面|之前|以前|上面|最开始|最近"
    r"|说的|讲的|提的|说|讲|提[到过]?|所有|一切|全部?|[都再先也就把将]|有关|关于|相关|统统|对了"
    r"|算了|其实|还是|帮我|给我|麻烦|请|拜托|谢谢?"
    r"|你|您|我们?|自己|以后|从此|千万|不用|不必|不要|不想|别|甭|勿|吧|啦|了|呗|嘛|啊|呀|哦|喔"
    r"|哈|的话|没必要|当真"
    r"|忘[掉记]?|删[除掉]?|抹[掉去]?|清[除空掉]|撤[回销]|移除|去掉|划掉|擦掉|收回|保留"
    r"|留[着下存]?|存[着下]?|记[着住录忆下]?|作废"
    r"|当我没|放屁|那[样种]|信息|资料|内容|消息|东西|话|一下|呢|吗|么|的|是"
)
_COMMON: Final = frozenset("阿前后里外中过吃看去来上下大小老有人家个子儿天年月日一不好多要用户说问")
_KIN: Final = frozenset("妈爸姐哥弟妹娘爹")
_PEOPLE: Final = tuple(
    re.compile(one, re.IGNORECASE)
    for one in (
        r"\b(?:husband|hubby)\b|老公|丈夫|先生|爱人|老伴", r"\b(?:wife|missus)\b|老婆|妻子|媳妇"
        r"|太太|爱人|老伴",
        r"\b(?:mum|mom|mother|mama|amma)\b|(?:我|他|她|用户)的?(?:妈|母亲|娘)",
        r"\b(?:dad|daddy|father|papa)\b|(?:我|他|她|用户)的?(?:爸|父亲|爹)",
        r"\bbrothers?\b|(?:我|他|她|用户)的?(?:哥|弟)|兄弟", r"\bsis(?:ters?)?\b|(?:我|他|她"
        r"|用户)的?(?:姐|妹)",
        r"\bsons?\b|\bboys?\b|儿子|[大小]宝", r"\bdaughters?\b|\bgirls?\b|女儿|闺女"
        r"|[大小]宝", r"\bboyfriend\b|男朋?友|对象",
        r"\bgirlfriend\b|女朋?友|对象", r"\bgran(?:ny|ma)?\b|\bgrandmother\b|奶奶|外婆|姥姥",
        r"\bgrandad\b|\bgrandfather\b|爷爷|外公|姥爷", r"\bmother-in-law\b|婆婆|丈母娘|岳母",
        r"\bfather-in-law\b|公公|丈人|岳父", r"\buncle\b|叔|舅|伯", r"\baunt(?:ie)?\b|[姑姨婶]",
        r"\blandl(?:ord|ady)\b|房东", r"\bboss\b|\bmanager\b|老板|领导|上司", r"\bneighbou?rs?\b"
        r"|邻居|隔壁",
    )
)  # fmt: skip
_OF_THEM: Final = re.compile(
    r"(?:[\w', ]{,20})?\b(?:s?he|him|her|his|hers|they|them|their)\b|[^，。]{,6}[他她]",
    re.IGNORECASE,
)
_KIN_ZH: Final = re.compile(r"(?:我|他|她|用户)的?([妈爸姐哥弟妹娘爹])(?!\1)")
_KINDS: Final = tuple(
    (kind, re.compile(asked, re.IGNORECASE), re.compile(told, re.IGNORECASE))
    for kind, asked, told in (
        ("#age", r"\bage\b|how old|年[龄纪]|几岁|多大",
         r"\bis (?:1[0-9]|[2-9]\d)\b(?! ?(?:k|grand|euro|%))|years old|岁"
         r"|[二三四五六七八九]?十[一二三四五六七八九]?(?:了|[,，。]|$)"),
        ("#born", r"\bbirth|\bbirthday|\bdob\b|生日|出生", r"\bborn\b|birthday|生日|出生"),
        ("#name", r"\b(?:my|the) (?:\w+ )?name\b|名字", r"\bname(?:'s)?\b|\bcalled\b|叫|名字"),
        ("#home", r"\baddress|where (?:i|we) live|[地住]址|住哪|门牌",
         r"\bliv(?:es?|ing)\b|\b\d+[a-z]? [A-Z]\w+ (?:street|st|road|rd|close|lane|mews|avenue"
         r"|ave|drive|way|court|place|terrace)\b|住|[栋号]\d|\d号"),
        ("#pay", r"\b(?:salary|pay|wages?|earn\w*|income|take.?home)\b|工资|收入|薪|月入|挣",
         r"\bearn|salary|take.?home|\bwages?\b|\b(?:on|makes) [£$€]?\d[\d,.]* ?(?:k|grand"
         r"|thousand)\b|薪|工资|收入|年包|月入|挣"),
        ("#money", r"\b(?:money|debts?|finances?|loan)\b|钱|债|月供",
         r"\bow(?:e|es|ed|ing)\b|[£$€]\d|\d ?(?:euros?|dollars?|pounds?|quid|grand)\b|\bborrow"
         r"|\bloan|欠|\d[\d.,]*(?:元|块)|[万千百](?:元|块)|借|赌|月供"
         r"|(?<!run )(?<!runs )(?<!ran )(?<!to )\b\d[\d.,]*k\b(?! (?:on|in|run|race|every)\b)"),
        ("#health", r"\bhealth|\bmedical\b|\billness|\bdiagnos|\bmy condition|身体|健康|病",
         r"diagnos|biopsy|cancer|tumou?r|prostate|seizure|epilep|diabet|asthma|disease|syndrome"
         r"|vertigo|psoriasis|eczema|\bstroke\b|surgery|\bHIV\b|hepatitis|depress|anxiety"
         r"|bipolar|arthritis"
         r"|病|癌|症|手术|化疗|切[了过]|乙肝|抑郁|血压|血糖|肿瘤"),
        ("#meds", r"\b(?:meds?|medications?|medicines?|pills?|tablets?)\b|药",
         r"\b\d+ ?(?:mg|mcg)\b|\b(?:tablets?|pills?|medication)\b|\btakes? \w+(?:ine|ol|pam|ate"
         r"|pril|tan|min|line)\b|[吃开换]药|药|\d ?mg"),
        ("#faith", r"\breligio|\bfaith\b|宗教|信仰",
         r"catholic|muslim|jewish|quaker|witness|hindu|buddhis|christian|sikh|mormon|protestant"
         r"|\b(?:church|mosque|synagogue)\b|信(?:佛|主|基督|教)|教徒|天主教|穆斯林|基督"),
        ("#votes", r"\bpolitic|\bvot(?:e|es|ing)\b|政治|投票", r"\bvot(?:e|es|ed|ing)\b|党|投票"),
        ("#weight", r"\bweight\b|\bhow heavy|体重|减肥|多重",
         r"\b\d+ ?(?:stone|st|kg|kilos?|lbs|pounds)\b|\bweighs?\b|斤|\bkg\b|称[了\d]"),
        ("#height", r"\bheight\b|how tall|身高|多高", r"\b\d+ ?cm\b|\btall\b|\d(?:米|cm|公分)"
        r"|[一二]米"),
    )
)  # fmt: skip
"""What people name by its kind: "my age" is in "User is 43"."""
_WORD: Final = re.compile(r"[A-Za-z][\w'’]*")


@dataclass(frozen=True)
class Topic:
    """named: the words of each thing that a request names. listed: those it lists beside them.
    written: the words as they are written, in small letters. whose: the people that it speaks of,
    where it is of nothing else, by their places among all that are known."""

    named: tuple[frozenset[str], ...] = ()
    listed: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    whose: frozenset[int] = frozenset()

    @property
    def words(self) -> frozenset[str]:
        """All of them."""
        return frozenset().union(*self.named, self.listed)

    def is_near(self, text: str) -> bool:
        """Whether a Chinese text has a character of what is named: 药 of 吃药."""
        if not is_chinese(text):
            return False
        characters = {
            one
            for word in self.words
            if len(word) == CHARACTERS and is_chinese(word)
            for one in word
        }
        characters -= _COMMON
        return bool(characters & set(simplified(text)))

    def is_in_part(self, text: str) -> bool:
        """Whether it only has whose a thing is, of 我姐的过敏."""
        has = words_of(text)
        found = [(words & has, words) for words in (*self.named, self.listed) if words & has]
        return bool(found) and all(some <= _KIN and some != words for some, words in found)

    def is_of_another(self, text: str) -> bool:
        """Whether what is named is somebody's, and an item neither has them nor begins with a
        pronoun."""
        text = simplified(_SAID.sub("", text))
        return bool(self.whose) and not (
            _OF_THEM.match(text) or any(_PEOPLE[one].search(text) for one in self.whose)
        )


def topic_of(text: str) -> Topic:
    """What a request names; nothing where it only points."""
    clauses = [one for one in _CLAUSE.split(simplified(text)) if one and one.strip()]
    read = [one for one in clauses if not REASON.search(one)]
    read = [one for one in read if not KEEPS.search(one)]
    asking = [
        one
        for one in read
        if (MAY_ASK.search(one) or _ABOUT.search(one)) and not _NOT_OF_MEMORY.search(one)
    ]
    listing: list[str] = []
    for one in read:
        if one in asking[:1]:
            continue
        if _LISTS.search(one) or _LISTS_EN.fullmatch(one) or (listing and _NAME.fullmatch(one)):
            listing.append(one)
    if not any(_words(one) for one in (*asking, *listing)) and asking:
        first = read.index(asking[0])  # 我的血型，请别再记了
        asking = read[max(0, first - 1) : first]
    named, written = [], set()
    for clause in asking:
        if clause in listing:
            continue
        for one in _AND.split(clause):
            if found := _words(one):
                named.append(found)
            written |= {word.casefold() for word in _WORD.findall(one)}
    listed = frozenset().union(*(_words(one) for one in listing))
    asked = [one for one in asking if one not in listing]
    people = [{n for n, who in enumerate(_PEOPLE) if who.search(one)} for one in asked]
    whose = frozenset().union(*people) if people and all(people) and not listed else frozenset()
    return Topic(tuple(named), listed, frozenset(written), whose)


def _words(text: str) -> frozenset[str]:
    """The words of a clause that name something."""
    if is_chinese(text):
        return (_pairs_of(_ASKS_ZH.sub(" ", text), text) - _NO_TOPIC) | _kinds_asked(text)
    return (stems(text) - _NO_TOPIC) | _kinds_asked(text)


def _pairs_of(bare: str, text: str) -> frozenset[str]:
    """The words of a Chinese text without those that only ask: pairs of characters, kin, Latin."""
    runs = re.findall(r"[\u4e00-\u9fff]+", bare)
    pairs = {run[n : n + 2] for run in runs for n in range(len(run) - 1)}
    latin = {word.casefold() for word in _WORD.findall(bare)}
    return frozenset(pairs | latin | set(_KIN_ZH.findall(text)))


def _kinds_asked(text: str) -> frozenset[str]:
    return frozenset(kind for kind, asked, _ in _KINDS if asked.search(text))


def _kinds_told(text: str) -> frozenset[str]:
    return frozenset(kind for kind, _, told in _KINDS if told.search(text))


def words_of(text: str) -> frozenset[str]:
    """The words of an item, or a part of one, that a request may name."""
    bare = simplified(_SAID.sub("", text))
    properties = property_words(bare).split()[1:]
    if not is_chinese(bare):
        return stems(bare) | stems(" ".join(properties)) | _kinds_told(bare)
    found = _pairs_of(bare, bare) | {one for one in properties if len(one) > 1}
    return found | _kinds_told(bare)


def shares(topic: Topic, texts: Sequence[str]) -> list[float]:
    """How far each text has what the request names: 1 for what has it most, 0 for what has none.

    A word that many have says less. Of two things named each is looked for by itself; what stands
    letter for letter as it is named goes before what only begins like it.
    """
    has = [words_of(text) for text in texts]
    found = [0.0] * len(texts)
    for words in (*topic.named, topic.listed):
        in_ = [words & one for one in has]
        common = {word: sum(word in one for one in in_) for word in words}
        weight = [sum(1 / common[word] for word in one) for one in in_]
        if any(
            _letter_for_letter(topic, text) for text, one in zip(texts, in_, strict=True) if one
        ):
            weight = [
                one if _letter_for_letter(topic, text) else one / 2
                for one, text in zip(weight, texts, strict=True)
            ]
        most = max(weight, default=0.0)
        if most:
            found = [max(old, one / most) for old, one in zip(found, weight, strict=True)]
    return found


def _letter_for_letter(topic: Topic, text: str) -> bool:
    written = {word.casefold() for word in _WORD.findall(text)}
    return is_chinese(text) or any(
        word in written for word in topic.written if not stems(word) <= _NO_TOPIC
    )
