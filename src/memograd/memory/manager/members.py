"""Some members of a list that an item tells: "take Monster off" of three films.

    User's top films: Mushishi, Monster and Frieren.
    ->  User's top films: Mushishi and Frieren.

Invariants: at least one member stays, and nothing but whole members goes; where the message does
not say by name which, the answer is None. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import is_chinese
from memograd.memory.manager.past import present
from memograd.memory.reader.heads import has_verb

LONGEST: Final = 4  # words of a member
LONGEST_ZH: Final = 8  # characters
_AND: Final = re.compile(r",? and |,? & |,? or |, (?!\d{3}\b)", re.IGNORECASE)
_AND_ZH: Final = re.compile(r"、|(?:以及|还有|還有|[和跟与與])(?![\u4e00-\u9fff]{0,1}$)")
# Behind these a member is what stays: "quit them all but tea".
_STAYS: Final = re.compile(
    r"\b(?:except|apart from|all|but|only|just|keep(?:ing)?|still|stays?|left|instead"
    r"|add(?:ed|ing)?|now|new)\b|除了|[剩只留还還加添新换換改]|保留",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(
    r"[,.;!?，。；！？\n]+|\b(?:and i|because|cos|since)\b|\s(?=[\u4e00-\u9fff])"
)
_SUBJECT: Final = re.compile(r"(?:User|I|we|he|she|they|it)(?!['’]s)\b", re.IGNORECASE)
_DETERMINED: Final = re.compile(
    r"(?:an?|the|my|our|their|his|her|some|two|three|four|five|\d+) ", re.IGNORECASE
)
_BEFORE_ZH: Final = re.compile(
    ".*[：:]|.*?(?:喜欢|喜歡|爱吃|爱喝|会[弹说做打拉跳]?|有|养了?|是|学|吃|喝|玩|看|买了?|去过?|对)"
)
_BEHIND_ZH: Final = re.compile(r"(?<=.)(?:都?(?:过敏|過敏|不耐受|感兴趣|有兴趣))$")
_VERBS: Final = (
    r"(?:do|have|has|like|love|play|take|are|is|own|speak|eat|drink|use|need|want|study|learn|watch"
    r"|grow|keep|sell|teach|make|includes?)(?:e?s)?"
)
_COUNTED: Final = re.compile("^[一二两三四五六七八九十几\\d]+[个只条把台辆本部门份种]")


def without_members(text: str, message: str) -> str | None:
    """The statement without those members of its list that a clause of the message names; None
    where it names none or all of them, and where it may say that they stay."""
    chinese = is_chinese(text)
    bare = text.rstrip(" .。!！")
    behind = _BEHIND_ZH.search(bare) if chinese else None
    end = behind.start() if behind is not None else len(bare)
    listed = _listed(bare[:end], chinese=chinese)
    if listed is None:
        return None
    head, members = listed
    clauses = [one for one in _CLAUSE.split(message) if one and one.strip()]
    naming = [one for one in clauses if any(_names(one, m, members) for m in members)]
    if len(naming) != 1 or _STAYS.search(naming[0]):
        return None
    gone = [member for member in members if _names(naming[0], member, members)]
    stay = [member for member in members if member not in gone]
    if not stay:
        return None
    stop = text[len(bare) :] or ("。" if chinese else ".")
    return head + _joined(stay, chinese=chinese) + bare[end:] + stop


def names_members(text: str, message: str) -> bool:
    """Whether a message names some members of the list that an item tells, and not all."""
    return without_members(present(text), message) is not None


def _listed(text: str, *, chinese: bool) -> tuple[str, list[str]] | None:
    """What stands before a list, and its members."""
    first, *rest = (_AND_ZH if chinese else _AND).split(text)
    if chinese:
        if not rest or any(not 0 < len(one) <= LONGEST_ZH for one in rest):
            return None
        if "、" not in text or re.search(r"[，,；;]", text):
            return None
        lead = _BEFORE_ZH.match(first)
    else:
        if not rest or any(not 0 < len(one.split()) <= LONGEST or _tells(one) for one in rest):
            return None
        said = len("User said: ") if first.startswith("User said: ") else 0
        if ": " not in first[said:] and not re.search(r"\b(?:and|or)\b|&", text[len(first) :]):
            return None
        lead = re.match(r".*: ", first) or _before_first(first)
    if lead is None or lead.end() == len(first):
        return None
    return first[: lead.end()], [first[lead.end() :], *rest]


def _tells(member: str) -> bool:
    """Whether it is a statement and no member: "User runs a bakery and User keeps bees"."""
    return has_verb(member) or _SUBJECT.match(member) is not None


def _before_first(first: str) -> re.Match[str] | None:
    """What stands before the first member: up to its article, or else up to the verb."""
    determined = list(re.finditer(rf"(?<= ){_DETERMINED.pattern}", first, re.IGNORECASE))
    if determined and determined[-1].start() > len("User "):
        return re.match(f".{{{determined[-1].start()}}}", first)
    return re.match(
        r"User (?:\w+ly )?(?:is (?:learning|taking|studying|allergic to|into)|is|\w+s"
        r"(?: (?:to|for|in|at|with|on))?) "
        rf"|(?:User's|User and others) .*?\b{_VERBS} (?:(?:to|for|in|at|on) )?",
        first,
    )


def _names(clause: str, member: str, members: list[str]) -> bool:
    """Whether a clause names a member by all its words, or by its last one if no other has it."""
    if is_chinese(member):
        return _COUNTED.sub("", member) in clause
    said = {_stem(word) for word in re.findall(r"[\w'’-]+", clause)}
    words = [_stem(w) for w in re.findall(r"[\w'’-]+", _DETERMINED.sub("", member))]
    others = {_stem(w) for m in members if m != member for w in re.findall(r"[\w'’-]+", m)}
    return bool(words) and (set(words) <= said or (words[-1] in said and words[-1] not in others))


def _stem(word: str) -> str:
    return re.sub(r"['’]s$", "", word.casefold()).rstrip("s")


def _joined(members: list[str], *, chinese: bool) -> str:
    if len(members) == 1:
        return members[0]
    first, last = members[:-1], members[-1]
    return f"{'、'.join(first)}和{last}" if chinese else f"{', '.join(first)} and {last}"
