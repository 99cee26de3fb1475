"""A user who sets right what the assistant understood, and not what the user has said.

    user: I'm a theatre nurse.   assistant: Do you enjoy the stage?
    user: no, operating theatre. never been on a stage    ->  the nurse stays

Invariant: only a denial of words that the assistant said and the user did not, or one that says
again what the user said, spares what was told; one that owns up to a joke, asks to forget or tells
that something changed spares nothing. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memograd.memory.language import is_chinese
from memograd.memory.manager.cues import DENIES
from memograd.memory.manager.past import present
from memograd.memory.manager.substitution import corrected
from memograd.memory.reader.fact import Heard
from memograd.memory.records.items import MemoryItem
from memograd.memory.statements.value_types import TYPES

LONGEST: Final = 160  # characters; what goes on longer tells more than what was misread
_CLAUSE: Final = re.compile(r"[.,;:!?()\n]+|\s-+\s|\bbut\b|[，。；！？、]")
_NEGATED: Final = re.compile(
    r"\b(?:not|never|no|nor|nothing)\b|n['’]t\b|[不没沒]|哪[来來有]", re.IGNORECASE
)
_BEGINS_NO: Final = re.compile(
    r"\W*(?:(?:lol|ha(?:ha)*|hm+|oh|er+m?|uh|well|哈+|哎呀?|呃)\W*)*(?:no|nope|nah|不是|不对|不)\b",
    re.IGNORECASE,
)
_POINTS_AT: Final = re.compile(
    r"\W*(?:the )?(?:former|latter|first|second|third|last)(?: one)?(?=$|[,.!;])"
    r"|第[一二三]个?(?=$|[，,。！])",
    re.IGNORECASE,
)
_CHANGED: Final = re.compile(
    r"\b(?:any ?more|any longer|no longer|now|since|used to|moved|left|quit|stopped|gave up|sold"
    r"|ended|over|broke|cancel\w*|i meant|i said|typo|forget|delete)\b"
    r"|不再|已经|現在|现在|以前|后来|辞|[换換]了|搬|分手|[卖賣]了|我[说說记記打写寫][错錯]|[删刪忘]",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W\d_\u4e00-\u9fff][\w'’]*")
_LITTLE: Final = frozenset(
    re.findall(
        r"\w+",
        "user been have having that this what with from your they their there just very really"
        " like does doing would could about into only ever life right wrong",
    )
)
_LITTLE_ZH: Final = frozenset("的了是我你您他她它在有和就都给这那个不没也很说别用户吗呢吧啊好")
_SAID_AGAIN: Final = 2  # content words


def misreads(heard: Heard, told: Sequence[MemoryItem]) -> bool:
    """Whether a message denies what the assistant just said, and nothing of what was told."""
    own = heard.own
    if len(own) > LONGEST or not heard.before or heard.before[-1][0] != "assistant":
        return False
    olds = [present(item.text) for item in told if item.role != "assistant"]
    if not olds or DENIES.search(own) or _CHANGED.search(own):
        return False
    its, mine = _content(heard.before[-1][1]), _content(" ".join(olds))
    clauses = [one for one in _CLAUSE.split(own) if one.strip()]
    denied = [_content(one) for one in clauses if _NEGATED.search(one)]
    if any((words & its) - mine for words in denied):
        return True
    if _POINTS_AT.match(own) and re.search(r"[?？]\s*$", heard.before[-1][1]):
        return True  # "the first" of what was asked is no other value of what was told
    if _BEGINS_NO.match(own) and _guessed(heard.before[-1][1], own, olds):
        return True
    said = set().union(*(_content(one) for one in clauses if not _NEGATED.search(one)))
    again = _BEGINS_NO.match(own) is not None and len(said & mine) >= _SAID_AGAIN
    return again and all(corrected(old, own) is None for old in olds)


def says_again(heard: Heard, told: Sequence[MemoryItem]) -> bool:
    """Whether all that such a message says, beside what it denies, was told before: "Ningbo! not
    Ningde"."""
    clauses = [one for one in _CLAUSE.split(heard.own) if one.strip()]
    said = set().union(*(_content(one) for one in clauses if not _NEGATED.search(one)))
    return bool(said) and said <= _content(" ".join(present(item.text) for item in told))


def _guessed(question: str, own: str, olds: Sequence[str]) -> bool:
    """Whether the value that an answer denies is the assistant's guess: "How old are you, around
    34?" "nope, 43" says nothing against what was told, if that has no such value."""
    asked = re.search(r"[?？]\s*$", question)
    for pattern in TYPES:
        if pattern.search(own):
            known = any(pattern.search(old) for old in olds)
            return bool(asked and pattern.search(question) and not known)
    return False


def _content(text: str) -> set[str]:
    """The beginnings of content words; in Chinese, pairs of characters beside each other."""
    found = {word.casefold() for word in _WORD.findall(text) if len(word) > 3}
    runs = re.findall(r"[\u4e00-\u9fff]+", text) if is_chinese(text) else []
    pairs = {run[n : n + 2] for run in runs for n in range(len(run) - 1)}
    return {word[:4] for word in found - _LITTLE} | {
        pair for pair in pairs if not set(pair) & _LITTLE_ZH
    }
