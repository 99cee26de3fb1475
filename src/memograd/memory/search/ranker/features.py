"""What a ranker sees of a question and a candidate: named numbers, in groups.

A name is `group.name`; groups are what `explain` speaks of. Everything is relative to the question
(the best hit, the most that its words could score) so that a number means the same in every memory.
Among items "user" (用户) is no word of a question: nearly all of them say it.
What neighbours and the sitting say fades in monologues and tiny sittings (`state/corpus_view.py`).

Invariant: a change of any feature is another `VERSION`, and weights of another version are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from memograd.memory.search.ranker.lists import Lists, Seen, window_of_items
from memograd.memory.search.ranker.question import QuestionCues
from memograd.memory.state.columns import BIT

VERSION: Final = 3

GROUPS: Final = {
    "dense": "its meaning",
    "bm25": "its words",
    "window": "the words of its neighbours",
    "items": "the memories read from it",
    "fusion": "several lists that agree",
    "cover": "how many of the question's words it holds",
    "near": "the turns before and after it",
    "session": "the sitting it belongs to",
    "who": "who said it",
    "type": "what kind of answer is asked for",
    "surface": "how it is written",
    "date": "the date in the question",
    "recent": "how long ago it was",
}
"""Groups of features, and what a group is about in words."""

_FLOOR: Final = -4.0

RISING: Final = (
    "dense.", "bm25.", "window.", "items.", "fusion.", "cover.", "session.", "near.dense",
    "near.bm25", "near.cover", "near.answers_", "who.match", "who.you_assistant", "type.",
    "date.in", "date.near",
)  # fmt: skip
"""More of these never counts against a candidate."""
FALLING: Final = ("date.far",)


@dataclass(frozen=True, slots=True)
class Features:
    """rows: float64 `[c, features]`. numbers: int64 `[c]`, which records they are."""

    numbers: np.ndarray
    rows: np.ndarray

    def column(self, name: str) -> np.ndarray:
        """float64 `[c]`: one feature of all candidates."""
        found: np.ndarray = self.rows[:, FEATURES.index(name)]
        return found


def candidate_features(
    own: Seen, turns: Seen, lists: Lists, question: QuestionCues, *, of_items: bool
) -> Features:
    """The features of all candidates, in the order of `FEATURES`.

    own: the corpus that the candidates are from. turns: those they stand among; for items, what
    their sources stand among, by words alone.
    """
    at, scored = lists.numbers, own.scored
    layout = scored.layout
    flags = _Flags(layout.columns.flags[at])
    c = len(at)
    values: dict[str, np.ndarray] = {}

    dense = scored.dense
    best = float(dense.max(initial=-1.0))
    spread = scored.spread
    gap = (dense[at] - best) / spread
    values["dense.gap"], values["dense.close"] = gap, np.maximum(gap, -1.0)
    most = max(float(own.words.bm25.max(initial=0.0)), 1e-9)
    ideal = max(scored.words.ideal, 1e-9)
    rel = own.words.bm25[at] / most
    values["bm25.rel"], values["bm25.abs"] = rel, own.words.bm25[at] / ideal

    around = _Around(turns, lists.turn, best, spread, most, with_dense=not of_items)
    window = window_of_items(own, turns, at, lists.turn) if of_items else turns.words.window[at]
    window_most = max(float(turns.words.window.max(initial=0.0)), float(window.max()), 1e-9)
    values["window.rel"], values["window.abs"] = window / window_most, window / ideal
    has = np.isfinite(lists.ranks[3:]).any(axis=0)
    top = float(lists.item_dense.max(initial=-1.0))
    values["items.has"] = has.astype(float)
    values["items.dense"] = np.where(has, np.maximum((lists.item_dense - top) / spread, -5), -5.0)
    values["items.bm25"] = lists.item_bm25 / max(float(lists.item_bm25.max(initial=0.0)), 1e-9)
    values["items.cover"] = lists.item_cover
    inverse, logs = 20 / (20 + lists.ranks), -np.log(np.minimum(lists.ranks, 80))
    for row, name in enumerate(("dense.", "bm25.", "window.", "items.dense_", "items.bm25_")):
        values[f"{name}rank"], values[f"{name}log"] = inverse[row], logs[row]
    share = lists.fused / max(float(lists.fused.max(initial=0.0)), 1e-9)
    order = np.argsort(-lists.fused, kind="stable")
    place = np.empty(c)
    place[order] = np.arange(1, c + 1)
    values["fusion.share"], values["fusion.log"] = share, np.log(np.maximum(share, 0.05))
    values["fusion.rank"] = 20 / (20 + place)
    values["fusion.agree10"] = (lists.ranks <= 10).sum(axis=0).astype(float)
    values["fusion.agree3"] = (lists.ranks <= 3).sum(axis=0).astype(float)
    cover = own.words.cover[at]
    values["cover.own"] = cover
    values["cover.window"] = np.maximum(around.here(turns.words.window_cover), cover)
    in_sitting = around.of_sitting(turns.words.sitting_cover)
    values["cover.session"] = cover + around.context * (in_sitting - cover)
    values["cover.full"] = (cover > 0.6).astype(float)
    values |= around.neighbours(cover)
    values |= around.sitting(gap, rel)

    values |= _who(question, layout.columns, at, lists, turns, flags, of_items)
    asks = {kind: float(kind in question.asks) for kind in _ASKED}
    user_like = 1.0 - flags["assistant"]
    values["type.when_time"] = asks["when"] * flags["time"]
    values["type.count_number"] = asks["count"] * flags["number"]
    values["type.who_name"] = asks["who"] * flags["name"]
    values["type.where_place"] = asks["where"] * flags["place"]
    values["type.why_reason"] = asks["why"] * flags["reason"]
    values["type.pref_prefer"] = asks["pref"] * flags["prefer"] * user_like
    values["type.you_suggest"] = asks["you"] * flags["suggest"] * flags["assistant"]
    values["type.when_item"] = asks["when"] * values["items.has"]
    length = np.minimum(np.log1p(layout.lengths[at].astype(float)), 4.0)
    values["surface.time"], values["surface.number"] = flags["time"], flags["number"]
    values["surface.question"] = flags["question"] * user_like
    values["surface.question_a"] = flags["question"] * flags["assistant"]
    values["surface.caption"] = flags["caption"]
    values["surface.prefer"] = flags["prefer"] * user_like
    values["surface.first"] = flags["first"] * user_like
    values["surface.length"], values["surface.length_user"] = length, length * user_like
    values["surface.short"] = (layout.lengths[at] < 5).astype(float)
    values |= _dates(question, layout.columns.day, at)
    sat = turns.scored.layout.sittings()
    where = around.here(sat.place)
    leading = where[order[:20]]
    older = (leading[None, :] < where[:, None]).mean(axis=1) if c else np.zeros(0)
    values["recent.now"], values["recent.first"] = asks["now"] * where, asks["first"] * where
    values["recent.older"] = older * sat.reach
    values["recent.now_older"] = asks["now"] * values["recent.older"]
    return Features(at, np.array([values[name] for name in FEATURES]).T)


_ASKED: Final = ("when", "count", "who", "where", "why", "pref", "you", "now", "first")


_BITS: Final = np.array(list(BIT.values()))[:, None]


class _Flags:
    """The bits of records as numbers, 0 or 1."""

    def __init__(self, bits: np.ndarray) -> None:
        set_bits: np.ndarray = (bits & _BITS != 0).astype(float)
        self._of: dict[str, np.ndarray] = dict(zip(BIT, set_bits, strict=True))

    def __getitem__(self, name: str) -> np.ndarray:
        return self._of[name]


class _Around:
    """The turns on both sides of a candidate, within its sitting."""

    def __init__(
        self, turns: Seen, at: np.ndarray, best: float, spread: float, most: float, *,
        with_dense: bool,
    ) -> None:  # fmt: skip
        scored, sat = turns.scored, turns.scored.layout.sittings()
        n = len(scored)
        self._turns, self._n = turns, n
        self._best, self._spread, self._most = best, spread, most
        self._with_dense = with_dense
        self.known = at >= 0
        self._at = np.maximum(at, 0)
        if not n:
            self._index = np.zeros((7, len(at)), np.int64)
            self._valid = np.zeros((7, len(at)), bool)
            self.talk = self.context = np.zeros(len(at))
            return
        self._sitting = sat.of[self._at]
        index = at[None, :] + np.arange(-3, 4)[:, None]
        valid = (index >= 0) & (index < n) & self.known
        index = np.where(valid, index, 0)
        self._valid = valid & (sat.of[index] == self._sitting)
        self._index = index
        self.talk, self.context = self.here(sat.talk), self.here(sat.context)

    def here(self, of_turns: np.ndarray) -> np.ndarray:
        """A number of each candidate's own turn, 0 without one."""
        if not self._n:
            return np.zeros(len(self._at))
        return np.where(self.known, of_turns[self._at], 0.0)

    def of_sitting(self, of_sittings: np.ndarray) -> np.ndarray:
        """A number of each candidate's sitting, 0 without one."""
        if not self._n:
            return np.zeros(len(self._at))
        return np.where(self.known, of_sittings[self._sitting], 0.0)

    def _shifted(self, of_turns: np.ndarray, fill: float = 0.0) -> np.ndarray:
        """`[7, c]`: of the turns three before to three behind."""
        if not self._n:
            return np.full(self._index.shape, fill)
        return np.where(self._valid, of_turns[self._index], fill)

    def neighbours(self, cover: np.ndarray) -> dict[str, np.ndarray]:
        """Somebody else's turn answers or asks; one's own goes on, or speaks of something else."""
        turns, values = self._turns, {}
        columns = turns.scored.layout.columns
        speakers = self._shifted(columns.speaker, -1)
        other = (speakers != speakers[3]) & self._valid
        words = self._shifted(turns.words.bm25) / self._most
        covers = self._shifted(turns.words.cover)
        if self._with_dense:
            gaps = (self._shifted(turns.scored.dense, -2.0) - self._best) / self._spread
            close = np.maximum(gaps, _FLOOR) - _FLOOR
        else:
            close = np.zeros(self._index.shape)
        for row, name in ((2, "before"), (4, "behind")):
            values[f"near.dense_{name}"] = close[row] * other[row]
            values[f"near.bm25_{name}"] = words[row] * other[row]
            values[f"near.cover_{name}"] = covers[row] * other[row]
        for step, name in ((2, "two"), (3, "three")):
            both = [3 - step, 3 + step]
            values[f"near.dense_{name}"] = close[both].max(axis=0) * self.talk
            values[f"near.bm25_{name}"] = words[both].max(axis=0) * self.talk
        before = columns.flags[self._index[2]] if self._n else self._index[2]
        answers = ((before & BIT["question"]) != 0) * other[2]
        values["near.answers"] = answers.astype(float)
        values["near.answers_bm25"] = answers * words[2]
        values["near.answers_dense"] = answers * close[2]
        return values

    def sitting(self, gap: np.ndarray, rel: np.ndarray) -> dict[str, np.ndarray]:
        """How well the rest of the sitting fits."""
        turns, sat = self._turns, self._turns.scored.layout.sittings()
        floored = np.maximum(gap, _FLOOR)
        values = {"session.best": floored, "session.mean": np.zeros(len(gap))}
        if self._with_dense and self._n:
            dense = turns.scored.dense
            best = np.maximum.reduceat(dense, sat.starts)[self._sitting]
            best = np.maximum((best - self._best) / self._spread, _FLOOR)
            values["session.best"] = floored + self.context * (best - floored)
            sizes = np.diff(np.append(sat.starts, self._n))
            mean = np.add.reduceat(dense, sat.starts) / sizes
            away = (mean[self._sitting] - turns.scored.mean) / self._spread
            values["session.mean"] = away * self.context
        whole = turns.words.sitting
        most = max(float(whole.max(initial=0.0)), 1e-9)
        own = self.of_sitting(whole)
        words = own / most
        values["session.bm25"] = rel + self.context * (words - rel)
        if self._n:
            best = np.maximum.reduceat(turns.words.bm25, sat.starts)
            top = best[self._sitting] / self._most
            values["session.bm25best"] = rel + self.context * (np.minimum(top, 1.0) - rel)
            rank = 1 + np.searchsorted(np.sort(-whole), -own)
            values["session.rank"] = -np.log(np.minimum(rank, 50)) * self.context
        else:
            values["session.bm25best"], values["session.rank"] = rel, np.zeros(len(gap))
        return values


def _who(
    question: QuestionCues,
    columns: Any,
    at: np.ndarray,
    lists: Lists,
    turns: Seen,
    flags: _Flags,
    of_items: bool,
) -> dict[str, np.ndarray]:
    """The one rule behind these: it is by whom the question asks about."""
    told = turns.scored.layout.columns
    known = lists.turn >= 0
    if of_items:
        speaker = told.speaker[lists.turn] if len(told.speaker) else np.zeros(len(at), np.int64)
        bits = _Flags(told.flags[lists.turn] * known if len(told.flags) else lists.turn * 0)
        machine, assistant, user = bits["machine"], bits["assistant"], bits["user"]
    else:
        speaker = columns.speaker[at]
        machine, assistant, user = flags["machine"], flags["assistant"], flags["user"]
    you, me = float("you" in question.asks), float("me" in question.asks)
    match = np.zeros(len(at))
    if len(question.named) == 1:
        said_by = np.array([name in question.named for name in told.names], bool)
        match = np.where(known, 2.0 * said_by[speaker] - 1.0, 0.0)
    elif not question.named and you:
        match = assistant - user
    elif not question.named and me:
        match = user - assistant
    return {
        "who.match": match,
        "who.match_first": np.maximum(match, 0) * flags["first"],
        "who.you_assistant": you * assistant,
        "who.me_assistant": me * (1 - you) * assistant,
        "who.assistant": assistant,
        "who.machine": machine,
        "who.you_user": you * user,
    }


def _dates(question: QuestionCues, day: np.ndarray, at: np.ndarray) -> dict[str, np.ndarray]:
    """A stretch of time that holds most records tells nothing, one that holds few tells much."""
    names = ("date.in", "date.near", "date.after", "date.far")
    if not question.spans or not np.isfinite(day).any():
        return dict.fromkeys(names, np.zeros(len(at)))
    begin = np.array([_days(begin) for begin, _ in question.spans])
    end = np.array([_days(end) for _, end in question.spans])
    x = day[:, None]
    away = np.where(x < begin, begin - x, np.where(x >= end, x - end, 0.0)).min(axis=1)
    away = np.where(np.isfinite(away), away, 999.0)
    after = ((x >= end) & (x < end + 14)).max(axis=1)

    def rare(inside: np.ndarray) -> np.ndarray:
        weight = float(np.log((len(day) + 1) / (inside.sum() + 1)) / 4)
        return np.asarray(inside[at] * weight)

    return {
        "date.in": rare(np.asarray(away <= 0)),
        "date.near": rare(np.asarray(away <= 7)),
        "date.after": rare(np.asarray(after)),
        "date.far": (away[at] > 45).astype(float),
    }


def _days(moment: datetime) -> float:
    return moment.replace(tzinfo=UTC).timestamp() / 86400


FEATURES: Final = (
    "dense.gap", "dense.close", "dense.rank", "dense.log",
    "bm25.rel", "bm25.abs", "bm25.rank", "bm25.log",
    "window.rel", "window.abs", "window.rank", "window.log",
    "items.has", "items.dense", "items.bm25", "items.cover",
    "items.dense_rank", "items.dense_log", "items.bm25_rank", "items.bm25_log",
    "fusion.share", "fusion.log", "fusion.rank", "fusion.agree10", "fusion.agree3",
    "cover.own", "cover.window", "cover.session", "cover.full",
    "near.dense_before", "near.bm25_before", "near.cover_before",
    "near.dense_behind", "near.bm25_behind", "near.cover_behind",
    "near.dense_two", "near.bm25_two", "near.dense_three", "near.bm25_three",
    "near.answers", "near.answers_bm25", "near.answers_dense",
    "session.best", "session.mean", "session.bm25", "session.bm25best", "session.rank",
    "who.match", "who.match_first", "who.you_assistant", "who.me_assistant", "who.assistant",
    "who.machine", "who.you_user",
    "type.when_time", "type.count_number", "type.who_name", "type.where_place", "type.why_reason",
    "type.pref_prefer", "type.you_suggest", "type.when_item",
    "surface.time", "surface.number", "surface.question", "surface.question_a", "surface.caption",
    "surface.prefer", "surface.first", "surface.length", "surface.length_user", "surface.short",
    "date.in", "date.near", "date.after", "date.far",
    "recent.now", "recent.first", "recent.older", "recent.now_older",
)  # fmt: skip
"""All features, in the order of the columns."""


def group_of(feature: str) -> str:
    """`dense` of `dense.gap`."""
    return feature.partition(".")[0]
