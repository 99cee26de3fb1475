"""A corrected value put into the statement that had the wrong one: "wait, 580" into "Rent is 540".

Only where it is beyond doubt which value is meant: the statement has one value of that type (a
number, a time, a weekday, a month, a name spelt almost alike) and the message has one other.

Invariant: only the one value changes, or the answer is None. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Final

from memograd.memory.language import is_chinese
from memograd.memory.manager.cues import ANSWERED
from memograd.memory.manager.denied_value import LONGEST, instead_of_named
from memograd.memory.manager.fitted import put
from memograd.memory.reader.screen_english import is_reaction
from memograd.memory.statements.value_types import NEGATED, NUMERALS, TYPES, next_word, plain

# Beside the old value: with such a word the other one takes its place.
_TAKES_BACK: Final = re.compile(
    r"\b(?:not|no|nope|but|meant?|wrote|typed|thought|read|wrong|instead|rather|than|sorry|actually"
    r"|was|were|from|to|now|used|make that|scratch|correction"
    r"|forgive me|pardon|my (?:mistake|bad)|apologies)\b|n['’]t\b|[?*→]|->",
    re.I,
)
_WORD: Final = re.compile(r"[^\W\d_][\w'’-]*")
_STILL: Final = re.compile(r"\bstill (?:(?:on|at|the) )*$|(?:[还仍]然?是?|照旧)$", re.IGNORECASE)


def corrected(old: str, message: str) -> str | None:
    """The statement with the value that the message gives instead, None where that is in doubt."""
    if len(message) > LONGEST:
        return None
    told = instead_of_named(old, message)
    if told:
        return told
    rest_old, rest_new = old, message
    for pattern in TYPES:
        mine = [m for m in pattern.finditer(rest_old)]
        # "Lost 11-0" gives no other number for "the under-9s".
        its = [m for m in pattern.finditer(rest_new) if _alike(m[0], mine)]
        still = {plain(m[0]) for m in its if _STILL.search(rest_new[: m.start()])}
        mine = [m for m in mine if plain(m[0]) not in still]  # "Ike is thursday, abby still mon"
        known = {plain(m[0]) for m in mine} | still
        known |= {re.sub("^[上下]午", "", value) for value in known}
        unknown = {
            plain(m[0]): m
            for m in reversed(its)
            if plain(m[0]) not in known and not NEGATED.search(rest_new[: m.start()])
        }
        new = list(unknown.values())
        if len(mine) > 1 and len(new) == 1:
            # "12 megs down and 3 up" and "it's 30 up": the word behind says which one is meant.
            unit = next_word(message, new[0].end())
            alike = [m for m in mine if unit and next_word(old, m.end()) == unit]
            if len(alike) == 1:
                return put(old, alike[0].span(), new[0][0].strip())
        if len(mine) == 1 and len(new) == 1:
            said_so = plain(mine[0][0]) in {plain(n[0]) for n in its}
            if said_so and not is_chinese(message) and not _TAKES_BACK.search(message):
                return None  # "38! I said 30 by Easter and you did it by June"
            return put(old, mine[0].span(), new[0][0].strip())
        named = [m for m in mine if plain(m[0]) in {plain(n[0]) for n in its}]
        if len(named) == 1 and len(new) == 1:  # "7.20, not 6.20"
            return put(old, named[0].span(), new[0][0].strip())
        rest_old = pattern.sub(lambda m: " " * len(m[0]), rest_old)
        rest_new = pattern.sub(lambda m: " " * len(m[0]), rest_new)
    return (
        _other_day(old, message)
        or _other_half_of_day(old, message)
        or _respelt(old, message)
        or _framed(old, message)
    )


def _alike(value: str, values: Sequence[re.Match[str]]) -> bool:
    """Whether it is written in parts, as 11-0 and 555-4321 are, where one of the others is."""
    return not re.search(r"\d-\d", value) or any("-" in other[0] for other in values)


def _other_day(old: str, message: str) -> str | None:
    """ "the 12th" for "the 11th of October", 3号 for 6月1号."""
    dates = list(_DATE.finditer(old))
    if len(dates) != 1 or _DATE.search(message):
        return None
    mine = list(_DAY_IN_DATE.finditer(dates[0][0]))
    told = [found["zh"] or _day(found["en"]) for found in _DAY_ALONE.finditer(message)]
    days = [day for day in told if len(mine) == 1 and day != mine[0][0].casefold()]
    if len(days) != 1:
        return None
    start = dates[0].start() + mine[0].start()
    return put(old, (start, start + len(mine[0][0])), days[0])


def _day(written: str) -> str:
    """nineteenth and 19TH are 19th."""
    word = written.casefold()
    return _ORDINALS.get(word, word)


_DATE: Final = TYPES[1]
_TEENS = "eleven twelf thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_ORDINALS: Final = {
    f"{word}th": f"{number}th" for number, word in enumerate(_TEENS.split(), 11)
} | {
    "tenth": "10th",
    "twentieth": "20th",
    "thirtieth": "30th",
}
_DAY_ALONE: Final = re.compile(
    rf"(?<![\w.])(?:the )?(?P<en>\d{{1,2}}(?:st|nd|rd|th)|{'|'.join(_ORDINALS)})(?!\w)"
    rf"|(?P<zh>[\d{NUMERALS}]{{1,3}}[日号])(?!楼|线)",
    re.I,
)
_DAY_IN_DATE: Final = re.compile(
    rf"(?<!\d)\d{{1,2}}(?:st|nd|rd|th)(?!\w)|(?<=月)[\d{NUMERALS}]{{1,3}}[日号]", re.I
)


def _other_half_of_day(old: str, message: str) -> str | None:
    """ "*pm" for "8am"."""
    said = re.fullmatch(
        r"\W*(?:\w+\W+)?([ap])\.?m\.?\W*(?:sorry|oops|duh|obviously)?\W*", message, re.I
    )
    hours = list(re.finditer(r"(?<=\d)( ?)([ap])(\.?m\b)", old, re.I))
    if said is None or len(hours) != 1 or hours[0][2].casefold() == said[1].casefold():
        return None
    return put(old, hours[0].span(), hours[0][1] + said[1].lower() + hours[0][3])


Likeness = Callable[[str, Sequence[str]], list[float]]


def put_in_place(old: str, message: str, likeness: Likeness) -> str | None:
    """The statement with the bare value of the message for the value in it that is most like it.

    "actually no, panna cotta" for "User's favourite dessert is tiramisu": values of no known type.
    None where the message has no bare value, or where two places of the statement are as likely.
    """
    new = bare_value(message) if is_chinese(old) == is_chinese(message) else None
    if new is None or ANSWERED.match(old):
        return None
    if new.casefold() in old.casefold() or (new.islower() and new.rstrip("s") in old):
        return None
    if any(pattern.search(new) and not pattern.search(old) for pattern in TYPES):
        return None  # "I mean May 9th" says nothing of an allergy to peanuts
    spans = _spans_chinese(old, new) if is_chinese(old) else _spans_english(old, new)
    if not any(pattern.search(new) for pattern in TYPES):  # "Luton" takes no date's place
        spans = [span for span in spans if not any(p.search(old[slice(*span)]) for p in TYPES)]
    if not spans:
        return None
    end = len(old.rstrip(" .。"))
    length = len(new) if is_chinese(old) else len(new.split())
    scores = []
    for (start, stop), alike in zip(
        spans, likeness(new, [old[a:b] for a, b in spans]), strict=True
    ):
        said = old[start:stop]
        same = (len(said) if is_chinese(old) else len(said.split())) == length
        named = said[:1].isupper() == new[:1].isupper() and not is_chinese(old)
        scores.append(alike + 0.06 * (stop == end) + 0.1 * same + 0.1 * named)
    best = max(range(len(spans)), key=scores.__getitem__)
    apart = [
        score
        for (a, b), score in zip(spans, scores, strict=True)
        if b <= spans[best][0] or a >= spans[best][1]
    ]
    start, stop = spans[best]
    in_place = is_chinese(old) and sum(map(str.__eq__, new, old[start:stop])) * 2 >= len(new)
    rest = old[:start] + "|" + old[stop if in_place or not is_chinese(old) else start :]
    if (
        _shares(new, rest)
        or scores[best] < LEAST_LIKE
        or (apart and scores[best] - max(apart) < LEAST_APART)
    ):
        return None
    return put(old, spans[best], new)


def _shares(new: str, rest: str) -> bool:
    """Whether the new value repeats what the statement says elsewhere, and so is a remark on it."""
    if is_chinese(new):
        return any(new[n : n + 2] in rest for n in range(len(new) - 1))
    words = {word.casefold() for word in _WORD.findall(rest)}
    return any(len(word) > 3 and word.casefold() in words for word in _WORD.findall(new))


LEAST_LIKE: Final = 0.2
LEAST_APART: Final = 0.04
_FUNCTION: Final = re.compile(
    r"(?:user|users?'s?|said|their|his|her|its|is|are|was|were|be|been|has|have|had|does|do|did|will"
    r"|the|an?|in|on|at|to|for|of|by|with|from|and|or|as|it|he|she|they|there|called|named|plays"
    r"|works?|lives?|got|gets|just|really|like|likes)",
    re.I,
)
_BARE_CHINESE: Final = re.compile(
    r"^(?:[\W]*(?:不对|不對|不是|不|[说說记記写寫打搞弄看听聽念敲讲講]?[错錯混反岔]了?|[说說记記写寫][大小多少早晚高低]了|嘴瓢|手抖|手快|脑抽|口误|口誤|手滑|呃|额|欸|诶|哎呀?|更正(?:一下)?|纠正一下|改一下|对不起|對不起|不好意思|抱歉|哦|噢|啊"
    r"|等等|其实|其實|应该|應該|是|叫|我?(?:的)?意思)+[，,。！!\s:：]*)+"
)


def bare_value(message: str) -> str | None:
    """The value that an elliptic correction begins with: cello, in "cello. cello!!! sorry"."""
    if is_chinese(message):
        # "嘴瓢,是浙江工商": behind 是 stands the value, whatever excuse comes first.
        told = re.search(r"[，,。!！\s](?:应该|應該)?[是係](?!不是|我|你)(.+)", message)
        rest = _BARE_CHINESE.sub("", told[1] if told else message.strip())
        first = re.split(r"[，,。！!？?\s；;]", rest)[0]
        value = first.rstrip("啦了哈呢吧啊才对先啱")
        # "东门拆了" and "咋可能" are clauses, and no values.
        # 后面那个 answers a question: it points at a value and is none.
        clause = first.endswith("了") or re.search(
            "[咋怎哪]|什么|可能|估计|[这那]个|[前后]者|第[一二三四]", value
        )
        fit = (
            0 < len(value) <= 6
            and not clause
            and not re.search(r"[我你他她错錯混是有没沒把被姓]|[^\w.·/:-]", value)
        )
        return value if fit else None
    if _TELLS_WHO.match(message):
        return None
    said = re.split(r":\s+", _FILLERS.sub("", message.strip()))[-1]
    if _LOOKED.search(said):  # "just gone and looked, its a Worcester"
        said = re.sub(r".*\b(?:it'?s|that'?s|its|it is|it says) (?=\S)", "", said, flags=re.I)
    for part in _BEHIND.split(said)[:1]:
        value = re.sub(
            r"^(?:an?|the|my|our|his|her|their|in|at|to) (?=\w)", "", _FILLERS.sub("", part.strip())
        )
        value = re.sub(r" (?:only|actually)$", "", value.strip(" *\"'.!"), flags=re.I)
        if (
            0 < len(value.split()) <= 4
            and not _CLAUSE.search(value)
            and not _NO_VALUE.search(value)
        ):
            return value
    return None


# "Declan, that's my brother, lives in Perth": it tells of somebody, and begins with no value.
_TELLS_WHO: Final = re.compile(
    r"\W*[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?, (?:(?:that|who)['’]?s|(?:that|who) is|my|our)"
    r" (?!(?:bad|mistake|fault|error)\b)(?:my |our |the |his |her )?[\w-]+,? \w",
)
_CLAUSE: Final = re.compile(
    r"\b(?:i|i'?m|my|we|he|she|they|it|you|that'?s|this|did|does|do|is|are|was|were|has|have|can|will"
    r"|says|said|rang|rings|tells?|told|informs?|informed|reckons|swears|texted|laughed|checked"
    r"|same|right|wrong|always|went|came|bought|sold|\w+ed (?:in|out|up|to|on|off|away|back|by))\b",
    re.I,
)
# Where a correction comes from, and what only points at a thing, is no value of it.
_NO_VALUE: Final = re.compile(
    r"^(?:from|by|per|says?|said|according|courtesy|for|since|because)\b"
    r"|^(?:yikes|oof|eek|yay|ouch|whoa|gosh|damn|bleh|eww*|phew|meh|yum|lush|grand|cheers)\b|\bones?$|^[ap]\.?m\.?$",
    re.I,
)
_LOOKED: Final = re.compile(
    r"^(?:(?:i|we|i'?ve|we'?ve|just|so|sorry) )*(?:\w+ (?:and )?){0,3}?"
    r"(?:look|check|re-?read)(?:ed)?\b",
    re.I,
)
_BEHIND: Final = re.compile(
    r"[.,!?;()]+(?:\s|$)|!+| i (?:mean|meant|should)\b| - | (?:omg|lol|haha|ffs|sorry|duh)\b", re.I
)


def _spans_english(old: str, new: str) -> list[tuple[int, int]]:
    # A plain word is not put in the place of the property: User's dessert, User's girlfriend.
    owned = re.match(
        r"User's (?:[a-z][\w-]* ){0,2}[a-z][\w-]*"
        r"(?:'s(?= an? )|(?= (?:[A-Z]|is |are |was |\w+s )))",
        old,
    )
    first = owned.end() if owned else 0
    words = [
        word
        # B+ and C# are whole, as "Mr." is.
        for word in re.finditer(
            r"\b[A-Za-z]{1,2}(?:[+#]{1,2}|-)(?!\w)|[\w'’.-]*[\w]|[A-Z]\w+\.", old
        )
        if word.start() >= first or not word.start()
    ]
    longest = len(new.split()) + 1
    return [
        (words[i].start(), words[j].end())
        for i in range(1, len(words))
        for j in range(i, min(i + longest, len(words)))
        if not any(_FUNCTION.fullmatch(word[0]) for word in words[i : j + 1])
    ]


def _spans_chinese(old: str, new: str) -> list[tuple[int, int]]:
    start = re.match(r"用户(?:说：|等人|的)?", old)
    first, last = (start.end() if start else 0), len(old.rstrip("。"))
    return [
        (a, b)
        for a in range(first, last)
        for b in range(a + 1, last + 1)
        if abs(b - a - len(new)) <= 1
        and not re.search(r"[的是叫在了吃喝用买去姓，,。]", old[a:b])
        and bool(_LATIN.search(old[a:b])) == bool(_LATIN.search(new))
        and not any(_LATIN.fullmatch(old[n - 1 : n]) and _LATIN.match(old[n:]) for n in (a, b))
    ]


_LATIN: Final = re.compile(r"[A-Za-z\d]")  # 118 is one thing


def _starred_chinese(old: str, message: str) -> str | None:
    """*会计 for 会记: of as many characters, most of them the same."""
    starred = re.match(r"\W*\*([\u4e00-\u9fff]{2,6})(?![\u4e00-\u9fff])", message)
    if starred is None or starred[1] in old:
        return None
    new = starred[1]
    alike = {
        at: sum(map(str.__eq__, new, old[at : at + len(new)]))
        for at in range(len(old) - len(new) + 1)
    }
    at = max(alike, key=alike.__getitem__, default=0)
    single = list(alike.values()).count(alike.get(at, 0)) == 1
    return put(old, (at, at + len(new)), new) if single and 2 * alike[at] >= len(new) else None


def _respelt(old: str, message: str) -> str | None:
    """A name that the message spells a little differently."""
    if is_chinese(message):
        return _starred_chinese(old, message)
    known = {word.casefold() for word in _WORD.findall(old)}
    found = []
    message = _FILLERS.sub("", message)  # "Scratch that" is no other spelling of a watch
    for written in _WORD.findall(message):
        new = re.sub(r"['’]s?$", "", written)
        plain = not new[0].isupper() and f"{new}*" not in message and f"*{new}" not in message
        if len(new) < (6 if plain else 4) or new.casefold() in known or new.casefold() in _COMMON:
            continue
        starred = f"{new}*" in message or f"*{new}" in message
        for mine in _WORD.finditer(old):
            was = re.sub(r"['’]s?$", "", mine[0])
            if new.rstrip("s") == was.rstrip("s") and (plain or new.rstrip("s").endswith("day")):
                continue  # several floors are no other spelling of one, nor are Mondays
            named = was[0].isupper() or len(was) > 4
            if not named or was.casefold() == "user":
                continue
            first = message.strip(" *").startswith(new) and len(new) > 5
            least = 0.6 if starred or first else 0.75
            pair = SequenceMatcher(None, new.casefold(), was.casefold())
            # Nearly all pairs are unlike at a glance: both say at least how alike a pair is.
            if pair.real_quick_ratio() < least or pair.quick_ratio() < least:
                continue
            if (alike := pair.ratio()) >= least:
                found.append((alike, (mine.start(), mine.start() + len(was)), new))
    if found:
        _, span, new = max(found)
        return None if new.casefold() == old[slice(*span)].casefold() else put(old, span, new)
    return _renamed(old, message)


def _framed(old: str, message: str) -> str | None:
    """The part in which a Chinese clause differs from one of the message: 怀化 in 我是湖南怀化的,
    where 湖南衡阳的 was said."""
    found = set()
    for mine in re.finditer(r"是([\u4e00-\u9fff]{3,10})(?=[，,。！!？?]|$)", old):
        for its in re.findall(r"是([\u4e00-\u9fff]{3,10})(?=[，,。！!？?\s]|$)", message):
            first = _alike_up_to(mine[1], its)
            last = _alike_up_to(mine[1][first:][::-1], its[first:][::-1])
            start, end = mine.start(1) + first, mine.end(1) - last
            new = its[first : len(its) - last]
            if first >= LEAST_FRAME and 1 < len(new) == end - start:
                found.add(put(old, (start, end), new))
    return found.pop() if len(found) == 1 else None


def _alike_up_to(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


LEAST_FRAME: Final = 2  # characters that both clauses begin with, behind 是


def _renamed(old: str, message: str) -> str | None:
    """The name that a message begins with, for the only name in the statement: "Wick. Sorry"."""
    if ANSWERED.match(old):
        return None  # "First, how many years?" names nobody
    names = [m for m in _NAMES.finditer(old) if m.start() and m[0] not in ("User", "User's", "I")]
    bare = _FILLERS.sub("", message.strip())
    said = re.match(r"(?P<new>[A-Z][\w'-]+(?: [A-Z][\w'-]+){0,2})(?=[.,!?;]| they| is\b|$)", bare)
    if len(names) != 1 or said is None or said["new"].casefold() in old.casefold():
        return None
    if is_reaction(said["new"]) or _CALLS.match(bare):
        return None  # "Thanks, Ann!" and "Hey Jon!" begin with a capital, too
    new = said["new"].title() if said["new"].isupper() and len(said["new"]) > 3 else said["new"]
    return put(old, names[0].span(), new)


_CALLS: Final = re.compile(
    r"(?:yes|yeah|yep|no|ok|okay|oh|wow|whoa|haha|lol|thank|thanks|thx|hey|hi|hello|hiya|yo|dear|bye|congrats|congratulations|absolutely|totally"
    r"|exactly|definitely|awesome|amazing|great|nice|cool|sure|glad|good|same|love|what|how|when"
    r"|where|why|who|let|keep|take|see|happy|agreed|true|right|woah|yay|aww?|yup|btw|so|and|but"
    r"|then|now|today|also|just|still|maybe|perhaps|my|our|we|they|you|he|she|this|that)\b",
    re.I,
)
_NAMES: Final = re.compile(r"[A-Z][\w'-]*[\w](?: [A-Z][\w'-]+)*")
_FILLERS: Final = re.compile(
    r"^(?:\W*\b(?:no|nah|nope|(?:scratch|strike|scrap) that|well|sorry|actually|h+m+"
    r"|hang on|wait|i mean|i lied?|my bad|ah|oh"
    r"|forgive me|excuse me|pardon(?: me)?|i beg (?:your )?pardon|i meant"
    r"|strictly speaking|to be precise"
    r"|argh|oops"
    r"|correction|typo|i lied|meant|misread|misremembered|apologies"
    r"|not \w+|it'?s|it is|is|make that|in fact"
    r"|dad says|mum says|she says|he says)\b[\s,.!:-]*)+",
    re.I,
)


_NO_NAMES: Final = "that with name spelt spelled typo sorry mean actually wait user"
_COMMON: Final = frozenset(_NO_NAMES.split())
