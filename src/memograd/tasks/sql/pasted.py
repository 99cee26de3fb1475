"""What of an answer is pasted: a long stretch of what the rows say, in their own words.

An answer that names a fact uses the row's words, and has to; an answer that pastes the row says
nothing that the row did not. The two differ in how much stands there unbroken:

- A passage is copied where every `PASSAGE` units of it (Chinese characters, words, numbers) stand
  so in a row. Signs, tags and line breaks are no units, so a list of the pieces is copied too.
- Copied passages that are no further apart than the shorter one is long make one stretch; fillers
  between pieces do not break it.
- `QUOTABLE` units of a stretch are quotation; of a longer one, the rest is pasted, and its units
  count for that share only.

Invariants: no text of at most `QUOTABLE` units has anything pasted; a text that shares no passage
with the rows has nothing pasted; the cost grows with the lengths of both, not with their product.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

PASSAGE = 4
QUOTABLE = 24
_NEAR = 2
"""Copied passages that are this near make one stretch, however short they are."""

_TAG = re.compile(r"<[^<>]*>")
_UNITS = re.compile(r"[a-z]+|\d+(?:\.\d+)?|[^\W_a-z\d]")
_SIGNS = re.compile(r"[^\w\s.%]+")

Runs = list[list[str]]
"""The units of a text, in the order said, those between two signs together."""


class Passage(NamedTuple):
    """Units `begin` to `end` of an answer, which are copied."""

    begin: int
    end: int

    @property
    def length(self) -> int:
        """Units of it."""
        return self.end - self.begin


def runs_of(text: str) -> Runs:
    """The text as units, without tags; signs part runs, white space does not."""
    plain = unicodedata.normalize("NFKC", _TAG.sub(" ", text)).lower()
    return [_UNITS.findall(run) for run in _SIGNS.split(plain)]


def counted_share(runs: Runs, rows: Iterable[str]) -> list[float]:
    """The share for which each unit of an answer counts: 1, less where it stands in a pasted
    stretch. One number a unit, in the order said."""
    said = [unit for run in runs for unit in run]
    shares = [1.0] * len(said)
    if len(said) <= QUOTABLE:
        return shares
    for passages in _stretches(_copied(said, _grams(rows))):
        copied = sum(passage.length for passage in passages)
        if copied > QUOTABLE:
            begin, end = passages[0].begin, passages[-1].end
            shares[begin:end] = [QUOTABLE / copied] * (end - begin)
    return shares


def _grams(rows: Iterable[str]) -> set[tuple[str, ...]]:
    grams: set[tuple[str, ...]] = set()
    for text in rows:
        grams.update(_windows([unit for run in runs_of(text) for unit in run]))
    return grams


def _windows(units: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(units[start:] for start in range(PASSAGE)), strict=False)


def _copied(said: Sequence[str], grams: set[tuple[str, ...]]) -> list[Passage]:
    found: list[Passage] = []
    for begin, gram in enumerate(_windows(said)):
        if gram not in grams:
            continue
        if found and begin <= found[-1].end:
            found[-1] = Passage(found[-1].begin, begin + PASSAGE)
        else:
            found.append(Passage(begin, begin + PASSAGE))
    return found


def _stretches(passages: Sequence[Passage]) -> list[list[Passage]]:
    """The passages, those that are near each other together."""
    found: list[list[Passage]] = []
    for passage in passages:
        if found:
            earlier = found[-1][-1]
            if passage.begin - earlier.end <= max(_NEAR, min(passage.length, earlier.length)):
                found[-1].append(passage)
                continue
        found.append([passage])
    return found
