"""A value taken back in the same breath: 我家有十二亩地，噢不是，十一亩 says 我家有十一亩地.

Nobody was told the first value, so it leaves no note of a past.

Invariant: only the value right before the words that take it back changes, or nothing does. Pure
functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.manager.substitution import corrected
from memograd.memory.statements.value_types import TYPES

_TAKES_BACK: Final = re.compile(
    r"(?<![，,。.…—\s-])[，,。.…—\s-]++(?:"
    r"(?:[哦噢喔啊呃额诶欸哎]+呀?[，,\s]*)?(?:不不+|不是|不对|不對|(?<=[哦噢喔啊呃额诶欸哎])不|[说說写寫打记記]错了?)"
    r"|(?:(?:er+m?|uh+|um+|oh|ah|oops)[\s,.]+)?(?:no,? wait|wait,? no|no,? sorry|sorry,? no"
    r"|scratch that|make that|or rather)\b"
    r")[，,。.…！!、:：—\s-]+(?=\S)",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(r"[，,。;；！!？?\n]|\.(?=\s|$)")


_LEADS_IN: Final = re.compile(r"(?:应该|應該|就)?是|(?:it['’]s|it is|i meant?) ", re.IGNORECASE)
_PARTICLES: Final = " 吧啊呢哈的了."


def as_meant(text: str) -> str:
    """The text with the value that was meant, where one is taken back in the midst of it."""
    for found in _TAKES_BACK.finditer(text):
        before, behind = text[: found.start()], text[found.end() :]
        if lead := _LEADS_IN.match(behind):
            behind = behind[lead.end() :]
        begin = max((mark.end() for mark in _CLAUSE.finditer(before)), default=0)
        end = _CLAUSE.search(behind)
        value = behind[: end.start()] if end else behind
        if (meant := _in_its_place(before[begin:], value)) is not None:
            return before[:begin] + meant + behind[len(value) :]
    return text


def _in_its_place(clause: str, value: str) -> str | None:
    """The clause with the value; None where the words around it are of another matter."""
    for pattern in TYPES:
        mine, its = list(pattern.finditer(clause)), list(pattern.finditer(value))
        if not mine or len(its) != 1:
            continue
        lead, rest = value[: its[0].start()], value[its[0].end() :]
        if lead not in clause:
            return None
        if rest.strip(_PARTICLES) in clause:
            return corrected(clause, value.strip())
        if not lead and not clause[mine[-1].end() :].strip():  # 周三，不对，周四去体检
            return clause[: mine[-1].start()] + value
        return None
    return None
