"""What the turns around candidates say of them: the features `near` and `session`.

Items stand where the turn stands that they came from last. Most of it is the same whether a
candidate is an item or a turn, so it is looked up once for all candidates of a question (`of`), and
each kind takes its part.

Invariant: the part of some candidates is what `of` these alone would be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from memograd.memory.search.ranker.lists import Seen
from memograd.memory.state.columns import BIT
from memograd.memory.state.scored import Scored

NEAR: Final = (
    "near.dense_before", "near.bm25_before", "near.cover_before",
    "near.dense_behind", "near.bm25_behind", "near.cover_behind",
    "near.dense_two", "near.bm25_two", "near.dense_three", "near.bm25_three",
    "near.answers", "near.answers_bm25", "near.answers_dense",
)  # fmt: skip
SESSION: Final = (
    "session.best", "session.mean", "session.bm25", "session.bm25best", "session.rank",
)  # fmt: skip
_FLOOR: Final = -4.0
_STEPS: Final = np.arange(-3, 4)[:, None]
_BESIDE: Final = slice(2, 5, 2)  # of the steps: the turn before and the one behind


class Compared(NamedTuple):
    """Turns that were compared by meaning: the best cosine, and how cosines spread."""

    scored: Scored[Any]
    best: float
    spread: float


@dataclass(frozen=True, slots=True)
class Around:
    """What the turns on both sides of candidates, within their sittings, say of them.

    index, valid: `[7, c]`, the turns from three before to three behind, and which there are. talk,
    context, place: float64 `[c]`, of the candidate's own turn. words: float64 `[7, c]`, BM25 of
    those turns; other: bool `[2, c]`, whether the turn before and the one behind are somebody
    else's; covers: float64 `[2, c]`, of these two; answers: bool `[c]`, whether the one before is
    somebody else's question. cover, sitting_cover: of the turn with its neighbours and of the
    sitting. sitting: int64 `[c]`, its number; told, best, rank: float64 `[c]`, how well its words
    fit, those of its best turn, and its place among sittings. best_window, most_told: of all.

    One object may hold all candidates of a question, items and turns; `part` cuts it.
    """

    index: np.ndarray
    valid: np.ndarray
    talk: np.ndarray
    context: np.ndarray
    place: np.ndarray
    words: np.ndarray
    other: np.ndarray
    covers: np.ndarray
    answers: np.ndarray
    cover: np.ndarray
    sitting_cover: np.ndarray
    sitting: np.ndarray
    told: np.ndarray
    best: np.ndarray
    rank: np.ndarray
    best_window: float
    most_told: float

    @classmethod
    def of(cls, turns: Seen, at: np.ndarray) -> Around:
        """Around these turns, int64 `[c]`; -1 for a candidate without one."""
        scored, words = turns.scored, turns.words
        if not len(scored):
            return cls._of_nothing(len(at))
        sat, columns = scored.layout.sittings(), scored.layout.columns
        known = at >= 0
        own = np.maximum(at, 0)
        sitting = sat.of[own]
        index = at + _STEPS
        valid = (index >= 0) & (index < len(scored)) & known
        index *= valid
        valid &= sat.of[index] == sitting
        beside = index[_BESIDE]
        other = (columns.speaker[beside] != np.where(valid[3], columns.speaker[own], -1)) & (
            valid[_BESIDE]
        )
        told = words.sitting[sitting] * known
        return cls(
            index=index,
            valid=valid,
            talk=sat.talk[own] * known,
            context=sat.context[own] * known,
            place=sat.place[own] * known,
            words=words.bm25[index] * valid,
            other=other,
            covers=words.cover[beside] * valid[_BESIDE],
            answers=(columns.flags[beside[0]] & BIT["question"] != 0) & other[0],
            cover=words.window_cover[own] * known,
            sitting_cover=words.sitting_cover[sitting] * known,
            sitting=sitting,
            told=told,
            best=np.maximum.reduceat(words.bm25, sat.starts)[sitting],
            rank=1.0 + np.searchsorted(np.sort(-words.sitting), -told),
            best_window=float(words.window.max(initial=0.0)),
            most_told=max(float(words.sitting.max(initial=0.0)), 1e-9),
        )

    @classmethod
    def _of_nothing(cls, c: int) -> Around:
        """There are no turns."""
        no, none = np.zeros(c), np.zeros(c, np.int64)
        index, never = np.zeros((7, c), np.int64), np.zeros((7, c), bool)
        return cls(
            index=index, valid=never, talk=no, context=no, place=no, words=np.zeros((7, c)),
            other=never[:2], covers=np.zeros((2, c)), answers=never[0], cover=no, sitting_cover=no,
            sitting=none, told=no, best=no, rank=no + 1.0, best_window=0.0, most_told=1e-9,
        )  # fmt: skip

    def part(self, start: int, end: int | None) -> Around:
        """That of the candidates from `start` to `end` (None: to the last)."""
        cut: dict[str, Any] = {}
        for name in self.__slots__:
            of_all = getattr(self, name)
            cut[name] = of_all[..., start:end] if isinstance(of_all, np.ndarray) else of_all
        return Around(**cut)

    def neighbours(self, most: float, compared: Compared | None) -> np.ndarray:
        """`[NEAR, c]`: somebody else's turn answers or asks; one's own goes on, or speaks of
        something else.

        most: the best BM25 of all turns. compared: None where they were not compared by meaning.
        """
        rows = np.zeros((len(NEAR), len(self.talk)))
        words = self.words / most
        rows[1:5:3] = words[_BESIDE] * self.other
        rows[2:6:3] = self.covers * self.other
        rows[7] = np.maximum(words[1], words[5]) * self.talk
        rows[9] = np.maximum(words[0], words[6]) * self.talk
        rows[10] = self.answers
        rows[11] = self.answers * words[2]
        if compared is not None:
            dense = np.where(self.valid, compared.scored.dense[self.index], -2.0)
            gaps = (dense - compared.best) / compared.spread
            close = np.maximum(gaps, _FLOOR) - _FLOOR
            rows[0:4:3] = close[_BESIDE] * self.other
            rows[6] = np.maximum(close[1], close[5]) * self.talk
            rows[8] = np.maximum(close[0], close[6]) * self.talk
            rows[12] = self.answers * close[2]
        return rows

    def sittings(
        self, gap: np.ndarray, rel: np.ndarray, most: float, compared: Compared | None
    ) -> np.ndarray:
        """`[SESSION, c]`: how well the rest of the sitting fits. gap, rel: of the candidates, by
        meaning and by words; most, compared: as of `neighbours`."""
        rows = np.empty((len(SESSION), len(gap)))
        floored = np.maximum(gap, _FLOOR)
        rows[0], rows[1] = floored, 0.0
        if compared is not None and len(compared.scored):
            scored, nearest, spread = compared
            sat = scored.layout.sittings()
            best = np.maximum.reduceat(scored.dense, sat.starts)[self.sitting]
            best = np.maximum((best - nearest) / spread, _FLOOR)
            rows[0] += self.context * (best - floored)
            mean = np.add.reduceat(scored.dense, sat.starts) / sat.sizes
            rows[1] = (mean[self.sitting] - scored.mean) / spread * self.context
        rows[2] = rel + self.context * (self.told / self.most_told - rel)
        rows[3] = rel + self.context * (np.minimum(self.best / most, 1.0) - rel)
        rows[4] = -np.log(np.minimum(self.rank, 50)) * self.context
        return rows
