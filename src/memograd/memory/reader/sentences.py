"""The stretches of a message: its sentences, in both scripts, and which are the speaker's own.

Code, quoted lines, forwarded mails and the text that a task works on ("translate this: ...") say
nothing about the user, whoever wrote them. These are matters of form, so rules find them, and
secrets too; what has no form (role play, say) is left to the model.

Invariants: joining the sentences gives back every visible character of the text, in order; the
stretches lie inside the text, in order; splitting takes as long as the text is, whatever stands in
it. Pure functions.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final

from memograd.memory.text_caches import of_texts

_CLOSERS = "\"'”’)）」』》】"
_EMOJI = "\U0001f300-\U0001faff\u2600-\u27bf"
_END: Final = re.compile(
    rf"[。！？；]+[!?]*[{_CLOSERS}]*[{_EMOJI}\ufe0f]*\s*"  # Chinese needs no space behind its marks
    rf"|[!?]+[。！？；]*[{_CLOSERS}]*[{_EMOJI}\ufe0f]*(?![A-Za-z\d_])\s*"  # not in "Marzipan!88"
    rf"|(?<=[\u3400-\u9fff])[!?]+"
    rf"|(?<=[!?.])[{_EMOJI}\ufe0f]+\s*"
    rf"|(?<![.…])[.…]++[{_CLOSERS}]*(?=\s|$)\s*"  # a row of points is looked at once
    r"|(?<=[\u3400-\u9fff])\.+(?=[\u3400-\u9fff]|$)"
    r"|[\r\n]+\s*"
)
_ABBREVIATION: Final = re.compile(
    r"(?:^|[\s(])(?:mr|mrs|ms|dr|prof|rev|hon|capt|sgt|col|fr|sr|st|jr|sr|vs|etc|approx|e\.g|i\.e"
    r"|a\.m|p\.m|u\.s|no|[a-z])\.$",
    re.IGNORECASE,
)
_LONGEST: Final = 12  # characters of an abbreviation with what stands before it, and to spare


def split_sentences(text: str) -> list[str]:
    """The sentences with their marks, without surrounding spaces; empty ones are left out."""
    return list(_split(text))


@of_texts
@lru_cache(maxsize=32)  # a message is split for itself, and as what stood before the next one
def _split(text: str) -> tuple[str, ...]:
    sentences: list[str] = []
    start = 0
    for end in _END.finditer(text):
        marks = end.group()
        if marks.startswith("."):
            stop = end.start() + len(marks.rstrip())
            beginning = max(start, stop - _LONGEST)  # all of "A. B. C. ..." may be one sentence
            if _goes_on(text[beginning:stop], text[end.end() : end.end() + 1]):
                continue
        sentences.append(text[start : end.end()].strip())
        start = end.end()
    sentences.append(text[start:].strip())
    return tuple(sentence for sentence in sentences if re.search(r"\w", sentence))


_OF_LIST: Final = re.compile(r"[\u3400-\u9fff*《“「]")


def _goes_on(piece: str, following: str) -> bool:
    """Whether the point belongs to an abbreviation, so that the sentence goes on."""
    if re.fullmatch(r"(?:.*[\s:：])?\d{1,2}\.", piece, re.S) and _OF_LIST.match(following):
        return True  # 1. 黄焖鸡 2. 粿条: it counts what follows
    if not following or not _ABBREVIATION.search(piece):
        return False
    # "at 5 p.m. We left": an hour can end a sentence. "I" is a word, other letters are initials.
    if re.search(r"\bno\.$", piece, re.IGNORECASE):
        return following.isdigit()  # "No. 5", but "no. what's that"
    ambiguous = re.search(r"(?:[ap]\.m|etc|u\.s|\bI)\.$", piece)
    return not ambiguous or not following.isupper()


_CODE: Final = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|<(\w+)[^>]*>.*?</\1>", re.S)
_QUOTED_LINE: Final = re.compile(r"^\s*(?:>|\|).*$", re.M)
_SPOKEN_LINE: Final = re.compile(r"^[ \t]*([A-Z][A-Z'’. -]{1,20})(?:\([^)\n]*\))?:.*$", re.M)
_LOG_LINE: Final = re.compile(r"^\s*(?:[{\[].*[}\]],?|.*[;{}]|\w+\(.*\)|[A-Z_]+=\S+)\s*$", re.M)
_QUOTED: Final = re.compile(
    r"\"[^\"\n]{6,}\"|“[^”]{3,}”|「[^」]{3,}」|『[^』]{3,}』|‘[^’]{6,}’(?!\w)|《[^》]{3,}》"
    r"|(?<!\w)'(?:[^'\n]|'(?=\w)){6,}'(?!\w)"
)
_TASK: Final = re.compile(
    r"\b(?:translat\w+|proof-?read\w*|summari[sz]\w*|tl;?dr|rewrit\w+|rephras\w+|paraphras\w+"
    r"|polish"
    r"|how (?:do|would|to|can) (?:u|you|i|we|one)? ?(?:say|write|spell|put)|what does .{0,40}mean"
    r"|(?:check|fix|correct|edit|shorten|improve) (?:my|this|the|these|grammar|spelling|following)"
    r"|(?:reply|respond|answer) to (?:this|the|my|her|his|their)|(?:spelling|grammar)\b"
    r"|(?:email|mail|message|text|letter|review|article|post|comment|lyrics|quote|tweet|caption|bio"
    r"|sentence|paragraph|passage|transcript|note|ad|advert|sign|poem|line)\b[^.!?\n]{0,40}"
    r"(?:says?|said|reads?|from|:)|(?:in|into|to) (?:french|spanish|german|italian|english|chinese"
    r"|japanese|korean|welsh|gaelic|polish|portuguese|mandarin|dutch|arabic|latin)\b"
    r"|is this (?:correct|right|ok)|which sounds better|make (?:this|it) sound|sentiment|classify"
    r"|(?:continue|write|draft|extract|parse|convert|format)\b)"
    r"|翻译|譯|译成|翻成|润色|改写|改寫|总结|總結|概括|摘要|怎么说|怎麼說|用.{1,4}[语文]说|校对|语法"
    r"|改得|帮我改|缩写|扩写"
    r"|续写|改成|回复(?:一下|这|她|他)|分类|提取|朗读|这(?:句|段|首|篇|封|条|份(?:简历|合同|报告|材料|文档|协议|通知))(?!话?(?:[别別不请勿]))|什么意思|原文|歌词"
    r"|台词|邮件|文案|短信",
    re.IGNORECASE,
)
_SPEAKS_AGAIN: Final = re.compile(r"[.!?。！？]*\s*(?=[^\s'\"“‘「『])")
_MAIL: Final = re.compile(
    r"^\s*(?:-{2,}\s*(?:forwarded|original)|(?:from|to|subject|re|fwd|cc|sent|date):\s"
    r"|on .{5,60} wrote:"
    r"|(?:发件人|收件人|主题|转发|日期|原文)\s*[:：]|尊敬的|亲爱的(?!小?助手|机器人|AI)"
    # Who is polite to a machine speaks for themselves.
    r"|dear (?!(?:computer|assistant|ai|bot|robot|machine|friend|helper|memory|app|claude|gpt|siri"
    r"|alexa|chat\w*)\b)\w+"
    r"|\[?\d{1,2}:\d{2}(?: ?[ap]m)?\]? ?\w+:)",
    re.I | re.M,
)
# A notice that somebody forwarded, up to the dashes behind which its reader speaks again.
_NOTICE: Final = re.compile(
    r"^\s*(?:【[^】\n]{0,20}(?:群|通知|公告|提醒您|商家|客服|物业|物業|银行|銀行|快递|快遞|社区|社區|学校|學校|幼儿园|公司)[^】\n]{0,6}】"
    r"|【[^】\n]{0,16}(?:快讯|快訊|新闻|新聞|[日晚早周]报|头条|頭條|资讯|資訊|速[递遞]|[热熱][点點]|[协協][会會]|[学學][会會]"
    r"|委[员員]?[会會]?|[部局厅廳][门門]?|中心|平台|[学學]院|大[学學]|[医醫]院|商城|旗[舰艦]店|外[卖賣]|航空|移[动動]"
    r"|[联聯]通|[电電]信|[证證]券|保[险險]|基金|美[团團]|京[东東]|淘[宝寶]|[顺順][丰豐]|12306)】"
    r"|(?:各位|尊敬的|亲爱的)(?:邻居|鄰居|业主|業主|家长|家長|住户|住戶|居民|乘客|旅客|客户|客戶|会员|會員|商户|商家"
    r"|用户|用戶|顾客|顧客|车主|車主|租户|租客))"
    r"(?:(?!\s*(?:——|--+|—))[\s\S])*"
)
# "Here's what they gave us, what does it say about phones?", and the text in the lines below.
_HANDED: Final = re.compile(
    r"^[^\n]{0,80}\b(?:here(?:['’]?s| is| are) (?:what|the \w+|a \w+) (?:they|he|she|it)"
    r"(?:['’]ve| have| has)? (?:just )?(?:gave|given|sent|wrote|written|got|handed|put|posted|said)"
    r"|what (?:it|this|that) (?:says|means)|(?:this|it) (?:is what|came|says|is from)"
    r"|what (?:do(?:es)?|did|is|are|am) (?:it|this|that|they|i)\b[^\n]{0,20} (?:say|mean|do)\b"
    r"|(?:tell|explain|put)\b[^\n]{0,30} in plain (?:words|english|language)"
    r"|can['’]?t make (?:sense|head or tail) of)"
    r"[^\n]*\n\s*",
    re.IGNORECASE,
)
_PLAY: Final = re.compile(
    r"\b(?:pretend(?: that)? (?:you|to be|i(?! never| didn'?t| did not))|role-?\s?play|act as"
    r"|(?:let'?s|wanna) rp\b"
    r"|you(?: are|'re) (?:now )?an? [^.!?]{3,40}[.,!;] (?:and )?i(?: am|'m) )"
    r"|\blet'?s play(?! \w+ (?:again|later|tomorrow|tonight|on)\b)[^.!?]{0,30}[.!,;:] ?"
    r"(?:i am|i'?m|you are|you'?re|ur) "
    r"|^\s*\*[a-z][^*\n]{3,40}\* "  # *slams fist on bar* Innkeep!
    r"|\bi(?:['’]m| am) (?:playing|acting) an? (?:made[- ]up|invented|fictional)\b"
    r"|假装你|扮演|演一段|角色扮演|假(?:简历|簡歷|身份)"
    r"|[你妳](?:现在|現在|来|來)?[是当當扮演][^，,。]{1,10}[，,。]我(?:是|[来來]?[当當扮演])",
    re.I,
)
_LEAVES_PLAY: Final = re.compile(
    r"\b(?:thank\w*|thx|fun|enough|stop|pause|end|anyway|back to|real(?:ly)?|serious\w*|actually"
    r"|btw|by the way|also|ooc|out of (?:character|role)|remember|forget|can you|could you|help)\b"
    r"|不玩|好了|[谢謝]|停|[结結]束|正[经經]|其[实實]|[现現][实實]|[对對]了|真的|[记記忘]|[帮幫]我",
    re.IGNORECASE,
)
_FICTION: Final = re.compile(
    r"\b(?:write|draft|create|invent|make (?:me |up )?|give (?:me|us)|come up with|need)\b"
    r"[^.!?\n]{0,60}\b(?:fictional|made-up|imaginary)\b[^.!?\n]*"
    r"|[给給写寫编編来來帮幫][^。！？\n]{0,20}[虚虛][构構][^。！？\n]*",
    re.IGNORECASE,
)
"""A task about somebody who does not exist, to the end of its sentence."""
_PASSWORD: Final = r"(?:p(?:a?s{1,3}|sa)[ -]?w(?:o?rd?|rod|or?d|d)|pass ?(?:code|phrase)|pwd)"
"""Also as it is mistyped: pasword, passwrod; pw is per week."""
_DIGIT: Final = "(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)"
_SECRET: Final = re.compile(
    rf"(?<![A-Za-z])(?:{_PASSWORD}|pin(?: (?:code|number))?|cvv|cvc|otp"
    r"|api[ _-]?key"
    r"|secret key"
    r"|access (?:key|token)|token|private key|seed phrase|recovery (?:code|phrase)"
    r"|security (?:code|answer)|memorable (?:word|name|place|phrase)"
    r"|card (?:number|no)|account number|sort code|iban|ssn|social security|national insurance"
    r"|(?:door|gate|alarm|safe|lock|locker|verification|login|bank|garage|entry|key ?pad|2fa) ?code"
    r"|(?:safe|vault|padlock|strong ?box)\b[^.!?\n]{0,30}\b(?:opens|combination|combo)"
    r"|code)(?![A-Za-z])[^.!?\n]{0,30}?"
    r"(?:\d[\d \-]{2,}\d|(?=\S*\d)\S{5,}|(?<=\bis )\S{4,}|(?<=[:=] )\S{4,}"
    r"|(?<=it['’]s )\S{4,})"
    r"|\b(?:safe|gate|padlock|locker|vault|key ?pad|alarm)(?:'s| is| was)(?: (?:set )?to)? "
    r"(?!(?:[01]\d|2[0-3])[0-5]\d\b)\d{4,8}\b"  # an alarm at 0630 is none
    r"|\b(?:(?:key ?safe|padlock|strong ?box)\b[^.!?\n]{0,40}?\b(?:is|to)"
    r"|locker\b[^.!?\n]{0,40}?\bset\b[^.!?\n]{0,20}? to)\b[^.!?\n]{0,50}?"
    r"(?<![\d:/.,£$€-])(?!(?:19|20)\d\d(?!\d))\d{4,8}(?![\d:/])"
    r"|(?<!\S)(?=\S*\d)(?=\S*[A-Za-z])[^\s,.]{6,} is (?:the|my|our)"
    rf" (?:{_PASSWORD}|pin|code)\b"
    r"|\b(?:card|account|key ?pad)(?:'s)? (?:\w+ ){0,2}digits?\b[^.!?\n]{0,60}?\d{4,}"
    r"|\bdigits? (?:of|on) (?:my|the|his|her|our) (?:\w+ )?card\b[^.!?\n]{0,30}?\d{4}"
    # What looks like a password stands for one beside a word for what it opens.
    r"|(?:(?<![A-Za-z])(?:log-?in|sign-?in|wi-?fi|router|portal|account)(?![A-Za-z])|账号|登录)"
    r"[^.!?\n。！？]{0,30}[\s:：](?=[^\s，。]*[A-Za-z])(?=[^\s，。]*\d)"
    r"(?=[^\s，。]*[!#$%&*;_^~?])[^\s，。]{6,}"
    r"|(?:密码|口令|验证码|驗證碼|密碼|卡号|卡號|银行卡|信用卡|密钥|身份证号?|身分證|支付码|门禁"
    r"|锁屏|助记词|pin码|安全码|报警器|警报器|[四六46]位[数码])"
    r"[^。！？\n]{0,12}?[A-Za-z\d][\w@#$!%&*.\-]{3,}"
    r"|(?:密码|密碼|口令)[^。！？\n]{0,26}?(?<![\d.])\d{4,8}(?![\d.元块塊年])"
    r"|\bbearer[ :]+(?=\S*\d)\S{8,}"
    # A suitcase has three.
    r"|(?:密码|密碼|口令)(?:是|为|為|：|:|[改换換設设]成了?)\s*\d{3}(?![\d.元块塊年天个個位])"
    r"|\b(?:suitcase|luggage|bike|padlock|lock(?:er)?|gate|trunk)(?: lock)?(?:['’]s)?"
    r" (?:code|combination|combo)(?: is|:| to|['’]s)? ?\d{3}(?![\d.,:/%])\b"
    r"|短信(?:[来來发發收]|说)[^。！？\n]{0,10}?(?<!\d)\d{4,8}(?!\d)"
    r"|(?:保险柜|保險櫃|密码箱|密碼箱)[^。！？\n]{0,30}?(?<![\d.])\d{4,8}(?![\d.元块塊年])"
    # A code behind the words for it, and what is pressed behind or before it.
    r"|\b(?:key|door|gate|alarm|entry|lock|access|studio|locker|safe)[ -]?(?:pad )?(?:code|combo)\b"
    r"[^.!?\n]{0,80}?\b(?:it['’]?s|is|to|be) (?:now )?\d{3,8}(?![\d:/%])"
    r"|(?<![\d:/.,£$€-])\d{4,8} (?:and |then |plus )*(?:the )?"
    r"(?:hash(?: key| sign)?(?! ?brown)|star(?: key)?|pound (?:key|sign))(?![\w-])"
    r"|\b(?:hash|star|pound key) (?:and |then )*\d{4,8}(?![\d:/%])"
    r"|\bpass(?:['’]s| is| was|:) (?=[A-Za-z])(?=\S*\d)[^\s,.]{6,}"
    # In words: "the bank pin is eight two one seven", 密码是幺三五七.
    r"|(?<![A-Za-z])(?:pins?|pass ?codes?|codes?|combination)(?![A-Za-z])[^.!?\n]{0,40}?"
    rf"\b(?:{_DIGIT}[ -]){{3,}}{_DIGIT}\b"
    r"|(?:密[码碼]|口令)[^。！？\n]{0,8}?[零〇一二三四五六七八九幺]{4,}"
    # Turns open a safe, and the digits on the back of a card pay: 右三圈停17再左转到42就开.
    r"|(?:\b(?:safe|lock|padlock|combination|combo|dial)\b|保[险險][柜櫃箱]|密[码碼][锁鎖箱])[^.!?。！？\n]{0,30}"
    r"(?:left|right|clockwise|[左右])[^.!?。！？\n]{0,12}?\d{1,2}(?!\d)[^.!?。！？\n]{0,20}"
    r"(?:left|right|clockwise|[左右])[^.!?。！？\n]{0,12}?\d{1,2}(?!\d)"
    r"|(?:three digits|3 digits) on the back\b[^.!?\n]{0,20}?(?<!\d)\d{3}(?!\d)"
    r"|[卡][^。！？\n，,]{0,3}[背后後]面?[^。！？\n]{0,6}[三3]位[^。！？\d\n]{0,6}\d{3}(?!\d)"
    # How one is made: 密码换成了阿伟生日+店号.
    r"|(?:密[码碼]|口令(?![^，。]{0,4}[改换換]))[^。！？\n，,]{0,8}?"
    r"(?:(?:[换換改设設][成为為]|就?用的?)了?(?!新|别|別|更|复|複|什|啥|哪|一个|一個)"
    r"|(?<![不只但可])[就又还還]?是(?!什|啥|多少|几|幾|不是|否|对|對|错|錯|[上昨今前刚剛每]|个|個|安全|必须|必須|为了|為了|怎))"
    r"[^，。！？\s]{2,}"
    # Chinese characters are letters to \b: 卡6217003388201149到 has no border there.
    r"|(?<![A-Za-z\d])(?<![单單][号號])(?<![单單][号號][是:：])(?:\d[ -]?){12,18}\d(?![A-Za-z\d])"
    r"|(?<![A-Za-z])(?:sk|pk|ghp|gho|xox[bp]|AKIA|AIza)[-_A-Za-z0-9]{8,}"
    r"|-----BEGIN [A-Z ]+KEY|(?<![A-Za-z\d])\d{3}-\d{2}-\d{4}(?![A-Za-z\d])"
    r"|(?<!\d)\d{17}[\dXx](?!\d)",
    re.IGNORECASE,
)


def foreign(text: str) -> list[tuple[int, int]]:
    """The stretches of a message that are not the speaker's own words, sorted."""
    found = [m.span() for pattern in (_CODE, _QUOTED_LINE) for m in pattern.finditer(text)]
    lines = [m.span() for m in _LOG_LINE.finditer(text)]
    if len(lines) > 2:
        found += lines
    found += _scene(text)
    task = _TASK.search(_QUOTED.sub(lambda m: " " * len(m[0]), text))
    found += [m.span() for m in _QUOTED.finditer(text) if task or _is_long(m[0])]
    if task:
        behind = re.search(r"[:：]\s*|\n\s*", text[task.start() :])
        if behind and len(text) - task.start() - behind.end() > 12:
            start = task.start() + behind.end()
            # "Translate: 'I finish at ten.' I clean offices": behind it they speak again.
            quoted = _QUOTED.match(text, start)
            alone = quoted is not None and _SPEAKS_AGAIN.match(text, quoted.end())
            found.append((start, quoted.end() if quoted and alone else len(text)))
    if play := _PLAY.search(text):
        found.append((play.start(), len(text)))
    found += [one.span() for one in _FICTION.finditer(text)]
    if notice := _NOTICE.match(text):
        found.append(notice.span())
    handed = _HANDED.match(text)
    if handed and len(text) - handed.end() > 60:
        found.append((handed.end(), len(text)))
    if mail := _MAIL.search(text):
        found.append((mail.start(), len(text)))
    return sorted(found)


def _scene(text: str) -> list[tuple[int, int]]:
    """The lines of a scene, which begin with who says them: of several, one speaks again.

    The lines of a form ("JOB: nurse") begin in the same way, each with another word.
    """
    lines = list(_SPOKEN_LINE.finditer(text))
    who = {line[1] for line in lines}
    return [line.span() for line in lines] if 1 < len(who) < len(lines) else []


def goes_on_with_play(before: Sequence[tuple[str, str]], text: str) -> bool:
    """Whether the user still plays the part that a message just before it began.

    before: who said what, the last one last.
    """
    began = any(who == "user" and _PLAY.search(said) for who, said in before)
    return began and _LEAVES_PLAY.search(text) is None


def _is_long(quoted: str) -> bool:
    """Whether it is a sentence rather than a name or a word."""
    return len(quoted.split()) > 4 or len(re.findall(r"[\u4e00-\u9fff]", quoted)) > 8


class OwnWords:
    """Which stretches of a message are the speaker's own words, by those that are not.

    A pasted log has as many of the others as there are sentences, so how much of them lies before a
    place is looked up: no sentence is compared with each.
    """

    def __init__(self, others: Sequence[tuple[int, int]]) -> None:
        """others: as `foreign` gives them; what lies in two of them counts twice."""
        self._begins = sorted(begin for begin, _ in others)
        self._ends = sorted(end for _, end in others)
        self._of_begins = [0, *accumulate(self._begins)]
        self._of_ends = [0, *accumulate(self._ends)]

    def has(self, start: int, end: int) -> bool:
        """Whether most of a stretch is the speaker's own."""
        return (self._before(end) - self._before(start)) * 2 < end - start

    def _before(self, place: int) -> int:
        """Characters of the others before a place."""
        begun, ended = bisect_left(self._begins, place), bisect_left(self._ends, place)
        return place * (begun - ended) + self._of_ends[ended] - self._of_begins[begun]


_CODE_TOLD: Final = re.compile(
    rf"(?<![A-Za-z])(?:pin|{_PASSWORD}|cvv|otp)(?![A-Za-z])[^\n]{{0,60}}"
    r"(?<![\d:/.,-])(?!(?:19|20)\d\d(?!\d))(?P<code>\d{4,8})(?![\d:/,-])",
    re.IGNORECASE,
)


def tells_code(text: str) -> bool:
    """Whether it speaks of a PIN or password and, maybe a sentence later, gives a number of one.

    "I forgot my PIN again. Was it 6627?" holds no secret by its form, but the next message may.
    """
    return _CODE_TOLD.search(text) is not None


def repeats_code(message: str, sentence: str) -> bool:
    """Whether a sentence says the code that the message gives in another one.

    "I forgot my PIN again. Was it 6627? I always think it's 6627."
    """
    told = _CODE_TOLD.search(message)
    if told is None or told["code"] not in sentence:
        return False
    return (
        re.search(
            rf"\b(?:it|that|mine)(?:['’]s| is| was)? {told['code']}\b", message, re.IGNORECASE
        )
        is not None
    )


@of_texts
@lru_cache(maxsize=512)  # a sentence is asked about at every turn of its reading
def has_secret(text: str) -> bool:
    """Whether it holds a password, a PIN, a card number, a key or the like."""
    return _SECRET.search(text) is not None


_MAY_TELL: Final = re.compile(
    # A year is none, nor is CA1832.
    r"(?<![\d:/.,£$€¥])(?<!\b[A-Z][A-Z])(?!(?:19|20)\d\d(?!\d))\d(?:[ .-]?\d){3,}(?![\d:/%])"
    r"|\d-\d+-\d|[A-Za-z]\w*-\w+-\w*\d|[零〇一二三四五六七八九]{4,}"
    rf"|(?<![A-Za-z])(?:{_PASSWORD}s?|keys?|spare|wi-?fi|hotspot|seed|phrase"
    r"|answer)(?![A-Za-z])|密[码碼]|暗号|口令|[钥鑰]匙|助[记記][词詞]|答案",
    re.IGNORECASE,
)
_LOCKED: Final = re.compile(
    r"(?<![A-Za-z])(?:pins?|codes?|keypad|combination|combo|(?:pad|un)?lock(?:er|ed|s)?|safe|vault"
    r"|alarm|router|log-?in|sign-?in|hash|card|account|passport)(?![A-Za-z])"
    r"|[验驗][证證][码碼]|[卡证證][号號]|身份[证證]|授[权權][码碼]|[门門]禁|保[险險][柜櫃箱]"
    r"|[警锁鎖]|登录|账号|后四位",
    re.IGNORECASE,
)
_FIGURE: Final = re.compile(r"\d|[零〇一二三四五六七八九十]{2}")


def may_hold_secret(text: str) -> bool:
    """Whether it has a word for what opens, one for what is locked beside a figure, or a number
    that may open it; few others can hold a secret."""
    if _MAY_TELL.search(text):
        return True
    return _LOCKED.search(text) is not None and _FIGURE.search(text) is not None
