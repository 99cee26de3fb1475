"""Why an item was found, as bars: meaning, words, time and the learned score.

The first three compare the hits of one search with each other, since a cosine or a BM25 score means
little by itself; the learned score is a probability and stands as it is. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memograd.memory.search.ranker.features import GROUPS

_GROUP_OF_WORDS: Final = {words: group for group, words in GROUPS.items()}
_TIME: Final = ("date", "recent")
_LEAST_SPREAD: Final = 0.02


@dataclass(frozen=True)
class Bar:
    """One reason. share: how long the bar is, 0 to 1. value: the number beside it, None: none."""

    name: str
    share: float
    value: float | None


@dataclass(frozen=True)
class Reasons:
    """Everything that is shown of why one hit was found."""

    bars: tuple[Bar, ...]
    matched: tuple[str, ...]
    parts: tuple[tuple[str, float], ...]
    """What weighed most in the learned score: a group of features, and what it adds."""
    recency: float
    by_fusion: bool


def explained(hits: Sequence[Mapping[str, Any]]) -> Iterator[Reasons]:
    """The reasons of every hit of one search, in its order; `hits` were asked for with explain."""
    whys = [hit["explain"] for hit in hits]
    parts = [_parts(why) for why in whys]
    times = [sum(adds for group, adds in part if group in _TIME) for part in parts]
    similar = [why["similarity"] for why in whys]
    least, most = min(similar, default=0.0), max(similar, default=0.0)
    spread = max(most - least, _LEAST_SPREAD)
    words = max((why["lexical_score"] for why in whys), default=0.0) or 1.0
    longest = max(map(abs, times), default=0.0) or 1.0
    for why, part, time in zip(whys, parts, times, strict=True):
        learned = why["probability"]
        yield Reasons(
            bars=(
                Bar(
                    "meaning", 0.15 + 0.85 * (why["similarity"] - least) / spread, why["similarity"]
                ),
                Bar("words", why["lexical_score"] / words, why["lexical_score"] or None),
                Bar("time", max(time, 0.0) / longest, time or None),
                Bar("learned", learned or 0.0, learned),
            ),
            matched=tuple(why["matched"]),
            parts=part,
            recency=why["recency"],
            by_fusion=learned is None,
        )


def _parts(why: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    reasons = why["reasons"]
    return tuple((_GROUP_OF_WORDS[reason["what"]], reason["adds"]) for reason in reasons)
