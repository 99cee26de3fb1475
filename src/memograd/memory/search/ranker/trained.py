"""Search by the trained ranker: candidates of all lists, their features, scores and probabilities.

`choose_ranking` says by what a memory ranks: the ranker of its settings (of a folder of versions
the current one, which `FollowedRanking` follows), or rank fusion with the reason why. A ranker that
cannot be used (another embedder, another version, no such file) is told once in the log, in every
explanation and, where the settings name it, in every result; the memory goes on by fusion, because
finding less well is better than not finding. Invariant: the scores of hits are probabilities, never
rising from one hit to the next; an older item that goes behind a newer one leaves it its place and
the probability of that place.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Generic

import numpy as np

from memograd.errors import BadInput
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.turns import RawTurn
from memograd.memory.records.versions import CURRENT_FILE
from memograd.memory.search.hits import Query, T
from memograd.memory.search.ranker.around import Around
from memograd.memory.search.ranker.features import GROUPS, Features, candidate_features
from memograd.memory.search.ranker.files import (
    LinearRanking,
    Probability,
    Ranker,
    RankerVersions,
    load_ranker,
    question_facts,
    shipped_ranker,
    with_best,
)
from memograd.memory.search.ranker.lists import (
    Lists,
    Seen,
    Sources,
    item_lists,
    seen,
    sources_of,
    turn_lists,
)
from memograd.memory.search.ranker.newer import Newer, speech_of
from memograd.memory.search.ranker.question import QuestionCues, read_question, telling
from memograd.memory.search.retriever import Candidate
from memograd.memory.state import Corpus, MemoryState

logger = logging.getLogger(__name__)

REASONS: Final = 3


@dataclass(frozen=True)
class Ranking:
    """ranker: what ranks, None for rank fusion. reason: why it is fusion, empty for the ranker.
    failed: whether the settings name a ranker of their own, which cannot be used."""

    ranker: Ranker | None
    reason: str
    failed: bool = False


def choose_ranking(setting: str, embedder: str) -> Ranking:
    """What the setting `ranking` means for a memory with this embedder."""
    if setting == "fusion":
        return Ranking(None, "the setting ranking is fusion")
    try:
        ranker = _named(setting)
        if ranker.embedder != embedder:
            raise BadInput(
                f"The ranker {'that ships' if setting == 'trained' else 'in ' + setting} was"
                f" trained on vectors of {ranker.embedder!r}, not of {embedder!r}."
            )
        held_out = ranker.made_from.get("held_out")
        if isinstance(held_out, dict) and held_out.get("adopted") is False:
            raise BadInput(
                f"The ranker in {setting} did not beat rank fusion on held-out questions."
            )
    except BadInput as error:
        own = setting != "trained"
        (logger.warning if own else logger.info)("Searching by rank fusion: %s", error)
        return Ranking(None, str(error), failed=own)
    return Ranking(ranker, "")


def _named(setting: str) -> Ranker:
    if setting == "trained":
        return shipped_ranker()
    folder = Path(setting).expanduser()
    if RankerVersions.is_in(folder):
        return RankerVersions(folder).load()
    return load_ranker(folder)


class FollowedRanking:
    """What a memory ranks by at this moment: `memograd learn` and a rollback change it."""

    def __init__(self, setting: str, embedder: str) -> None:
        self._setting, self._embedder = setting, embedder
        self._current = Path(setting).expanduser() / CURRENT_FILE
        self._seen = self._state()
        self._ranking = choose_ranking(setting, embedder)

    def now(self) -> Ranking:
        """The ranking; chosen anew where another version is current."""
        state = self._state()
        if state != self._seen:
            self._ranking, self._seen = choose_ranking(self._setting, self._embedder), state
        return self._ranking

    def _state(self) -> tuple[int, int] | None:
        """What changes when the file that names the current version is replaced."""
        try:
            found = self._current.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino


@dataclass(frozen=True, slots=True)
class Asked:
    """A query over a state, seen once for items and turns."""

    turns: Seen
    items: Seen
    sources: Sources
    question: QuestionCues


def asked(
    state: MemoryState,
    query: Query,
    *,
    asked_at: datetime | None,
    item_eligible: Callable[[MemoryItem], bool] | None,
    turn_eligible: Callable[[RawTurn], bool] | None,
    with_turns: bool,
) -> Asked:
    """What lists and the question's wording say; without turns, those are seen by words alone."""
    of_items = state.items.scored(query.vector, telling(query.terms))
    told = state.turns.scored(query.vector if with_turns else None, query.terms)
    items = seen(of_items, item_eligible, around=False)
    turns = seen(told, turn_eligible, around=True, best=with_turns)
    layout = told.layout
    question = read_question(
        query.text,
        asked_at=asked_at,
        names=layout.columns.names,
        years=layout.sittings().years,
    )
    return Asked(turns, items, sources_of(items, turns), question)


@dataclass(frozen=True, slots=True)
class Judged(Generic[T]):
    """Candidates of one kind: features, scores, and what is said of the question."""

    question: QuestionCues
    own: Seen
    lists: Lists
    features: Features
    scores: np.ndarray
    facts: np.ndarray


def judge_both(
    asked: Asked, ranker: Ranker
) -> tuple[Judged[MemoryItem] | None, Judged[RawTurn] | None]:
    """The candidates among items and among turns, as `judge_items` and `judge_turns` give them;
    what stands around them is looked up once."""
    items = item_lists(asked.items, asked.turns, asked.sources)
    turns = turn_lists(asked.turns, asked.items, asked.sources, asked.question.spans)
    around = Around.of(asked.turns, np.concatenate([items.turn, turns.turn]))
    count = len(items.numbers)
    return (
        _judge(asked, asked.items, items, ranker.items, around.part(0, count), of_items=True),
        _judge(asked, asked.turns, turns, ranker.turns, around.part(count, None), of_items=False),
    )


def judge_turns(asked: Asked, linear: LinearRanking) -> Judged[RawTurn] | None:
    """The candidates among turns with their scores; None where there are none."""
    lists = turn_lists(asked.turns, asked.items, asked.sources, asked.question.spans)
    around = Around.of(asked.turns, lists.turn)
    return _judge(asked, asked.turns, lists, linear, around, of_items=False)


def judge_items(asked: Asked, linear: LinearRanking) -> Judged[MemoryItem] | None:
    """The candidates among items with their scores; None where there are none."""
    lists = item_lists(asked.items, asked.turns, asked.sources)
    around = Around.of(asked.turns, lists.turn)
    return _judge(asked, asked.items, lists, linear, around, of_items=True)


def _judge(
    asked: Asked, own: Seen, lists: Lists, linear: LinearRanking, around: Around, *, of_items: bool
) -> Judged[Any] | None:
    if not len(lists.numbers):
        return None
    features = candidate_features(
        own, asked.turns, lists, asked.question, around, of_items=of_items
    )
    scores = linear.scores(features.rows)
    facts = question_facts(own, asked.turns, lists, features.column("who.match"))
    facts = with_best(facts, scores, features.column("fusion.agree3"))
    return Judged(asked.question, own, lists, features, scores, facts)


def candidates_of(
    judged: Judged[T] | None,
    corpus: Corpus[T],
    query: Query,
    linear: LinearRanking,
    probability: Probability,
    *,
    most: int,
    threshold: float | None,
    explain: bool,
    newer: Newer | None = None,
) -> list[Candidate[T]]:
    """The best `most` candidates of at least the probability `threshold`, best first.

    Where more are wanted than the lists hold, what stands in none comes behind, by meaning, as
    probable as the last. newer: by what an older one goes behind a newer one; None: none does.
    """
    if judged is None:
        return []
    order = np.argsort(-judged.scores, kind="stable")
    chances = probability.of(judged.scores, judged.facts)[order]
    passed: dict[int, int] = {}
    if newer is not None:
        speech = speech_of(judged.features)
        order, passed = newer.before(
            judged.own.scored, judged.lists, judged.question, order, judged.scores, speech
        )
    count = len(order) if threshold is None else int((chances >= threshold).sum())
    order = order[: min(most, count)]
    found: list[Candidate[T]] = []
    ranks, scored, rows = judged.lists.ranks, judged.own.scored, judged.features.rows
    numbers = judged.lists.numbers[order]
    records = [scored.record(number) for number in numbers.tolist()]
    similarities = corpus.similarities(query.vector, [record.id for record in records])
    by_words = judged.own.words.bm25[numbers].tolist()
    by_source = ranks[3:, order].min(axis=0)
    listed = [*ranks[:3, order], by_source]
    dense, lexical, window, source = (
        [int(rank) if rank < math.inf else None for rank in row.tolist()] for row in listed
    )
    for place, at in enumerate(order.tolist()):
        chance = float(chances[place])
        candidate: Candidate[T] = Candidate(
            records[place],
            similarities[place],
            dense_rank=dense[place],
            lexical_rank=lexical[place],
            lexical_score=by_words[place],
            source_rank=source[place],
            window_rank=window[place],
            fused=chance,
            probability=chance,
        )
        if at in passed:
            candidate.newer = scored.record(int(judged.lists.numbers[passed[at]])).id
        if explain:
            candidate.reasons = _reasons(linear.contributions(rows[at], rows))
        found.append(candidate)
    if len(found) == len(chances):
        chance = float(chances[-1])
        behind = _in_no_list(judged, most - len(found))
        ids = [scored.record(number).id for number, _ in behind]
        near = corpus.similarities(query.vector, ids)
        for (number, rank), similarity in zip(behind, near, strict=True):
            record = scored.record(number)
            found.append(
                Candidate(record, similarity, dense_rank=rank, fused=chance, probability=chance)
            )
    return found


def _in_no_list(judged: Judged[T], most: int) -> list[tuple[int, int]]:
    """The nearest `most` records that stand in no list: their numbers and ranks by meaning."""
    scored, allowed = judged.own.scored, judged.own.allowed
    if most <= 0 or len(scored) == len(judged.lists.numbers):
        return []
    listed = set(judged.lists.numbers.tolist())
    found: list[tuple[int, int]] = []
    rank = 0
    for number in np.argsort(-scored.dense, kind="stable").tolist():
        if allowed is None or allowed(number):
            rank += 1
            if number not in listed:
                found.append((number, rank))
            if len(found) == most:
                break
    return found


def _reasons(parts: dict[str, float]) -> tuple[tuple[str, float], ...]:
    best = sorted(parts.items(), key=lambda part: -abs(part[1]))[:REASONS]
    return tuple((GROUPS[group], round(value, 2)) for group, value in best)
