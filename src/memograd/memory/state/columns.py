"""What a ranker wants to know of records before anybody asks, as columns of numpy.

`surface` says what can be seen of a text without understanding it (a time word, a number, a place,
a wish), one bit a kind, English and Chinese: of its first 2,000 characters, the name of who said it
and whether a photo came with it. `describe` says it once of every record, when its segment is first
searched. Invariant: a row depends on its record alone, so columns of a joined segment are the
joined columns. Only `spoken` looks at all rows of a memory: where most texts say who speaks ("Ann:
I moved."), as people's talk is told to a memory that knows a user and an assistant, these are the
speakers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import numpy as np

from memograd.memory.language import simplified
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.turns import NOT_PEOPLE
from memograd.memory.text_caches import of_texts

DAY_SECONDS = 86400.0
READ: Final = 2000
FLAGS: Final = (
    "time", "number", "place", "name", "reason", "first", "suggest", "prefer",
    "question", "caption", "assistant", "user", "machine",
)  # fmt: skip
BIT: Final = {name: 1 << at for at, name in enumerate(FLAGS)}
ASSISTANTS: Final = frozenset({"assistant", "ai", "model", "bot", "gpt", "助手"})
USERS: Final = frozenset({"user", "human", "用户", "用戶"})
MACHINES: Final = NOT_PEOPLE
CHATTING: Final = ASSISTANTS | USERS
LEAST_NAMED: Final = 4  # turns
MOST_NAMED: Final = 0.7  # of the texts; an assistant's begin with "Day 1:" now and then
_SPEAKS: Final = re.compile(
    r"\s*\**([^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,2})\**\s?(?::\**\s+|：\s*)\S"
)


@dataclass(frozen=True, slots=True)
class Columns:
    """flags: int64 `[n]`, the bits of `surface`. day: float64 `[n]`, days since 1970, NaN where
    nothing says when. session: int64 `[n]`, -1 for items. names: lower-case speakers; speaker:
    int64 `[n]`, numbers into them; named: int64 `[n]`, the same of whom the text begins with, -1
    where it begins with nobody."""

    flags: np.ndarray
    day: np.ndarray
    session: np.ndarray
    names: tuple[str, ...]
    speaker: np.ndarray
    named: np.ndarray

    def taken(self, rows: np.ndarray) -> Columns:
        """The same of some rows, in their order."""
        return Columns(
            self.flags[rows],
            self.day[rows],
            self.session[rows],
            self.names,
            self.speaker[rows],
            self.named[rows],
        )


def describe(records: Sequence[Any]) -> Columns:
    """The columns of turns or items; of other records, which are not ranked, nothing is known."""
    n = len(records)
    flags, session, speaker = np.zeros(n, np.int64), np.full(n, -1, np.int64), np.zeros(n, np.int64)
    day, named = np.full(n, np.nan), np.full(n, -1, np.int64)
    numbers: dict[str, int] = {}
    for at, record in enumerate(records):
        name, moment = "", None
        if isinstance(record, MemoryItem):
            flags[at] = surface(record.text, "", False)
            moment = record.valid_from or record.updated_at
        elif hasattr(record, "speaker"):
            name = record.speaker.lower()
            caption = bool(record.caption or record.images)
            flags[at] = surface(record.text or record.caption or "", name, caption)
            moment, session[at] = record.time, record.session
            if name in CHATTING and (found := _SPEAKS.match(record.text)):
                named[at] = numbers.setdefault(found[1].lower(), len(numbers))
        speaker[at] = numbers.setdefault(name, len(numbers))
        if moment is not None:
            day[at] = _day(moment)
    return Columns(flags, day, session, tuple(numbers), speaker, named)


def join_columns(columns: Sequence[Columns]) -> Columns:
    """The rows of all, one after the other."""
    if len(columns) == 1:
        return columns[0]
    numbers: dict[str, int] = {}
    speakers, named = [], []
    for one in columns:
        new = [numbers.setdefault(name, len(numbers)) for name in one.names]
        of = np.array([*new, -1], np.int64)  # -1 stays what it is
        speakers.append(of[one.speaker])
        named.append(of[one.named])
    return Columns(
        np.concatenate([one.flags for one in columns]),
        np.concatenate([one.day for one in columns]),
        np.concatenate([one.session for one in columns]),
        tuple(numbers),
        np.concatenate(speakers),
        np.concatenate(named),
    )


def spoken(columns: Columns) -> Columns:
    """The columns with those as speakers whom most texts of users and assistants begin with; names
    of nobody who speaks are empty."""
    flags, speaker, known = columns.flags, columns.speaker, columns.named >= 0
    roles = BIT["user"] | BIT["assistant"]
    chatting = flags & roles != 0
    if known.sum() >= max(LEAST_NAMED, MOST_NAMED * chatting.sum()):
        role_of = np.array([_role_bit(name) for name in columns.names], np.int64)
        flags = np.where(known, flags & ~roles | role_of[columns.named], flags)
        speaker = np.where(known, columns.named, speaker)
    speaks = np.bincount(speaker, minlength=len(columns.names)).tolist()
    names = tuple(name if turns else "" for name, turns in zip(columns.names, speaks, strict=True))
    return replace(columns, flags=flags, speaker=speaker, names=names)


@lru_cache(maxsize=1 << 14)
def _day(moment: datetime) -> float:
    """Days since 1970 by the clock where it was said: a day there is a day."""
    return moment.replace(tzinfo=UTC).timestamp() / DAY_SECONDS


def surface(text: str, speaker: str, caption: bool) -> int:
    """The bits of `FLAGS`; speaker: in small letters, empty for an item."""
    bits = _of_text(text)
    if caption:
        bits |= BIT["caption"]
    return bits | _role_bit(speaker)


def _role_bit(speaker: str) -> int:
    if speaker in ASSISTANTS:
        return BIT["assistant"]
    if speaker in USERS:
        return BIT["user"]
    return BIT["machine"] if speaker in MACHINES else 0


@of_texts
@lru_cache(maxsize=1 << 15)
def _of_text(text: str) -> int:
    bits = BIT["question"] if text.rstrip().endswith(_ASKS) else 0
    text = simplified(text[:READ])
    low = text.lower()
    for word in set(_WORD.findall(low)):
        bits |= _BIT_OF_WORD.get(word, 0)
    for flag, phrases in _PHRASES.items():
        if any(phrase in low for phrase in phrases):
            bits |= BIT[flag]
    if any(digit in low for digit in "0123456789"):
        bits |= BIT["number"]
        if _CLOCK.search(low):
            bits |= BIT["time"]
    if " May" in text:
        bits |= BIT["time"]
    if _PLACE.search(text):
        bits |= BIT["place"]
    if _NAME.search(text):
        bits |= BIT["name"]
    if not text.isascii():
        for flag, pattern in _CHINESE.items():
            if pattern.search(text):
                bits |= BIT[flag]
    return bits


_WORDS: Final = {
    "time": """jan january feb february mar march apr april jun june jul july aug august sep sept
        september oct october nov november dec december monday tuesday wednesday thursday friday
        saturday sunday yesterday today tonight tomorrow ago week weeks weekend weekends month
        months year years noon midnight morning afternoon evening recently since""",
    "number": """one two three four five six seven eight nine ten eleven twelve dozen hundred
        thousand once twice couple several few first second third""",
    "reason": """because since due thanks inspired motivated motivation motivates reason reasons""",
    "first": "i i'm i've i'd i'll my me mine we our we're we've us",
    "suggest": """recommend recommended recommendation recommendations suggest suggested suggestion
        suggestions consider try option options""",
    "prefer": """love loves loved like likes liked enjoy enjoys enjoyed prefer prefers favorite
        favourite favorites favourites fan into hate hates interested""",
}
_BIT_OF_WORD: Final[dict[str, int]] = {}
for _flag, _list in _WORDS.items():
    for _word in _list.split():
        _BIT_OF_WORD[_word] = _BIT_OF_WORD.get(_word, 0) | BIT[_flag]
_WORD = re.compile(r"[a-z][a-z']*")
_CLOCK = re.compile(r"\d:\d\d|\d\s?[ap]m\b|\b(?:19|20)\d\d\b|\d(?:st|nd|rd|th)\b")
_PLACE = re.compile(r"\b(?:in|at|to|from|near|around|visit|visited|visiting) (?:the )?[A-Z]")
_NAME = re.compile(r"[a-z,;] [A-Z][a-z]")
_PHRASES: Final = {
    "reason": ("so that", "that's why", "wanted to", "to help"),
    "suggest": ("you could", "you can", "you might", "here are"),
    "prefer": ("looking for",),
}
_CHINESE: Final = {
    "time": re.compile(
        r"[今明昨前后]天|周[一二三四五六日天末]|[上下这本]周|星期|[上下这本]个?月|[年月日号点]|早上|上午|中午"
        r"|下午|晚上|小时|分钟|礼拜"
    ),
    "number": re.compile(r"[一二三四五六七八九十百千万两]"),
    "place": re.compile(r"[省市区县镇村路街]|地址|位于|公司|学校|大学|医院"),
    "name": re.compile(r"[叫姓]|名字"),
    "reason": re.compile(r"因为|由于|所以|为了|原因"),
    "first": re.compile(r"[我咱]"),
    "suggest": re.compile(r"推荐|建议|可以试"),
    "prefer": re.compile(r"喜欢|爱|偏好|讨厌|感兴趣"),
}
_ASKS: Final = ("?", "？", "吗", "嗎", "呢")
