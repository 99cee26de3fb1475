"""An answer that points at a choice: "the latter", "second one", 后者, 第二个.

    "Is your appointment at the Eastside or the Harbour clinic?"  "second one"
    ->  "Is your appointment at the Harbour clinic?", "the Harbour clinic"

What was not chosen must not be remembered as if it were, so the question is told with the choice
alone.

Invariant: the choice is a stretch of the question, before whatever the answer says of it, and the
question told anew is made of its own words; where it is not clear what the choices are, or which
is meant, the answer is None. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memograd.memory.language import language_of
from memograd.memory.reader.idle import is_idle

Span = tuple[int, int]

Told = tuple[str, str]

LONGEST: Final = 6  # words, or Chinese characters, of a value that is none of the choices
UNLIKE: Final = 2  # characters by which Chinese choices may differ
LEAST_ASKED: Final = 2
"""Words, or Chinese characters, before the choices; "Tea or coffee?" says nothing without them."""
_FIRST, _MIDDLE, _LAST = "first", "middle", "last"
_POINTS: Final = re.compile(
    r"\W*(?:(?:um+|uh|oh|erm|hmm+|i(?:'d| would)? (?:say|think|guess|prefer|go (?:with|for))|let'?s"
    r"|go (?:with|for)|definitely|probably|prefer|make it|has to be|it'?s|that'?s|yeah|ok|please)"
    r"[,\s]+)*"
    r"(?:the )?(?:"
    r"(?P<first>former|first|1st|option (?:one|1|a)|no\.? ?1)"
    r"|(?P<second>second|2nd|option (?:two|2|b)|no\.? ?2)"
    r"|(?P<third>third|3rd|option (?:three|3|c)|no\.? ?3)"
    r"|(?P<middle>middle|in[- ]between)|(?P<last>latter|last))"
    r"(?: (?:one|option|choice))?"
    r"(?:[,.!\s]+(?:please|pls|thanks?|ta|i (?:think|guess|suppose)|for sure|definitely|lol|then"
    r"|obviously))*\W*",
    re.IGNORECASE,
)
_POINTS_ZH: Final = re.compile(
    r"\W*(?:嗯+|呃|那|就|选|選|要|还是|還是|应该是|應該是|是|我选|我要|当然是|肯定)*"
    r"(?:(?P<first>前者|前一[个個种種]|前面那?个?|前面嗰個|第一[个種种项項]?|头一个)"
    r"|(?P<second>第二[个種种项項個]?)|(?P<third>第三[个種种项項個]?)"
    r"|(?P<middle>中间那?个?|中間那?個?)|(?P<last>后者|後者|[后後]一[个個种種]|后面那?个?|後面那?個?|最后[一那]?个?|最後[一那]?個?))"
    r"[那个個种種]?(?:吧|啦|呀|哦|就行|就好|谢谢|謝謝|好了)*\W*"
)
_COMMA: Final = re.compile(r"\s*,\s*(?:or\s+)?|\s+or\s+", re.IGNORECASE)
_COMMA_ZH: Final = re.compile(r"[，,]?(?:还是|還是|或者|或是|抑或)|、")
_BOTH_ZH: Final = re.compile(
    r"(?:^|[，,：:。])(?P<one>[^，,：:。]{1,12}?)(?:和|跟|与|與)(?P<other>[^，,：:。和跟]{1,12}?)[，,]?"
    r"[您你]?(?:更?(?:喜欢|喜歡|想要?|倾向|傾向|选|選))?哪"
)
_LISTED_ZH: Final = re.compile(
    r"[?？]\s*(?P<one>[^，,：:。、?？\s]{1,6})、(?P<other>[^，,：:。、?？\s]{1,6})$"
)
# What stands before the first choice and belongs to all of them.
_BEFORE_ZH: Final = re.compile(
    r"[：:，,]|(?:是|在|要|选|選|喝|吃|用|买|買|去|住|坐|订|訂|约|約|到|学|學|养|養|穿|喜欢|喜歡|想|对|對|[叫称稱呼][您你]|為|为)(?=.)"
)
_CLAUSE: Final = re.compile(
    r"(?:do|does|did|is|are|was|were|have|has|would|should|shall|will|can|could|may|you|i|we|it)\b"
    r"|\S+(?:\s+\S+){4}",
    re.IGNORECASE,
)
# A sentence or a clause ends here; the point of "Mr. Haddad" ends none.
_HEAD: Final = re.compile(
    r"[:?]|! |(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bSt)(?<!\bProf)(?<!\b[A-Z])\. ",
    re.IGNORECASE,
)
# A choice on a line of its own, behind its number.
_LISTED: Final = re.compile(
    r"^[ \t]*(?:\d{1,2}|[a-dA-D])[.)、：:][ \t]*(?P<choice>[^\n]+?)[ \t]*$", re.MULTILINE
)
# All in one line: "A) formal B) relaxed C) strictly facts".
_LETTERS: Final = ("first", "second", "third")
_IN_LINE: Final = re.compile(
    r"(?<![A-Za-z\d])[a-d1-4](?:[).:]\s+|[、．.:：) ]\s*(?=[\u3400-\u9fff]))(?P<choice>[^?？]+?)"
    r"(?=[,;，；]?\s*[a-d1-4](?:[).:]\s|[、．.:：)]| (?=[\u3400-\u9fff]))|[?.？。]?\s*$)",
    re.IGNORECASE,
)
_NUMBERED: Final = re.compile(
    r"(?<=\([1-4a-d]\) ).+?(?=[,;]?\s+(?:(?:or|and)\s+)?\([1-4a-d]\) |[.?](?:\s|$)|$)"
    r"|(?<=option [1-4a-d]: ).+?(?=[,;.]?\s+(?:(?:or|and)\s+)?option [1-4a-d]: |[.?](?:\s|$)|$)",
    re.IGNORECASE,
)
"""In one sentence: "(1) a steamer, or (2) a wetsuit with a hood. Which one?" """
_LETTER: Final = re.compile(
    r"\W*(?:option )?(?:(?P<first>[a1])|(?P<second>[b2])|(?P<third>[c3]))"
    r"(?:[).,;:]+(?:\s*(?P<reason>\S.*))?|\W*(?:哈+|吧|呗|啦|lol|haha+|please|pls)?\W*$)",
    re.IGNORECASE | re.DOTALL,
)
_EXAMPLES: Final = re.compile(r"\b(?:for (?:example|instance)|such as|e\.g\.),? ", re.IGNORECASE)
_WHICH: Final = re.compile(r"\W*(?:which|who|what|how|when|where)\b", re.IGNORECASE)
_WHICH_THEN: Final = re.compile(r"(?<=\w)[.?!] +(?:which|what)\b[^.?!]*[?.! ]*$", re.IGNORECASE)
"""A question behind the sentence that has the choices."""
_PREPOSITION: Final = re.compile(
    r"(?:at|in|on|for|to|by|with|from|of|as|is|are|was|do|you|your|it|be|prefer|want|like|use|take"
    r"|drink|eat|have|get|about|say)\s+",
    re.IGNORECASE,
)


def chosen(question: str, answer: str) -> Told | None:
    """The question with the choice alone, and the choice, or with what the answer gives instead of
    all choices; None where it does neither."""
    chinese = language_of(question) == "zh"
    in_line = list(_IN_LINE.finditer(question))
    if len(in_line) > 1 and (letter := _LETTER.fullmatch(answer)) and "\n" not in question:
        number = next(n for n, name in enumerate(_LETTERS) if letter[name])
        if number < len(in_line):
            choice = in_line[number]["choice"].strip()
            reason = f", {letter['reason']}" if letter["reason"] else ""
            return f"{question[: in_line[0].start()].rstrip()} {choice}", choice + reason
    first, comma, reason = _clauses(answer)
    found = (_POINTS_ZH if language_of(first) == "zh" else _POINTS).fullmatch(first)
    listed = list(_LISTED.finditer(question))
    numbered = list(_NUMBERED.finditer(question))
    if len(numbered) > 1:
        spans = [one.span() for one in numbered]
    elif listed:
        spans = [one.span("choice") for one in listed]
    elif len(in_line) > 1:
        spans = [one.span("choice") for one in in_line]
    else:
        spans = _choices_chinese(question) if chinese else _choices_english(question)
    if (another := _another(question, spans, (first, comma, reason))) is not None:
        return another
    place = _place(found, len(spans)) if found else None
    if not (found or listed):
        place = _said_again(question, spans, first)
    if place is None:
        return None
    start, end = spans[place]
    if listed and len(numbered) < 2:  # "Which exam?\n1. First\n2. Proficiency"
        asked = question[: listed[0].start()].rstrip()
        return f"{asked} {question[start:end]}", question[start:end] + comma + reason
    told = (
        re.sub(r"\([1-4a-dA-D]\) $|(?i:option [1-4a-d]: )$", "", question[: spans[0][0]])
        + question[start:end]
        + question[spans[-1][1] :]
    )
    return told, question[start:end] + comma + reason


def _another(question: str, spans: Sequence[Span], answer: tuple[str, str, str]) -> Told | None:
    """What an answer gives instead of all choices: "Neither, oat milk", 都不是，江西赣州."""
    first, _, other = answer
    if len(spans) < 2 or not _NONE_OF_THEM.fullmatch(first) or _SAYS_WHO.match(other):
        return None
    value, comma, reason = _clauses(other)
    value = _THANKS.sub("", value).strip(" .!。！")
    long = len(value) if language_of(value) == "zh" else len(value.split())
    if not 0 < long <= LONGEST or is_idle(value) or value.endswith(("?", "？")):
        return None  # "Neither, thanks"
    return question[: spans[0][0]] + value + question[spans[-1][1] :], value + comma + reason


def _clauses(answer: str) -> tuple[str, str, str]:
    """The answer up to its first comma, the comma, and what it says behind it.

    "Option 1, please" says nothing more.
    """
    comma = re.search(r"[,，;；](?!\d)\s*|(?<=[\u4e00-\u9fff])\s+(?=[\u4e00-\u9fff])", answer)
    points = _POINTS.fullmatch(answer) or _POINTS_ZH.fullmatch(answer)
    if comma is None or points or not answer[comma.end() :].strip():
        return answer, "", ""
    return answer[: comma.start()], comma[0], answer[comma.end() :]


def _said_again(question: str, spans: Sequence[Span], answer: str) -> int | None:
    """Which of the choices the answer repeats: "Thursdays" of "on Mondays or Thursdays"."""
    before = question[: spans[0][0]] if spans else ""
    chinese = language_of(question) == "zh"
    said_before = len(before) if chinese else len(before.split())
    lengths = [end - start for start, end in spans]
    if said_before < LEAST_ASKED or (chinese and max(lengths) - min(lengths) > UNLIKE):
        return None  # of 全职跑外卖还是兼职 the deliveries are no part of a choice
    said = _plain(answer)
    if _ALL_OR_NONE.fullmatch(said):
        return None
    choices = [_plain(question[slice(*span)]) for span in spans]
    same = [n for n, choice in enumerate(choices) if choice == said]
    if not same and said:  # 内 of 神经内科 and 神经外科, "white" of "white rice" and "brown rice"
        same = [n for n, one in enumerate(choices) if _is_part(said, one, chinese=chinese)]
    return same[0] if said and len(same) == 1 < len(spans) else None


def _is_part(said: str, choice: str, *, chinese: bool) -> bool:
    if chinese:
        return said in choice
    return set(said.split()) <= set(choice.split()) - _SMALL


_SMALL: Final = frozenset(("the", "a", "an", "in", "on", "at", "by", "with", "for", "of", "your"))
_THANKS: Final = re.compile(r"\s+(?:please|pls|thanks?|thx|actually|lol)\W*$", re.IGNORECASE)
_NONE_OF_THEM: Final = re.compile(
    r"\W*(?:neither|none)(?: of (?:them|those|these|the (?:two|above)))?\W*"
    r"|\W*(?:都不是|都不|皆非|皆不是|两个都不是?|兩個都不是?)\W*",
    re.IGNORECASE,
)
_SAYS_WHO: Final = re.compile(
    r"\W*(?:i|we|he|she|it|they|my|our|there|that|this|just|not|no)\b|[我他她它咱没不别]",
    re.IGNORECASE,
)
_ALL_OR_NONE: Final = re.compile("both|either|neither|all|none|any|都行?|都可以|都不")


def _plain(choice: str) -> str:
    bare = re.sub(r"[^\w\s]", "", choice).strip().casefold()
    return re.sub(r"^(?:(?:on|in|at|the|an?|by|with|for)\s+)+", "", bare)


def _place(found: re.Match[str], choices: int) -> int | None:
    """Which of so many choices is meant."""
    if choices < 2:
        return None
    name = next(name for name, text in found.groupdict().items() if text)
    if name == _MIDDLE:
        return choices // 2 if choices % 2 else None
    if name == _LAST:
        return choices - 1
    place = [_FIRST, "second", "third"].index(name)
    return place if place < choices else None


def _choices_english(question: str) -> list[Span]:
    """Where the choices stand in the last clause that has an "or"; empty where it has none."""
    wanted = _WHICH_THEN.search(question)  # "in blue or in red. Which would you like?"
    end = wanted.start() if wanted else len(question.rstrip(" ?!."))
    ors = list(re.finditer(r"\s+or\s+", question[:end], re.IGNORECASE))
    if not ors:
        return []
    heads = [m.start() for m in _HEAD.finditer(question, 0, ors[0].start())]
    head = max(heads, default=-1) + 1
    examples = list(_EXAMPLES.finditer(question, head, ors[0].start()))
    head = examples[-1].end() if examples else head
    joints = [m for m in _COMMA.finditer(question, head, end) if m.end() < end]
    first_or = next(n for n, joint in enumerate(joints) if re.search(r"\bor\b", joint[0], re.I))
    while first_or > 0 and _CLAUSE.match(question, joints[0].end(), joints[1].start()):
        joints.pop(0)  # "When you travel, do you fly ...": a clause, and no choice
        first_or -= 1
    later = [
        (joint.end(), joints[n + 1].start() if n + 1 < len(joints) else end)
        for n, joint in enumerate(joints)
    ]
    if len(later) > 1 and _WHICH.match(question, head):
        return later  # "Which of them has the allergy, Jonah or Micah?"
    words = len(question[later[-1][0] : later[-1][1]].split())
    if words > 6 or not later:
        return []
    before = question[head : joints[0].start()]
    if examples:
        start = head
    elif question[head - 1 : head] == ":":
        start = head + len(before) - len(before.lstrip())
    else:
        starts = [head + m.start() for m in re.finditer(r"\S+", before)]
        start = starts[max(0, len(starts) - words)]
        own = _PREPOSITION.match(question, later[-1][0], later[-1][1])  # "or by train"
        while not own and (lead := _PREPOSITION.match(question, start, joints[0].start())):
            start = lead.end()
    return [(start, joints[0].start()), *later] if start < joints[0].start() else []


def _choices_chinese(question: str) -> list[Span]:
    end = len(question.rstrip("？?。！! 呢呀啊"))
    joints = list(_COMMA_ZH.finditer(question, 0, end))
    if joints and (asked := re.search("[？?。]", question[joints[-1].end() : end])):
        end = joints[-1].end() + asked.start()  # 男孩还是女孩？多大了？
    if not any(joint[0] != "、" for joint in joints):
        two = _BOTH_ZH.search(question, 0, end)  # 周三上午和周四下午您哪个方便
        two = two or _LISTED_ZH.search(question, 0, end)  # 要几寸的?8寸、10寸?
        return [two.span("one"), two.span("other")] if two else []
    later = [
        (joint.end(), joints[n + 1].start() if n + 1 < len(joints) else end)
        for n, joint in enumerate(joints)
    ]
    before = question[: joints[0].start()]
    leads = [m.end() for m in _BEFORE_ZH.finditer(before)]
    start = leads[-1] if leads else max(0, len(before) - (later[-1][1] - later[-1][0]))
    if start >= joints[0].start() or any(b - a > 12 or a >= b for a, b in later):
        return []
    return [(start, joints[0].start()), *later]
