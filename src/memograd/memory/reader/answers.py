"""Short answers: which are bare, which only take an offer, and a plain yes or no told in full.

    "Do you eat meat?"   "nope"   ->  I do not eat meat
    您是左撇子吗？   不是           ->  我不是左撇子

What was asked becomes what the speaker says. An answer that quotes its question is of little use to
who reads it later, and nothing can be compared with it.

Invariants: what is told is made of the question's own words; where the question is none that yes or
no answers, or the answer says more, the answer is None. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import language_of, simplified

BARE_ANSWER: Final = re.compile(
    r"^\W*(?:y(?:es|ep|eah|up|a)?|sure|correct|right|exactly|of course|absolutely|definitely|indeed"
    r"|n(?:o|ope|ah|ever|one)|not (?:me|us|really|at all|any ?more|that i know of|yet)|god no"
    r"|hell (?:yes|no|yeah)|both"
    r"|neither|either"
    r"|(?:i )?still (?:am|do|is|are)|the (?:former|latter|first|second|last)(?: one)?"
    r"|(?:that|this)(?:'s| is) (?:right|correct|true|it|so)|you(?:'re| are) (?:right|correct)|quite"
    # A refusal, of what is offered for good.
    r"|(?:please )?(?:don'?t|do not)(?: bother)?|rather not|no (?:need|thanks|thank you)"
    r"|(?:可|千万|还是)?(?:别|別|不要|不用|不必|免)[了吧啦啊呀]*(?=[\s，,。!！]|$)"
    r"|(?:嗯+|对|是的?){1,3}|有的?|没有|没|不是|不|会|不会|可以|好的?|行|前者|后者|第[一二三]个|都是?"
    r"|都不)\b[\s\W]*",
    re.IGNORECASE,
)
_BARE_HEAD_ZH: Final = re.compile(
    r"\W*(?:(?:从来|從來|当然|當然|暂时|暫時|目前)?(?:不是|不会|不要|不用|没有|沒有|可以|可别|是|对|對|嗯|好|行|要|有|会|會"
    r"|能|没|沒|不|冇|莫得)[的滴啊呀哦呢了啦吧]*){1,3}(?=[\s，,。!！])"
)
_VERB_AGAIN_ZH: Final = re.compile(r"\W*([\u4e00-\u9fff]{1,2}[过過])[的了啊呀哦]?(?=[\s，,。!！])")
# An offer for good is a question about what one wants: "use metric units from now on?"
_FOR_GOOD: Final = re.compile(
    r"\b(?:from now on|always|in (?:the )?future|going forward"
    r"|every (?:day|week|month|time|morning)"
    r"|weekly|daily|monthly|remember|note|keep in mind|save"
    r"|(?:address|call|refer to) you"
    r"|how (?:shall|should|do) i (?:talk|speak|write|reply|answer)"
    r"|your (?:name|title))\b|称呼|稱呼|[叫喊][您你]"
    r"|以后|今后|每[天周月次]|一直|[记記][住下得着著]",
    re.IGNORECASE,
)
_OFFER: Final = re.compile(
    r"\b(?:shall i|should i (?:write|send|make|draft|continue|go|explain|show|give|try|add|help)\b"
    r"|(?:do you |d'you )?want me to"
    r"|would you like (?:me|to|a|an|some|help)\b|can i help|anything else|need (?:any )?help"
    r"|ready\?|does that help|does (?:that|this|it) make sense|make sense\?)"
    r"|(?:要|需要)(?:不要|我|帮)|还(?:有|需要)(?:什么|别的)|可以吗|好吗|明白了吗|要继续",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(
    r"(?:[^?]*[.!] )?(?:(?:and|so|ok(?:ay)?|great|lovely|thanks|got it|right)[,.!]* )*"
    r"(?P<verb>do|are|have) you (?P<rest>[^,;:?!.()]{2,60})\?",
    re.IGNORECASE,
)
_LEADS_IN: Final = re.compile(
    r"^(?:before|so that|for|just|one|quick|to)\b[^:?]{2,60}[:,] (?=\w+ you\b)", re.I
)
"""Says why it is asked: "Before I plan the barbecue: do you eat pork?"."""
# What is asked of this talk, and not of who speaks.
_OF_TALK: Final = re.compile(
    r"\b(?:me|this|that|these|those|it|them|want|need|mean|think|know|remember|mind|prefer|sure|ready|or"
    r"|looking|trying|asking|talking|like an?|happy|ok(?:ay)?|going to|getting|guys|all|both|plan"
    r"|anything|questions?|see|tried|else|not|n't)\b",
    re.IGNORECASE,
)
_NO: Final = re.compile(
    r"\W*(?:no+|nope|nah|naw|never|(?:god|hell) no|no way|not at all|absolutely not)"
    r"(?:[\s,.!]+(?:no|nope|never|not at all|sorry|thanks|lol|haha))*\W*",
    re.IGNORECASE,
)
_YES: Final = re.compile(
    r"\W*(?:y(?:es|ep|eah|up)|sure do|of course|(?:i )?still (?:am|do)|i do|i am|i have|absolutely"
    r"|definitely)"
    r"(?:[\s,.!]+(?:i do|i am|i have|yes|of course|lol|haha|sadly|indeed))*\W*",
    re.IGNORECASE,
)
_OPEN: Final = re.compile(r"\b(?:any|ever|much|many|yet|at all)\b", re.IGNORECASE)


_GUESSES: Final = re.compile(
    r"(?P<asked>(?:.*[.!] )?[^.!?,]*\b(?:what|how|where|when|which|who)\b[^?,]{3,}),"
    r" (?P<guess>[^?,]{1,32})\?\W*",
    re.IGNORECASE,
)
_NOT_SO: Final = re.compile(
    # "No siblings" denies no guess.
    r"\W*(?:(?:no+|nope|nah|naw|not quite|wrong|close)\s*[,.!:;–—-]+\s*|(?:nope|nah|naw) (?=\d))"
    r"(?:(?:it'?s|it is|i'?m|actually|try|more like|lol|haha)[\s,.!:;–—-]+)*(?=\w)",
    re.IGNORECASE,
)


_STILL: Final = re.compile(
    r"(?P<lead>.*[.!] )?(?:is|are) your (?P<what>[^?,]{3,60}?)"
    r" (?:still(?: (?:at|on|in|for|due))?|at|on|in|for|due) (?:the )?(?P<guess>[^?,]{1,24})\?\W*",
    re.IGNORECASE,
)
"""Asks whether something is still so: "Is your visit still at 9?"."""
_VALUE: Final = re.compile(
    r"(?:(?:at|on|in|for|the) )*(?:\d|(?:mon|tues|wednes|thurs|fri|satur|sun)day|noon|[A-Z])"
)
_ASKS_FOR: Final = re.compile(
    r"(?:.*[.!] )?[^.!?,]*\b(?:what|how|where|when|which)\b[^?,]{3,}\?\W*", re.IGNORECASE
)
"""What no yes and no "no" answers."""


def without_guess(question: str, answer: str) -> tuple[str, str]:
    """Both without the guess that the question ends with and the answer denies: "How old are you,
    around 34?" "nope, 43". As they are where it has none, or none is denied."""
    guessed, denied = _GUESSES.fullmatch(question), _NOT_SO.match(answer)
    still = _STILL.fullmatch(question) if denied is not None else None
    if still and denied and _VALUE.match(answer, denied.end()):
        return f"{still['lead'] or ''}Your {still['what']}?", answer[denied.end() :]
    if denied is None or not (guessed or _ASKS_FOR.fullmatch(question)):
        return question, answer
    return f"{guessed['asked']}?" if guessed else question, answer[denied.end() :]


def begins_bare(question: str, answer: str) -> bool:
    """Whether a Chinese answer begins with a plain yes or no and goes on: 要的要的，我老花380度.

    One that says the verb again is a yes: 有没有做过手术？ 做过的，前年."""
    if re.search(r"[吗嗎]|(.)[不没沒]\1", question) is None:
        return False
    again = _VERB_AGAIN_ZH.match(answer)
    return _BARE_HEAD_ZH.match(answer) is not None or (again is not None and again[1] in question)


_TAGGED: Final = re.compile(
    r"(?:[^?]*[.!:] )?(?:(?:and|so|ok(?:ay)?|just to confirm)[,:]? )*"
    r"(?P<told>you(?:r|['’](?:re|ve))? [^?]{3,60}?)"
    r",? (?:right|correct|is that (?:right|correct))\?",
    re.IGNORECASE,
)
_TAGGED_ZH: Final = re.compile(
    r"(?:[^，,。:：？?]{2,14}[:：])?(?:那|所以)?(?P<told>[您你][^？?，,。]{2,30})"
    r"[，,]?(?:[对對是]吧|[对對是][吗嗎]|没错吧|[对對]不[对對]|是不是)[?？]"
)
_AGREES: Final = re.compile(
    r"\W*(?:y(?:es|ep|eah|up)|correct|right|exactly|that(?:'s| is) (?:right|correct|it)|indeed"
    r"|嗯*[对對]+[的啊呀]?|嗯*是的?|没错|嗯+)\W*",
    re.IGNORECASE,
)


def told_in_full(question: str, answer: str) -> str | None:
    """The sentence that a yes or a no stands for, in the first person."""
    question, answer = " ".join(question.split()), " ".join(answer.split())
    tagged = _TAGGED.fullmatch(question) or _TAGGED_ZH.fullmatch(question)
    if tagged is not None and _AGREES.fullmatch(answer):
        of_talk = _OF_TALK.search(tagged["told"]) or _TALKS_ZH.search(simplified(tagged["told"]))
        return None if of_talk else _as_mine(tagged["told"])
    if language_of(question) == "zh":
        return _in_chinese(question, answer)
    return _in_english(question, answer)


def _as_mine(told: str) -> str:
    """What is said to somebody, as that one would say it: "Your boss is Jo", 你的导师姓袁."""
    told = re.sub("[您你]", "我", told)
    for theirs, mine in (("your", "my"), ("you are", "I am"), ("you['’]re", "I'm"), ("you", "I")):
        told = re.sub(rf"\b{theirs}\b", mine, told, flags=re.IGNORECASE)
    return told


def _in_english(question: str, answer: str) -> str | None:
    asks = _ASKS.fullmatch(_LEADS_IN.sub("", question))
    if asks is None or _OF_TALK.search(asks["rest"]):
        return None
    verb, rest = asks["verb"].casefold(), re.sub(r"\byour\b", "my", asks["rest"].strip())
    verb = {"are": "am"}.get(verb, verb)
    if _YES.fullmatch(answer):
        if _OPEN.search(rest):
            return None
        return f"I {rest}" if verb == "do" else f"I {verb} {rest}"
    return _denied(verb, rest) if _NO.fullmatch(answer) else None


def _denied(verb: str, rest: str) -> str:
    """I do not smoke; I no longer smoke; I have never been to Spain."""
    for word, denial in (("still", "no longer"), ("ever", "never")):
        if re.match(rf"{word} ", rest):
            told = f"{denial} {rest[len(word) + 1 :]}"
            return f"I {told}" if verb == "do" else f"I {verb} {told}"
    return f"I {verb} not {rest}"


LONGEST_REASON: Final = 16  # characters
_ASKS_ZH: Final = re.compile(
    r"(?:[^，,。:：？?]{2,14}[:：])?(?:那|好的?|请问|对了|嗯|冒昧问一?[句下]|想?问一?[句下])*[，,]?[您你](?P<rest>[^，,。？?！!；;：:您你我]{1,16})[吗嗎][？?]?"
)
_TALKS_ZH: Final = re.compile(
    "还是|需要|想要?|要不要|可以|知道|记得|觉得|确定|打算|准备|介意|愿意|方便|这|那|帮|别的|什么"
    "|问题|疑问|明白"
)
# What stands before the verb, and the verbs that 不 denies.
_VERB_ZH: Final = re.compile(
    r"(?P<before>(?:平时|平常|现在|目前|一直|经常|自己|家里|也|都|对[^过]{1,6}(?=过敏)|在家)*)(?P<still>还)?"
    r"(?P<verb>是|有|会|能|吃|喝|抽|住|养|开|打|用|爱|喜欢|信|怕|去|做|学|戴|过敏|喝|玩|看|听|在|结婚|离婚)"
    r"(?P<more>.*)"
)
_STOPS: Final = r"[啊呀哦呢的啦哈嘛诶呐]*"
_NO_ZH: Final = re.compile(
    rf"\W*(?P<no>没有?|不)(?P<verb>[\u4e00-\u9fff]{{0,2}}?)(?:过|了)?{_STOPS}\W*"
)
_YES_ZH: Final = re.compile(
    rf"\W*(?:(?:是|对|嗯+)[的滴]?{_STOPS}\W*)*(?P<verb>[\u4e00-\u9fff]{{0,2}}?)[了过]?{_STOPS}\W*"
)


def _in_chinese(question: str, answer: str) -> str | None:
    """The same in Chinese; what goes on about a plain yes or no (不能,胃不行) is told behind it."""
    head, comma, reason = answer.partition("，" if "，" in answer else ",")
    told = _plain_in_chinese(question, answer)
    if told is None and comma and 0 < len(reason) <= LONGEST_REASON and "我" not in reason:
        bare = _plain_in_chinese(question, head)
        return f"{bare}，{reason}" if bare is not None else None
    return told


def _plain_in_chinese(question: str, answer: str) -> str | None:
    asks = _ASKS_ZH.fullmatch(question)
    if asks is None or _TALKS_ZH.search(simplified(asks["rest"])):
        return None
    told = _VERB_ZH.fullmatch(asks["rest"])
    if told is None:
        return None
    verb = told["verb"]
    no = _NO_ZH.fullmatch(answer)
    if no is not None and no["verb"] in ("", verb, "是"):
        return _denied_zh(told, no["no"])
    yes = _YES_ZH.fullmatch(answer)
    if (
        yes is not None
        and yes["verb"] in ("", verb)
        and re.search(r"[是对嗯]", answer + yes["verb"])
    ):
        return f"我{asks['rest']}"
    # 您结婚了吗？结了: of such a verb the first half says all of it.
    half = yes is not None and yes["verb"] != "" and verb.startswith(yes["verb"])
    return f"我{asks['rest']}" if half else None


def _denied_zh(told: re.Match[str], no: str) -> str | None:
    """我平时不吃肉; 我没去过日本; 我还没结婚; 我不抽烟了."""
    before, verb, more = told["before"], told["verb"], told["more"]
    if verb == "有":
        return f"我{before}没有{more}"
    if more.startswith("过") or more.endswith("过"):
        return f"我{before}没{verb}{more}"
    if more.endswith("了"):
        return f"我{before}还没{verb}{more[:-1]}" if no.startswith("没") else None
    if no.startswith("没") and verb not in ("养", "在"):
        return None
    return f"我{before}不{verb}{more}{'了' if told['still'] else ''}"


def only_offers(question: str) -> bool:
    """Whether it offers something for once, and does not ask what holds for good."""
    return _OFFER.search(question) is not None and _FOR_GOOD.search(question) is None
