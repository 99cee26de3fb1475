"""A sentence as it stands alone: the speaker named, dates resolved, interjections gone.

Nothing is judged here; whoever calls has decided that the sentence is worth keeping.

Invariant: no first person is left outside quotation marks. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memograd.memory.language import Language, language_of, simplified
from memograd.memory.reader import (
    asking_english,
    person_chinese,
    person_english,
    screen_chinese,
    screen_english,
)
from memograd.memory.reader.answers import without_guess
from memograd.memory.reader.choices import chosen
from memograd.memory.reader.dates import resolve_english
from memograd.memory.reader.dates_chinese import resolve_chinese
from memograd.memory.reader.people_chinese import BARE_KIN as KIN_CHINESE
from memograd.memory.reader.people_english import BARE_KIN as KIN_ENGLISH
from memograd.memory.reader.person_english import is_past
from memograd.memory.reader.setting import Draft, Setting, finished
from memograd.memory.records.items import Kind

_EMOJI: Final = "\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u200d\ufe0f\U000e0000-\U000e007f"
_EDGES: Final = re.compile(rf"^[\s{_EMOJI}]+|[\s{_EMOJI}]+$")
_CHAT: Final = (
    (re.compile(r"\bim\b(?! Rahmen)", re.I), "I'm"),
    (re.compile(r"\bive\b", re.I), "I've"),
    (
        re.compile(r"\b(do|does|did|is|was|were|has|have|had|ca|wo|could|would|should)nt\b", re.I),
        r"\1n't",
    ),
    (re.compile(r"\b(?:tmrw|tmw|tmr|tomoz|2moro|tomoro)\b", re.I), "tomorrow"),
    (re.compile(r"\b(?:yest|yday)\b", re.I), "yesterday"),
    (re.compile(r"\bnxt\b", re.I), "next"),
    (
        re.compile(r"\bin (?:exactly|about|like|roughly) (?=\w+ (?:day|week|month|year))", re.I),
        "in ",
    ),
    (re.compile(r"(?<![\w.])u\b(?!\.)"), "you"),
    (re.compile(r"\bur\b"), "your"),
    (re.compile(r"\b(he|she|that|what|there)s\b(?= )", re.I), r"\1's"),
    (re.compile(r"\b(they|you)(ve|re|ll)\b", re.I), r"\1'\2"),
)  # fmt: skip
_INTERJECTION: Final = re.compile(
    r"^(?:(?:and|but|plus|cos|lol|haha+|omg|oh|ah|um+|well"
    r"|so(?! (?:many|much|far|long|few|little)\b)|ok(?:ay)?|yeah|yep|btw|fyi|ugh"
    r"|hmm+|right|hey+|hi+|hello|ngl|good (?:morning|afternoon|evening)"
    r"|by the way|on (?:an?|another) (?:(?:side|different|unrelated|other) )?note|side note"
    r"|in other news|speaking of (?:which|that)|also|anyway|guess what|good news|bad news|update"
    r"|which reminds me|that reminds me|news flash|big news(?: here)?|psst|oops|whoops|wow|yay"
    r"|(?:like|as) i (?:said|told you|mentioned)|i(?:['’]ve)? (?:already )?told you(?: that)?"
    r"(?= (?:i|i['’]\w+|my|we) (?!(?:was|were|so|but)\b)))"
    r"\b[\s,:!.\-–—]+)+|[\s,]+(?:lol|haha+|lmao|rofl|xd|tbh|smh|omg|btw|x{1,3})[\s.!]*$",
    re.IGNORECASE,
)
# "No I am not allergic" answers nothing that stands beside it; an answer keeps its "no".
_SAYS_NO: Final = re.compile(
    r"^(?:no+|nope|nah)[\s,]+(?=(?:i|i['’]\w+|my|we|it|it['’]s)\b)", re.IGNORECASE
)
_INTERJECTION_ZH: Final = re.compile(
    r"^(?:(?:哈[囉喽啰嘍]|哈哈+(?![囉喽啰嘍])"
    # One of these alone may begin a name: 哈日, 阿杰 typed as 啊杰.
    r"|(?:[哈嗯啊哎唉哇诶欸哦噢]+呀?|那个)(?=[，,！!。~～、…\s我你他她它这今昨])|对了|话说|其实|顺[便带](?:说|提|讲|一提)(?:一?下|一句|一嘴)?"
    r"|[跟和同]你(?:说|讲|說|講)(?:(?:一)?[个個件](?:事[儿兒情]?|秘密|祕密|好消息|坏消息|壞消息|新闻|新聞))?"
    r"|告诉你吧?"
    r"|(?:(?:还有|另外|此外|[诶欸嗯哦]|行吧?|好吧|好的|早|嗨|那)(?=[，,、！!~～\s]|我(?![说觉要先])))"
    r")[，,！!。~～、\s]*)+"
    r"|[\s，,]*(?:哈哈+|嘿嘿+|呜呜+|233+|hhh+|[笑爽美酸]死(?:我了?|人了?)?|orz)[。！!~～\s]*$",
    re.IGNORECASE,
)


LISTED: Final = re.compile(r"[-*•·–]\s|\d{1,2}[.)、](?:\s?\D|$)")
"""How a line of a list begins."""
_HEAD: Final = re.compile(r"([:：])\s*\n\s*(?:[-*•·–]\s|\d{1,2}[.)、]\s?)")
_LINES: Final = re.compile(r"\s*\n\s*(?:[-*•·–]\s|\d{1,2}[.)、]\s?)")
_COUNTED: Final = re.compile(r"[，；、]?\s+\d{1,2}[.)、]\s*(?=[\u3400-\u9fff])")
"""A list within a line: 1. 黄焖鸡 2. 粿条."""
_PARTICLES: Final = re.compile(
    r"(?<=[\u3400-\u9fff]{4})(?<![叫名])(?<![叫名].)(?<![叫名]..)(?:嘛|呗|唄|哟|喽|嘞|咯|呐|哒|(?<![哈嘿])哈|(?<=[班着著呢])呢)+(?=[\s。！!~～…]*$)"
)
"""What only sounds at the end: 我姐在深圳上班呢, 利率降了呗."""
_SPACED: Final = re.compile(r"(?<=[\u3400-\u9fff])[ \u3000]+(?=[\u3400-\u9fff])")
"""Where a comma is meant: 刚下夜班 困死了."""
_MARKS: Final = re.compile(
    r"^(?:#+ |>+ |[-*•·–] |\d{1,2}[.)、] ?(?=\D)|[，,；;、])+|\*\*|__|`(?=[^`]*`)|(?<=\w)`"
)
"""Marks of a list, a heading or emphasis, which mean nothing in a sentence alone."""


# "The cat's called Gherkin, put that in.", 我不吃香菜，你记一下: what is to be done with it.
_NOTED: Final = re.compile(
    r"(?:,|\.| -) ?(?:please )?(?:put (?:that|it) (?:in|down)|(?:note|remember) (?:that|it|this)"
    r"|make a note(?: of (?:that|it))?|keep (?:that|it) in mind|just so you know)\W*$"
    r"|[,，。、\s]+(?:(?:你|请|帮我|给我|要)?记(?:一下|住|好|下来?|着|得)[了啊哈哦吧呀]?)[。！!~\s]*$"
    r"|,? (?:didn['’]?t|haven['’]?t|don['’]?t|aren['’]?t) i\b[\s?!.]*$",
    re.IGNORECASE,
)
# "Mum's hip op", 儿子满十岁了: whoever says so means their own.
_BARE_KIN: Final = re.compile(
    rf"^(?:{KIN_ENGLISH})(?=['’](?!s day)| (?!(?:of|to|and|bread|jokes?)\b)(?-i:[a-z]))",
    re.IGNORECASE,
)
_BARE_KIN_ZH: Final = re.compile(rf"^(?:{KIN_CHINESE})(?![们俩呀圈节])")


def _with_own_kin(text: str, setting: Setting) -> str:
    """The text with "my" before a relation that begins it, unless it may be somebody else's."""
    earlier = setting.turn.text.partition(text)[0]
    if not setting.to_agent or re.search(r"[他她]|\b(?:she|he|her|his)\b", earlier, re.IGNORECASE):
        return text
    if language_of(text) == "zh":
        return f"我{text}" if _BARE_KIN_ZH.match(simplified(text)) else text
    return _BARE_KIN.sub(lambda one: f"My {one[0].lower()}", text)


def bare_of(sentence: str) -> str:
    """The sentence without interjections and emoji around it, and with its chat spelling undone."""
    text = _EDGES.sub("", sentence)
    chinese = language_of(text) == "zh"
    text = _NOTED.sub("", text) or text
    text = _HEAD.sub(r"\1" if chinese else r"\1 ", text)
    text = _LINES.sub("、" if chinese else "; ", text)
    if chinese:
        shorter = _INTERJECTION_ZH.sub("", text).strip()
        return _SPACED.sub("，", screen_chinese.strip_note(shorter) if len(shorter) > 1 else text)
    for pattern, written in _CHAT:
        text = pattern.sub(written, text)
    shorter = screen_english.strip_note(_INTERJECTION.sub("", text).strip())
    return _EDGES.sub("", shorter) if len(shorter) > 2 else text


def without_calls(text: str, setting: Setting) -> str:
    """The text without the names of others that it only calls: "Thanks, Mel!" says nothing of her.

    Where only one person speaks there is nobody to call.
    """
    others = tuple(name for name in setting.speakers if name != setting.turn.speaker)
    if not others or language_of(text) == "zh" or not any(name[:3] in text for name in others):
        return text
    said = screen_english.strip_openers(text, others)
    return said if re.sub("|".join(map(re.escape, others)), "", said).strip(" .!,:;()-") else ""


def say(sentence: str, setting: Setting) -> Draft:
    """What a user said, to be read alone."""
    text = as_one(_SAYS_NO.sub("", without_calls(bare_of(sentence), setting)))
    chinese = language_of(text) == "zh"
    screen = screen_chinese if chinese else screen_english
    procedural = screen.is_procedural(text) and (chinese or setting.to_agent)
    if chinese and setting.to_agent and not procedural:
        text = screen_chinese.without_asking(text)
    elif setting.to_agent and not procedural:
        text = asking_english.without_asking(text)
    looks_for = screen.is_question(text) and _LOOKS_FOR.search(text)
    if not (chinese or procedural or looks_for or _is_of_another(sentence, setting)) and (
        whole := completed(text[:1].upper() + text[1:])
    ):
        text = whole
    draft = resolved(_with_own_kin(text, setting), setting)
    name = setting.name(draft.language)
    unmarked = screen_english.asks_you(text) or screen_english.asks_unmarked(text)
    if screen.is_question(text) or (not chinese and unmarked):
        said = f"{name}问：{draft.text}" if chinese else f"{name} asked: {draft.text}"
    elif setting.about:
        said = _about(setting.about, draft.text, name, chinese=chinese)
    elif name not in draft.text:
        said = f"{name}说：{draft.text}" if chinese else f"{name} said: {draft.text}"
    else:
        said = draft.text
    kind = Kind.PROCEDURAL if procedural else None
    if chinese:
        said = _PARTICLES.sub("", said)
    return replace(draft, text=finished(said, "。" if chinese else "."), kind=kind)


NOBODY: Final = (
    r"(?!an? (?:\w+ )?(?:treat|rule|result|gift|joke|backup|start|favou?r|thank|present|surprise"
    r"|reminder|test|snack|starter|side|way|whole|matter|bonus|hobby|kid|child|teen\w*|group|team)\b)"
)
"""As a treat, as a rule: what is no person asks nothing."""
_AS_ONE: Final = re.compile(
    rf"\W*as (?P<who>{NOBODY}an? "
    r"(?:(?!(?:what|how|which|should|can|could|do|does|where|when|why)s?\b)[^,?.!]){3,40})[,.]?",
    re.IGNORECASE,
)


def as_one(text: str) -> str:
    """ "As a diabetic" is "I'm a diabetic"; all else stays as it is."""
    found = _AS_ONE.fullmatch(text)
    return f"I'm {found['who']}" if found else text


def _is_of_another(sentence: str, setting: Setting) -> bool:
    """Whether it begins an answer about somebody else: "And your dad?" "Broke his wrist"."""
    asked = re.split(r"[?!.)] ", (setting.question or "").rstrip())[-1]
    begins = setting.turn.text.lstrip().startswith(sentence)
    return begins and _OF_ANOTHER.search(asked) is not None and _OF_YOU.search(asked) is None


_OF_YOU: Final = re.compile(r"\byou(?:['’]\w+)?\b(?! know| think| say)", re.IGNORECASE)
_OF_ANOTHER: Final = re.compile(
    r"\b(?:he|she|they|him|his|her|them|their|your)\b"
    r"|(?:^|[.!?,] )(?:and|but|what about|how(?:['’]?s| is| are)) (?:the\b|(?-i:[A-Z]))",
    re.IGNORECASE,
)
_LOOKS_FOR: Final = re.compile(r"^(?:\S+ ){1,4}(?:ideas|tips|recipes|suggestions|options)\b", re.I)
"""Asks for things of a kind: "packed lunch ideas for my boy?" tells of nobody who packed."""


_ARTICLE: Final = re.compile(r"^(?:the|a|an) ", re.IGNORECASE)


def _about(person: str, said: str, name: str, *, chinese: bool) -> str:
    """What was said of a person whom its pronoun alone does not name."""
    if chinese:
        return f"关于{person_chinese.resolve_person(person, name, None)}：{said}"
    of = person_english.resolve_person(_ARTICLE.sub("the ", person), name, None)
    begins = said if said.startswith(name) else f"{said[:1].lower()}{said[1:]}"
    return f"About {of}: {begins}"


_HOW_MANY: Final = re.compile("[几幾]([岁歲个個次口只隻点點斤年天杯碗节節层層楼樓])")


def say_answer(question: str, sentence: str, setting: Setting) -> Draft:
    """A short answer together with the question that it answers.

    One that points at a choice ("the second one") is told with what was chosen.
    """
    answer = bare_of(sentence)
    asked, answer = chosen(question, answer) or without_guess(question, answer)
    asked = " ".join(asked.split())
    language = language_of(question + answer)
    draft, name = resolved(answer, setting, language), setting.name(language)
    if language == "zh":
        counted = _HOW_MANY.search(asked) if draft.text.strip().isdecimal() else None
        told = f"{draft.text}{counted[1]}" if counted else draft.text  # 几岁: 9岁
        said = f"{name}被问“{asked}”时回答：{told}"
    else:
        said = f'{name}, asked "{asked}", answered: {draft.text}'
    return replace(draft, text=finished(said, "。" if language == "zh" else "."))


def resolved(text: str, setting: Setting, language: Language | None = None) -> Draft:
    """The text with days for "yesterday" and names for "I", and for "you" where people talk.

    language: of what it becomes a part of; None: its own.
    """
    language = language_of(text) if language is None else language
    name, other = setting.name(language), setting.addressed(language)
    if language == "zh":
        dated = resolve_chinese(text, setting.day)
        said = person_chinese.resolve_person(dated.text, name, other)
    else:
        dated = resolve_english(text.replace("’", "'"), setting.day)
        said = person_english.resolve_person(dated.text, name, other)
    return Draft(said, dated.day, language)


def say_assistant(sentence: str, setting: Setting) -> Draft:
    """What the assistant said, as its own words and nobody else's."""
    text = _MARKS.sub("", _EDGES.sub("", sentence))
    if language_of(text) == "zh":
        dated = resolve_chinese(_COUNTED.sub("；", text), setting.day)
        said = person_chinese.resolve_person(dated.text, "助手", "用户")
        return Draft(finished(f"助手说：{said}", "。"), dated.day, "zh")
    dated = resolve_english(text, setting.day)
    said = person_english.resolve_person(dated.text, "the assistant", "the user")
    return Draft(finished(f"The assistant said: {said}", "."), dated.day, "en")


def say_list(lines: Sequence[str], question: str, setting: Setting) -> Draft:
    """Lines of a list of the assistant's, with what it answers; question: empty where unknown."""
    parts = [part for line in lines for part in line.split("\n")]
    bare = [_MARKS.sub("", _EDGES.sub("", " ".join(part.split()))) for part in parts]
    bare = [part.rstrip(" .;,。；，") for part in bare if not part.endswith((":", "："))]
    chinese = language_of("".join(bare)) == "zh"
    bare = [one for one in bare if one and not re.fullmatch(r"\d{1,2}", one)]
    listed = ("；" if chinese else "; ").join(bare)
    if chinese:
        dated = resolve_chinese(listed, setting.day)
        said = person_chinese.resolve_person(dated.text, "助手", "用户")
        asked = f"用户问“{question}”，助手列出：" if question else "助手列出："
        return Draft(finished(f"{asked}{said}", "。"), dated.day, "zh")
    dated = resolve_english(listed, setting.day)
    said = person_english.resolve_person(dated.text, "the assistant", "the user")
    asked = f'Asked "{question}", the assistant listed: ' if question else "The assistant listed: "
    return Draft(finished(f"{asked}{said}", "."), dated.day, "en")


_FINITE: Final = re.compile(
    r"\b(?:is|are|was|were|isn't|aren't|wasn't|weren't|don't|doesn't|let|has|have|had|do|does|did|can|could|will|would"
    r"|makes?|brings?"
    r"|helps?|takes|reminds?|gives?|gave|made|means?|shows?|keeps?|teaches|lets)\b|'s |'re ",
    re.IGNORECASE,
)


# Words in -ing that begin a sentence without saying what somebody does.
_NOT_DOING: Final = """
    according anything being during evening everything having morning nothing seeing
    something speaking taking talking exciting amazing interesting inspiring boring tiring
    exhausting relaxing rewarding fulfilling challenging confusing surprising touching thrilling
    refreshing stunning
"""
_NO_ACTIVITY: Final = frozenset(_NOT_DOING.split())


_A_TIME: Final = re.compile(
    r" (?:an? |quite |such )(?:(?!for |since )[\w-]+ ){0,3}"
    r"(?:days?|nights?|weeks?|weekend|months?|years?|while|time|road|journey|ride|morning|summer)\b",
    re.IGNORECASE,
)
_TO_SPEAKER: Final = re.compile(r" (?:me|us)\b|.*\b(?:his|her|their) own\b", re.IGNORECASE)
"""Behind a verb without a subject: "Told me to rest" says what somebody else did."""


_OF_ACTIVITY: Final = re.compile(
    r" (?:test|lesson|licen[cs]e|exam|class|course|session|school|pool|club|team|machine|room"
    r"|ceremony|appointment|shoes|season|day|night|time|list)(?:e?s)?\b",
    re.IGNORECASE,
)
"""Behind "driving", "swimming" or "wedding" it makes a thing of them: "Driving test tomorrow"."""
_HAD: Final = re.compile(r" (?:my|an?|the|some|to|no) ", re.IGNORECASE)


def completed(text: str) -> str | None:
    """`Researching adoption agencies` -> `I'm researching adoption agencies`, None elsewhere."""
    found = re.match(
        r"(?P<adverb>(?:just|already|finally|still|recently|currently"
        r"|also) )?(?P<verb>[\w']+)(?= )",
        text,
        re.I,
    )
    if not found:
        return None
    verb, adverb = found["verb"].casefold(), (found["adverb"] or "").casefold()
    rest = text[found.end() :]
    clause = re.split(r"[,;—–]| - ", rest)[0]
    if verb in ("owe", "own", "weigh") and not re.match(r" (?:me|us|you)\b", rest):
        return f"I {adverb}{verb}{rest}"
    if verb == "gonna" and not clause.startswith(" be "):  # "Gonna be a great night": not I
        return f"I'm {adverb}going to{rest}"
    if verb == "been":  # "Been a busy week" is nobody
        return None if _A_TIME.match(rest) else f"I've {adverb}been{rest}"
    does = verb in ("doing", "using") or (verb == "going" and re.match(r" to (?!be\b)", rest))
    if (does or (verb.endswith("ing") and len(verb) > 5)) and verb not in _NO_ACTIVITY:
        no_verb = _FINITE.search(clause) or _OF_ACTIVITY.match(rest)
        return None if no_verb else f"I'm {adverb}{verb}{rest}"
    if (
        is_past(verb)
        and (verb != "had" or _HAD.match(rest))
        and verb not in {"was", "were", "did"}
        and not _TO_SPEAKER.match(rest)
        and text[0].isupper()
        and not _FINITE.search(clause)
    ):
        return f"I {adverb}{verb}{rest}"
    return None
