"""What a ranker sees of a question and a candidate: named numbers, in groups.

A name is `group.name`; groups are what `explain` speaks of. Everything is relative to the question
(the best hit, the most that its words could score) so that a number means the same in every memory.
Among items "user" (用户) is no word of a question: nearly all of them say it.
What neighbours and the sitting say fades in monologues and tiny sittings (`state/corpus_view.py`).

Invariant: a feature that means something else is another `VERSION`, and weights of another version
are refused. That more words are understood (`question.py`, `asked_dates.py`) is no other meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from memograd.memory.search.ranker.around import NEAR, SESSION, Around, Compared
from memograd.memory.search.ranker.asked_dates import days_since_1970
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
    own: Seen,
    turns: Seen,
    lists: Lists,
    question: QuestionCues,
    around: Around,
    *,
    of_items: bool,
) -> Features:
    """The features of all candidates, in the order of `FEATURES`.

    own: the corpus that the candidates are from. turns: those they stand among; for items, what
    their sources stand among, by words alone. around: of these candidates.
    """
    at, scored = lists.numbers, own.scored
    layout = scored.layout
    flags = _flags_of(layout.columns.flags[at])
    assistant = flags[_FLAG["assistant"]]
    user_like = 1.0 - assistant
    c = len(at)
    rows = np.empty((len(FEATURES), c))

    def put(name: str, values: np.ndarray | np.generic) -> np.ndarray:
        rows[_ROW[name]] = values
        return np.asarray(values)

    dense = scored.dense
    best = float(dense.max(initial=-1.0))
    spread = scored.spread
    gap = put("dense.gap", (dense[at] - best) / spread)
    put("dense.close", np.maximum(gap, -1.0))
    bm25 = own.words.bm25[at]
    most = max(float(own.words.bm25.max(initial=0.0)), 1e-9)
    ideal = max(scored.words.ideal, 1e-9)
    rel = put("bm25.rel", bm25 / most)
    put("bm25.abs", bm25 / ideal)

    window = window_of_items(own, turns, at, lists.turn) if of_items else turns.words.window[at]
    window_most = max(around.best_window, float(window.max()), 1e-9)
    put("window.rel", window / window_most)
    put("window.abs", window / ideal)
    has = np.isfinite(lists.ranks[3:]).any(axis=0)
    put("items.has", has)
    top = float(lists.item_dense.max(initial=-1.0))
    put("items.dense", np.where(has, np.maximum((lists.item_dense - top) / spread, -5), -5.0))
    put("items.bm25", lists.item_bm25 / max(float(lists.item_bm25.max(initial=0.0)), 1e-9))
    put("items.cover", lists.item_cover)
    rows[_RANKS] = 20 / (20 + lists.ranks)
    rows[_LOGS] = -np.log(np.minimum(lists.ranks, 80))
    share = put("fusion.share", lists.fused / max(float(lists.fused.max(initial=0.0)), 1e-9))
    order = np.argsort(-lists.fused, kind="stable")
    place = np.empty(c)
    place[order] = np.arange(1, c + 1)
    put("fusion.log", np.log(np.maximum(share, 0.05)))
    put("fusion.rank", 20 / (20 + place))
    put("fusion.agree10", (lists.ranks <= 10).sum(axis=0))
    put("fusion.agree3", (lists.ranks <= 3).sum(axis=0))
    cover = put("cover.own", own.words.cover[at])
    put("cover.window", np.maximum(around.cover, cover))
    put("cover.session", cover + around.context * (around.sitting_cover - cover))
    put("cover.full", cover > 0.6)
    compared = None if of_items else Compared(turns.scored, best, spread)
    told_most = max(float(turns.words.bm25.max(initial=0.0)), most)
    rows[_NEAR] = around.neighbours(told_most, compared)
    rows[_SESSION] = around.sittings(gap, rel, told_most, compared)

    rows[_WHO] = _who(question, layout.columns, at, lists, turns, flags, of_items)
    asks = {kind: float(kind in question.asks) for kind in _ASKED}
    rows[_TYPE] = np.array([asks[kind] for kind, _ in _FITS])[:, None] * flags[_FITTING]
    put("type.pref_prefer", asks["pref"] * flags[_FLAG["prefer"]] * user_like)
    put("type.you_suggest", asks["you"] * flags[_FLAG["suggest"]] * assistant)
    put("type.when_item", asks["when"] * has)
    rows[_SURFACE] = flags[_SHOWN]
    rows[_OF_USERS] *= user_like
    rows[_ROW["surface.question_a"]] *= assistant
    lengths = layout.lengths[at]
    length = put("surface.length", np.minimum(np.log1p(lengths.astype(float)), 4.0))
    put("surface.length_user", length * user_like)
    put("surface.short", lengths < 5)
    rows[_DATE] = _dates(question, layout.columns.day, at)
    where = around.place
    older = (where[order[:20]][None, :] < where[:, None]).mean(axis=1) if c else np.zeros(0)
    older = put("recent.older", older * turns.scored.layout.sittings().reach)
    put("recent.now", asks["now"] * where)
    put("recent.first", asks["first"] * where)
    put("recent.now_older", asks["now"] * older)
    return Features(at, rows.T)


_ASKED: Final = ("when", "count", "who", "where", "why", "pref", "you", "now", "first")
_FITS: Final = (
    ("when", "time"), ("count", "number"), ("who", "name"), ("where", "place"), ("why", "reason"),
)  # fmt: skip
"""What a question asks for, and what is to be seen in a record that tells it."""

_BITS: Final = np.array(list(BIT.values()))[:, None]
_FLAG: Final = {name: row for row, name in enumerate(BIT)}
_FITTING: Final = [_FLAG[flag] for _, flag in _FITS]


def _flags_of(bits: np.ndarray) -> np.ndarray:
    """float64 `[flags, c]`: the bits of records as numbers, 0 or 1, in the order of `BIT`."""
    set_bits: np.ndarray = (bits & _BITS != 0).astype(float)
    return set_bits


def _who(
    question: QuestionCues,
    columns: Any,
    at: np.ndarray,
    lists: Lists,
    turns: Seen,
    flags: np.ndarray,
    of_items: bool,
) -> np.ndarray:
    """`[_WHO, c]`. The one rule behind these: it is by whom the question asks about."""
    told = turns.scored.layout.columns
    known = lists.turn >= 0
    if of_items:
        speaker = told.speaker[lists.turn] if len(told.speaker) else np.zeros(len(at), np.int64)
        bits = told.flags[lists.turn] * known if len(told.flags) else lists.turn * 0
        assistant, user, machine = (bits & _BY != 0).astype(float)
    else:
        speaker = columns.speaker[at]
        assistant, user, machine = flags[_BY_FLAGS]
    you, me = float("you" in question.asks), float("me" in question.asks)
    rows = np.zeros((7, len(at)))
    match = rows[0]
    if len(question.named) == 1:
        said_by = np.array([name in question.named for name in told.names], bool)
        match[:] = np.where(known, 2.0 * said_by[speaker] - 1.0, 0.0)
    elif not question.named and you:
        match[:] = assistant - user
    elif not question.named and me:
        match[:] = user - assistant
    rows[1] = np.maximum(match, 0) * flags[_FLAG["first"]]
    rows[2] = you * assistant
    rows[3] = me * (1 - you) * assistant
    rows[4] = assistant
    rows[5] = machine
    rows[6] = you * user
    return rows


_BY_FLAGS: Final = [_FLAG[name] for name in ("assistant", "user", "machine")]
_BY: Final = _BITS[_BY_FLAGS]


def _dates(question: QuestionCues, day: np.ndarray, at: np.ndarray) -> np.ndarray:
    """`[_DATE, c]`: a stretch of time that holds most records tells nothing, one that holds few
    tells much."""
    if not question.spans or not np.isfinite(day).any():
        return np.zeros((4, len(at)))
    begin = np.array([days_since_1970(begin) for begin, _ in question.spans])
    end = np.array([days_since_1970(end) for _, end in question.spans])
    x = day[:, None]
    away = np.where(x < begin, begin - x, np.where(x >= end, x - end, 0.0)).min(axis=1)
    away = np.where(np.isfinite(away), away, 999.0)
    after = ((x >= end) & (x < end + 14)).max(axis=1)

    def rare(inside: np.ndarray) -> np.ndarray:
        weight = float(np.log((len(day) + 1) / (inside.sum() + 1)) / 4)
        return np.asarray(inside[at] * weight)

    return np.array(
        [
            rare(np.asarray(away <= 0)),
            rare(np.asarray(away <= 7)),
            rare(np.asarray(after)),
            away[at] > 45,
        ]
    )


FEATURES: Final = (
    "dense.gap", "dense.close", "dense.rank", "dense.log",
    "bm25.rel", "bm25.abs", "bm25.rank", "bm25.log",
    "window.rel", "window.abs", "window.rank", "window.log",
    "items.has", "items.dense", "items.bm25", "items.cover",
    "items.dense_rank", "items.dense_log", "items.bm25_rank", "items.bm25_log",
    "fusion.share", "fusion.log", "fusion.rank", "fusion.agree10", "fusion.agree3",
    "cover.own", "cover.window", "cover.session", "cover.full",
    *NEAR, *SESSION,
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


_ROW: Final = {name: row for row, name in enumerate(FEATURES)}


def _rows(first: str, last: str) -> slice:
    """From one feature to another."""
    return slice(_ROW[first], _ROW[last] + 1)


_RANKED: Final = ("dense.", "bm25.", "window.", "items.dense_", "items.bm25_")
_RANKS: Final = [_ROW[f"{name}rank"] for name in _RANKED]
_LOGS: Final = [_ROW[f"{name}log"] for name in _RANKED]
_NEAR: Final = _rows(NEAR[0], NEAR[-1])
_SESSION: Final = _rows(SESSION[0], SESSION[-1])
_WHO: Final = _rows("who.match", "who.you_user")
_TYPE: Final = _rows("type.when_time", "type.why_reason")
_SURFACE: Final = _rows("surface.time", "surface.first")
_SHOWN: Final = [
    _FLAG[name.removeprefix("surface.").removesuffix("_a")] for name in FEATURES[_SURFACE]
]
_OF_USERS: Final = [_ROW[f"surface.{name}"] for name in ("question", "prefer", "first")]
_DATE: Final = _rows("date.in", "date.far")


def group_of(feature: str) -> str:
    """`dense` of `dense.gap`."""
    return feature.partition(".")[0]
