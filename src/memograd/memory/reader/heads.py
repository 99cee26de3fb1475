"""Which sentence has a verb, and what a fragment without one belongs to.

    Truck died in the yard. 94 F150, 260 thousand miles.     one statement, not two
    She was put on a diet. Fourteen kilos.

People write in breaths. A fragment that is kept alone ("Right knee.") says nothing to a stranger,
and often the breath before it, which has the verb, looks like nothing worth keeping. Nor does a
sentence that points at the one before it:

    I've got a bowl of my gran's. She made it for her wedding.    one statement

Invariant: what is put together stands in the message, in these letters, and only a fragment or what
points back is put behind anything. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import is_chinese, simplified
from memograd.memory.reader import screen_chinese, screen_english
from memograd.memory.reader.about import person_meant
from memograd.memory.reader.answers import told_in_full
from memograd.memory.reader.dates import NUMBERS
from memograd.memory.reader.parts import asks
from memograd.memory.reader.person_english import is_past
from memograd.memory.reader.setting import Setting
from memograd.memory.reader.wording import bare_of

LONGEST_HEAD: Final = 160  # characters
_FRAGMENT: Final = 9  # words of one
_FIRST_WORDS: Final = 5  # of them up to its first comma
_FINITE: Final = re.compile(
    r"\b(?:am|is|are|was|were|be|been|has|have|had|do|does|did|can|could|will|would|shall|should"
    r"|may"
    r"|might|must|gonna|gotta|wanna|let|put|got|says?|goes|come|comes|went|ain'?t|\w+n't)\b"
    r"|\w['’](?:s|re|m|ll|ve|d)\b",
    re.IGNORECASE,
)
_SUBJECT: Final = re.compile(
    r"\W*(?:(?:and|but|so|well|now|also|oh|yes|yeah|no),? )*"
    r"(?:i|he|she|it|we|they|you|there|this|that|these|those|who|which|nobody|nothing|somebody"
    r"|everyone|everybody)\b",
    re.IGNORECASE,
)
_VERB_ZH: Final = re.compile(r"[了过是在有去来给做吃喝用住买卖说想会要换改]|喜欢")


# What only points at something else ("She let me"), or says that there was a mistake.
_SAYS_NOTHING: Final = re.compile(
    r"\b(?:muddled|misread|mistyped|mixed (?:up|them)|looking at|re-?read|put me right"
    r"|corrected me|my mistake"
    r"|wrong|typo|my (?:fingers?|thumbs?|phone|brain)|autocorrect|i (?:said|told you))\b"
    r"|^(?:\S+ ){0,2}(?:me|it|one|him|her|them|that|so|this)$|^[\w'’]+$(?<![\u3400-\u9fff])"
    r"|^i am \w+$"
    r"|看[错錯岔串]|[说說搞记記弄写寫打][错錯岔串反]|[糊瓦][涂特]",
    re.IGNORECASE,
)


def has_verb(text: str) -> bool:
    """Whether the sentence has a verb of its own, as far as its form shows it."""
    if is_chinese(text):
        return _VERB_ZH.search(simplified(text)) is not None
    plain = text.replace("’", "'")
    if _SUBJECT.match(plain) or _FINITE.search(plain):
        return True
    return any(is_past(word) for word in re.findall(r"[A-Za-z']+", plain))


def is_fragment(text: str) -> bool:
    """Whether an English sentence says nothing without the one before it."""
    if is_chinese(text) or asks(text):
        return False
    plain = text.replace("’", "'")
    first = re.split(r"[,;:(]|\s[-–—]\s", plain.strip())[0]
    words, every = re.findall(r"[\w'-]+", first), re.findall(r"[\w'-]+", plain)
    if not 0 < len(words) <= _FIRST_WORDS or len(every) > _FRAGMENT or has_verb(first):
        return False
    if words[0].casefold() in ("me", "my", "mine", "our", "ours"):
        return False  # "me 6.8": somebody else than in the sentence before
    if words[0].casefold().endswith("ing") or screen_english.is_request(plain):
        return False  # "Keeping Britbox": the one who speaks does it
    # "Lavonne wants pie", "oat milk stays": a word in s may be a verb, unless so many are counted.
    counted = any(re.search(r"\d", word) or word.casefold() in NUMBERS for word in words)
    return counted or not any(
        re.fullmatch(r"[a-z]{3,}s", word) and not word.endswith("ss") for word in words[1:]
    )


def is_telling(text: str) -> bool:
    """Whether it is a statement with a verb, rather than a question, a task or a reaction."""
    screen = screen_chinese if is_chinese(text) else screen_english
    bare = text.strip(" .!…。！")
    return (
        has_verb(text)
        and not asks(text)
        and not _SAYS_NOTHING.search(bare)
        and not screen.is_request(bare)
        and not screen.is_reaction(bare)
    )


# How the agent is to write, whatever was asked for: "please do not use bullet points".
_STANDING: Final = re.compile(
    r"^\W*(?:(?:and|also|oh|but|so|ok|plus),? )*(?:please,? |pls )?"
    r"(?:(?:do not|don['’]?t|never|stop|no more|avoid|skip|less of|enough with"
    r"|without) (?:(?:ever )?(?:use|using"
    r"|give me|giving me|send(?:ing)?(?: me)?|write|writing|put(?:ting)?|reply(?:ing)? (?:with"
    r"|in)) )?"
    r"(?:(?:any|the|all|so many|those|your) )*"
    r"(?:bullet(?:s| ?points?)|emojis?|exclamation (?:marks?|points?)|markdown|headings|headers"
    r"|tables|jargon"
    r"|(?:em )?dashes|hashtags|capitals|numbered lists|long (?:answers|replies)|slang"
    r"|abbreviations)\b"
    r"|when(?:ever)? you (?:answer|reply|respond|write|talk|speak|explain)\b"
    r"|(?:from (?:now|here) on(?:wards)?|going forward|in (?:the )?future)\b"
    r"|(?:always|never) (?:answer|reply|respond|write|use|speak|talk|give me|call|address"
    r"|explain)\b"
    r"|(?:answer|reply|write|use|speak|talk|keep|give me|call|address)\b[^.!?]{0,60}"
    r"\b(?:from (?:now|here) on(?:wards)?|going forward|in (?:the )?future)\b"
    r"|(?:use|write|give me|keep|speak|talk|explain|format|answer|reply|respond)\b[^.!?]{0,40}"
    r"\bwhen(?:ever)? (?:you|u) (?:answer|reply|respond|write|talk|speak|explain)\b"
    # "Please call me Jo", "for recipes, nothing spicy"
    r"|(?:(?:can|could|would|will) (?:you|u) (?:please )?|just |you can )?call me"
    r" (?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Tomorrow|ASAP|When|If)(?-i:[A-Z])\w+"
    r"(?! (?:back|later|when|tomorrow|tonight|at|on|if))"
    r"|(?:when you (?:give|send|suggest|write)|(?:for|in|with) (?:the|my|all|any|your)?) ?(?:me )?"
    r"(?:recipes?|answers?|replies|emails?|summaries|suggestions?|plans?|explanations?)\b"
    r"[^.?!]{0,30}\b(?:no|nothing|never|always|keep|only|under|less|avoid|without)\b)"
    r"|^\W*(?:(?:跟|和)?你?说(?:下|一下|个)?(?:规矩|要求)?[:：，,])?(?:以后|往后|今后|之后|从现在起|下次)?[你您请請]?(?:以后|往后|今后)?(?:给我|给我的|跟我)?"
    r"(?:的)?(?:(?:回答|回复|回覆|答案|讲解|解释)我?|[答回]我)(?:的时候|时)?[，,]?"
    r"(?:尽量|要|请|最好|别|不要|用|给我|都[要用别请]|控制在|限制在|不超过)"
    r"|^\W*(?:给|給|跟|对|對|回)我[^，。！？!?]{0,8}一律(?:用|要|别|不要|写|寫|说|說|讲)"
    r"|^\W*(?:再|还|還)(?:加|补|補|有)一[条條点點个個](?:要求|规矩)?[哈啊]?[：:，,]"
    r"|^\W*[^，。！？!?]{0,16}?(?:往后|以后|今后|从现在起)[^，。！？!?]{0,4}"
    r"(?:(?:给我|请|都|跟我|对我)[^，。！？!?]{0,3}(?:讲|说|回答|回复|写|解释|用|别用|列)|(?:请用|别用|不要用))",
    re.IGNORECASE,
)


def is_standing(text: str) -> bool:
    """Whether it says how the agent's answers are to look; that holds for good."""
    return _STANDING.match(text) is not None


_LEANS: Final = re.compile(
    r"\W*(?:(?:and|but|so|also|plus|then|now),? )*"
    r"(?:it|they|he|she|his|her|their|its|these|those|this|that)"
    r"(?:['’](?:s|re|ve|d|ll)\b| (?=[a-z]))",
    re.IGNORECASE,
)
# "This week I moved": no pronoun.
_NO_POINTER: Final = re.compile(
    r"\W*(?:\w+,? )?(?:this|that) (?:week|weekend|morning|month|year|time|evening|summer|day)\b",
    re.IGNORECASE,
)


def leans(text: str) -> bool:
    """Whether an English statement begins with a pronoun of somebody or something named before."""
    return (
        not is_chinese(text)
        and not asks(text)
        and _LEANS.match(text) is not None
        and _NO_POINTER.match(text) is None
    )


def belongs(head: str, between: str, behind: str) -> bool:
    """Whether what stands behind a sentence goes with it; between: what stands between them."""
    return (
        len(head) <= LONGEST_HEAD
        and not between.strip()
        and "\n" not in between
        and not is_chinese(head)
        and (is_fragment(bare_of(behind)) or leans(behind))
        and is_telling(head)
    )


def goes_behind(
    head: tuple[int, int, str], start: int, text: str, setting: Setting, *, first: bool
) -> bool:
    """Whether a sentence of a message is one statement with the one before it.

    first: nothing stands before the head, so that it may be a short answer, which stays alone.
    Somebody whom a pronoun clearly means is named instead.
    """
    message = setting.turn.text
    if not belongs(head[2], message[head[1] : start], text):
        return False
    question = setting.question if first else None
    if not leans(text):
        return not question
    if question and told_in_full(question, head[2]):
        return False
    return person_meant(bare_of(text), message[:start], setting.near, setting.earlier) is None
