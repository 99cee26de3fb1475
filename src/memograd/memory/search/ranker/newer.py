"""The newer of two items that answer the same stands first: an older one goes behind it.

What a turn changes by the way ("that's six times now that I've worn them") may leave the old value
standing beside the new one. Which of two such items a question wants is judged for each of the
first three hits and those below it that were told later: by how much better it matches, how alike
the two are, and whether the question asks for the present or for what happened. Two items of one
memory are alike by language and subject anyway, so likeness is the cosine of what is left without
the mean of the `CENTRE` best.

    older, newer of the first three  ->  P(the newer holds the answer and the older does not)

A question that asks for what was first or before ("originally", 以前) is left alone.

Invariants: the first three stay the same three, so what is found within three or more does not
change; nothing is passed by what was told before it; only items are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from memograd.memory.search.ranker.features import FEATURES, Features
from memograd.memory.search.ranker.lists import Lists
from memograd.memory.search.ranker.question import QuestionCues
from memograd.memory.state.scored import Scored

COMPARED: Final = 3  # hits, the best of all
CENTRE: Final = 20  # candidates whose mean is what they have in common
NEAR: Final = 1.5  # of a score: from here on a better match is clearly better
SMALL: Final = np.float32(1e-9)
PAIRS: Final = (
    "gap", "near", "alike", "alike_squared", "asks_now", "asks_did", "alike_did", "newer_question",
    "newer_assistant",
)  # fmt: skip
"""What is seen of an older and a newer item, in the order of the columns."""

_SPEECH = [FEATURES.index("surface.question"), FEATURES.index("who.assistant")]
_OLDER, _BELOW = np.triu_indices(COMPARED, 1)


@dataclass(frozen=True)
class Newer:
    """weights: float64 `[pairs + 1]` of a logistic model; the last is the bias."""

    weights: np.ndarray

    def before(
        self,
        scored: Scored[Any],
        lists: Lists,
        question: QuestionCues,
        order: np.ndarray,
        scores: np.ndarray,
        speech: np.ndarray,
    ) -> tuple[np.ndarray, dict[int, int]]:
        """The order with older ones behind newer ones, and behind which each of them went.

        order: int64, candidates best first. scores: float64 `[c]`. speech: float64 `[c, 2]`,
        whether a candidate asks and whether the assistant said it (`speech_of`).
        """
        if asks_before(question):
            return order, {}
        first = order[:COMPARED]
        older, newer = _pairs_of(lists.turn[first], lists.numbers[first])
        if not len(older):
            return order, {}
        vectors = centred(scored, lists, first)
        alike = np.einsum("pd,pd->p", vectors[older], vectors[newer]).astype(np.float64)
        own = scores[first]
        rows = pair_rows(own[older] - own[newer], alike, question, speech[first[newer]])
        sure = (rows @ self.weights[:-1] + self.weights[-1]).tolist()
        best: dict[int, tuple[float, int]] = {}
        for how, place, below in zip(sure, older.tolist(), newer.tolist(), strict=True):
            if how > max(0.0, best.get(place, (0.0, 0))[0]):
                best[place] = how, below
        places, passed = list(range(len(first))), dict[int, int]()
        for place in sorted(best, reverse=True):  # so none is overtaken by what it went behind
            below = best[place][1]
            places.remove(place)
            places.insert(places.index(below) + 1, place)
            passed[int(first[place])] = int(first[below])
        return np.concatenate([first[places], order[COMPARED:]]), passed


def asks_before(question: QuestionCues) -> bool:
    """Whether it asks for what was first or before, to which the older is the answer."""
    return "first" in question.asks


def speech_of(features: Features) -> np.ndarray:
    """float64 `[c, 2]`: whether a candidate asks something, and whether the assistant said it."""
    return features.rows[:, _SPEECH]


def _pairs_of(turn: np.ndarray, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of older and of newer ones behind them: by the turns they were told in, or, where one
    came from none that is kept, by the order in which they were learnt."""
    known = len(turn) > _BELOW
    older, newer = _OLDER[known], _BELOW[known]
    told = (turn[older] >= 0) & (turn[newer] >= 0)
    later = np.where(told, turn[newer] > turn[older], number[newer] > number[older])
    return older[later], newer[later]


def centred(scored: Scored[Any], lists: Lists, at: np.ndarray) -> np.ndarray:
    """float32 `[len(at), d]`: vectors of candidates without what the best by fusion share, of
    length 1 (0 where nothing is left). at: int64, places among the candidates."""
    common = np.argsort(-lists.fused, kind="stable")[:CENTRE]
    numbers = lists.numbers[np.concatenate([common, at])]
    rising = np.argsort(numbers, kind="stable")
    place = np.empty_like(rising)
    place[rising] = np.arange(len(rising))
    rows = scored.vectors(numbers[rising])[place]
    own: np.ndarray = rows[len(common) :] - rows[: len(common)].mean(axis=0)
    lengths = np.sqrt(np.einsum("cd,cd->c", own, own))
    own /= np.maximum(lengths, SMALL)[:, None]
    return own


def pair_rows(
    gaps: np.ndarray, alike: np.ndarray, question: QuestionCues, newer: np.ndarray
) -> np.ndarray:
    """float64 `[pairs, PAIRS]`. gaps: how far the newer is below. newer: its speech."""
    rows = np.empty((len(gaps), len(PAIRS)))
    rows[:, 0] = gaps
    rows[:, 1] = np.exp(gaps / -NEAR)
    rows[:, 2] = alike
    rows[:, 3] = np.maximum(alike, 0.0) ** 2
    rows[:, 4:6] = ["now" in question.asks, "did" in question.asks]
    rows[:, 6] = rows[:, 5] * alike
    rows[:, 7:] = newer
    return rows
