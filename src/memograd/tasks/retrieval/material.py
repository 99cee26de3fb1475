"""From conversations with questions and evidence to rows of features, by the memory's own code.

A memory holds the turns of one conversation, or of several one after the other where each is about
one question (LongMemEval's), with the facts that the rule reader finds. Every question gives a row
of turns and a row of items: features, and which candidates are evidence. Invariant: features come
from `memory/search/ranker`, so what is trained is what search computes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import numpy as np

from memograd.data import Conversation, Question
from memograd.memory import RawTurn
from memograd.memory.analysis import analyse
from memograd.memory.embedders import Embedder
from memograd.memory.reader import RuleReader
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.search import Query
from memograd.memory.search.ranker.around import Around
from memograd.memory.search.ranker.features import candidate_features
from memograd.memory.search.ranker.files import question_facts
from memograd.memory.search.ranker.lists import item_lists, turn_lists
from memograd.memory.search.ranker.newer import centred
from memograd.memory.search.ranker.question import QuestionCues
from memograd.memory.search.ranker.trained import Asked, asked
from memograd.memory.state import MemoryState

_SCOPE: Final = Scope(user_id="retrieval")
_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Asking:
    """A question and the ids of the turns (or items) that answer it; none: nothing does.

    asked: as the data have it, with the right answers; None where only the evidence is known.
    """

    text: str
    evidence: frozenset[str]
    kind: str
    asked_at: datetime | None = None
    asked: Question | None = None


@dataclass(frozen=True, slots=True)
class MemoryMaterial:
    """What one memory hears, as conversations apart, and what is asked of it.

    set: rows of a set share their weight. group: what is held out together. items: what a reader
    made of it, where evidence names items; None: turns are evidence, and the rule reader reads.
    """

    name: str
    set: str
    group: str
    conversations: tuple[tuple[RawTurn, ...], ...]
    asked: tuple[Asking, ...]
    items: tuple[MemoryItem, ...] | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """features float32 `[c, f]`, hit bool `[c]`, fused float32 `[c]`, facts float64 `[facts - 2]`.

    sources: of each candidate the numbers of the turns that it shows, among those of the evidence;
    -1 where it shows none. lines: the candidates as a prompt shows them. told: int64 `[c]`, the
    turn that an item came from, and alike: float32 `[hits, c]`, how alike evidence is to all of
    them (`memory/search/ranker/newer.py`); None for turns.
    """

    features: np.ndarray
    hit: np.ndarray
    fused: np.ndarray
    facts: np.ndarray
    sources: tuple[tuple[int, ...], ...]
    lines: tuple[str, ...] = ()
    told: np.ndarray | None = None
    alike: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One question. evidence: how many turns answer it. asked: as in `Asking`. cues: what its
    wording asks for."""

    set: str
    memory: str
    group: str
    kind: str
    text: str
    evidence: int
    turns: Candidates | None
    items: Candidates | None
    asked: Question | None = None
    cues: QuestionCues | None = None


def told_of(
    conversations: Sequence[Conversation], *, set_name: str, group: str, together: int = 1
) -> list[MemoryMaterial]:
    """Memories of `together` conversations each; ids of turns become unique within a memory."""
    memories = []
    for start in range(0, len(conversations), together):
        chunk = conversations[start : start + together]
        heard, asking, session = [], [], 0
        for number, one in enumerate(chunk):
            sessions = {
                s: session + n for n, s in enumerate(dict.fromkeys(t.session for t in one.turns), 1)
            }
            session += len(sessions)
            heard.append(
                tuple(
                    replace(turn, id=f"{number}|{turn.id}", session=sessions[turn.session])
                    for turn in one.turns
                )
            )
            asking += [_asking(question, number) for question in one.questions if question.evidence]
            asking += [_asking(question, number) for question in one.adversarial_questions]
        if asking:
            memories.append(
                MemoryMaterial(
                    f"{chunk[0].id}+{len(chunk)}", set_name, group, tuple(heard), tuple(asking)
                )
            )
    return memories


def _asking(question: Question, number: int) -> Asking:
    evidence = () if question.adversarial else question.evidence
    return Asking(
        question.text,
        frozenset(f"{number}|{id}" for id in evidence),
        "unanswerable" if question.adversarial else question.category,
        question.asked_at,
        question,
    )


def state_of(told: MemoryMaterial, embedder: Embedder) -> MemoryState:
    """The memory after all that was told."""
    state = MemoryState(embedder.dimension)
    turns = [turn for conversation in told.conversations for turn in conversation]
    if told.items is not None:  # items are ranked by the words of their turns alone
        vectors = np.zeros((len(turns), embedder.dimension), np.float32)
        state.turns.add_many(turns, vectors, [analyse(turn.index_text()) for turn in turns])
        _add_items(state, told.items, embedder)
        return state
    texts = [turn.index_text() for turn in turns]
    state.turns.add_many(turns, embedder.embed(texts), [analyse(text) for text in texts])
    reader = RuleReader()
    facts = [fact for conversation in told.conversations for fact in reader.read(conversation)]
    items = [
        MemoryItem(
            id=hashlib.sha256(f"{number}\0{fact.text}".encode()).hexdigest()[:16],
            text=fact.text,
            scope=_SCOPE,
            created_at=_NOW,
            updated_at=_NOW,
            sources=tuple(fact.sources),
        )
        for number, fact in enumerate(facts)
    ]
    _add_items(state, items, embedder)
    return state


def _add_items(state: MemoryState, items: Sequence[MemoryItem], embedder: Embedder) -> None:
    if items:
        texts = [item.text for item in items]
        state.items.add_many(items, embedder.embed(texts), [analyse(text) for text in texts])


def rows_of(
    memories: Sequence[MemoryMaterial], embedder: Embedder, *, strangers: int = 0
) -> Iterator[Row]:
    """The rows of all memories.

    strangers: questions of the other memories of the same set that each memory is asked, too, and
    cannot answer: it heard other people.
    """
    for number, told in enumerate(memories):
        state = state_of(told, embedder)
        others = [
            replace(asking, evidence=frozenset(), kind="stranger")
            for other in memories
            if other is not told and other.set == told.set
            for asking in other.asked
            if asking.evidence
        ]
        chosen = np.random.default_rng(number).permutation(len(others))[:strangers]
        asking = [*told.asked, *(others[at] for at in chosen.tolist())]
        vectors = embedder.embed_queries([one.text for one in asking])
        for one, vector in zip(asking, vectors, strict=True):
            query = Query(one.text, vector, analyse(one.text))
            yield row_of(state, query, one, told)


def row_of(state: MemoryState, query: Query, asking: Asking, told: MemoryMaterial) -> Row:
    """One question of one memory."""
    seen = asked(
        state,
        query,
        asked_at=asking.asked_at,
        item_eligible=None,
        turn_eligible=None,
        with_turns=told.items is None,
    )
    return Row(
        told.set,
        told.name,
        told.group,
        asking.kind,
        asking.text,
        len(asking.evidence),
        None if told.items is not None else _candidates(seen, asking, of_items=False),
        _candidates(seen, asking, of_items=True, by_id=told.items is not None),
        asking.asked,
        seen.question,
    )


def _candidates(
    seen: Asked, asking: Asking, *, of_items: bool, by_id: bool = False
) -> Candidates | None:
    own = seen.items if of_items else seen.turns
    if of_items:
        lists = item_lists(own, seen.turns, seen.sources)
    else:
        lists = turn_lists(own, seen.items, seen.sources, seen.question.spans)
    if not len(lists.numbers):
        return None
    around = Around.of(seen.turns, lists.turn)
    features = candidate_features(own, seen.turns, lists, seen.question, around, of_items=of_items)
    numbers = {id: number for number, id in enumerate(sorted(asking.evidence))}
    sources, lines = [], []
    for record in own.scored.records(lists.numbers):
        shown = record.sources if of_items and not by_id else (record.id,)
        sources.append(tuple(numbers[id] for id in shown if id in numbers))
        lines.append(record.text if of_items else record.render())
    facts = question_facts(own, seen.turns, lists, features.column("who.match"))
    hit = np.array([bool(one) for one in sources])
    alike = None
    if of_items:
        vectors = centred(own.scored, lists, np.arange(len(hit)))
        alike = (vectors[hit] @ vectors.T).astype(np.float32)
    return Candidates(
        features.rows.astype(np.float32),
        hit,
        (lists.fused + 1e-6 * own.scored.dense[lists.numbers]).astype(np.float32),
        facts,
        tuple(sources),
        tuple(lines),
        lists.turn if of_items else None,
        alike,
    )
