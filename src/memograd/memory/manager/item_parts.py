"""The parts of an item that is a list, and what is left of it without some of them.

Invariant: what is left of an item is made of its own words. Pure functions.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Final

from memograd.memory.language import is_chinese
from memograd.memory.manager.cues import KEEPS
from memograd.memory.statements import wording

_FUNCTION_CHARACTERS: Final = frozenset("的了是我你他她它在有和就都给这那个条不也很说别用户")


def stems(text: str) -> frozenset[str]:
    """The beginnings of content words; in Chinese characters that carry content."""
    chinese = re.findall(r"[\u4e00-\u9fff]+", text)
    latin = {term[:5] for term in wording(text).terms if len(term) > 2 and term.isascii()}
    return frozenset(latin | (set("".join(chinese)) - _FUNCTION_CHARACTERS))


def to_stay(message: str) -> frozenset[str]:
    """The stems of what a request to forget says is to stay: "the dog can stay"."""
    clauses = re.split(r"[,.;!，。；！]+", message)
    return frozenset().union(*(stems(one) for one in clauses if KEEPS.search(one)))


# A part that speaks of what is taken out says nothing without it.
LEANS: Final = re.compile(
    r"\b(?:it|its|it's|he|she|her|him|they|them|that|this)\b|[它她他这那]", re.I
)
_JOINT: Final = re.compile(
    r"\s*(?:[,;，；、](?:\s*and\b)?|\band\b|(?<= )[&+](?= )|。"
    r"|(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bDr)(?<!\bSt)\. )\s*"
)
SUBJECT: Final = re.compile(
    r"User said: (?:[\w ]+: )?|User(?:'s)? (?:\w+s )?|用户说：|用户(?:的)?[有是在]?"
)


def parts_of(text: str) -> list[tuple[str, str]]:
    """The parts of a statement that is a list, each with what joins it to the next."""
    parts, start = [], 0
    for found in _JOINT.finditer(text.rstrip(" .。")):
        parts.append((text[start : found.start()], found[0]))
        start = found.end()
    parts.append((text[start:].rstrip(" .。"), ""))
    return parts if all(len(part) > 1 for part, _ in parts) else [(text, "")]


def is_list(parts: Sequence[tuple[str, str]]) -> bool:
    """Whether the parts stand side by side, rather than being the clauses of one thought."""
    return all(
        re.search(r"[;；、&+]|and|。|\.", joint) or _AGAIN.match(after)
        for (_, joint), (after, _) in itertools.pairwise(parts)
    )


_AGAIN: Final = re.compile(r"(?:I|my|we|our|User|also)\b|[我也还并另]|用户|同时", re.I)


def least_length(part: str) -> int:
    """How long a part is at least that stands for itself."""
    return 5 if is_chinese(part) else 12


def left_of(text: str, parts: Sequence[tuple[str, str]], stay: Sequence[int]) -> str:
    """The item's text with those parts alone, its subject before them."""
    left = ""
    for n in stay:
        left += parts[n][0] + (parts[n][1] if n != stay[-1] else "")
    if not left.startswith(text[:4]) and (subject := SUBJECT.match(text)):
        bare = left.removeprefix("and ").removeprefix("User ").removeprefix("用户")
        clause = is_chinese(text) and re.search(r"[,，;；]", parts[stay[0] - 1][1])
        # A Chinese clause has a verb of its own; whose it is, is not known behind 用户的.
        whose = "用户" if re.match(r"用户(?!的|说：)", text) else "用户说："
        left = (whose if clause else subject[0]) + bare
    return left.rstrip(" ,;，；、。.") + ("。" if is_chinese(text) else ".")
