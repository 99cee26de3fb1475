"""What a trained manager sees of a decision: the fact, the related items, and how they compare.

    fact vector [D], fact features [F]     what is said, and how much the memory holds already
    item vectors [K, D], pair features [K, P]     every related item beside the fact

The fact and its items become numbers here and nowhere else, in training and in service alike.
Actions are numbered 0 ADD, 1 NONE, 2 + i UPDATE item i, 2 + K + i DELETE item i, with K = `SLOTS`
places for items; places without an item, and what makes no sense (remembering a request to
forget), are not allowed.

Invariant: the observation of a fact depends on the state that is decided on and on nothing else;
features are finite and of order one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from memograd.memory.language import language_of
from memograd.memory.reader.fact import Fact
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import MemoryOp, OpKind
from memograd.memory.search import Hit, Query
from memograd.memory.search.related import RELATED_ITEMS, SAME_PROPERTY_ITEMS
from memograd.memory.statements import (
    Statement,
    Wording,
    agreement,
    parse_statement,
    same_text,
    wording,
)
from memograd.memory.text_caches import of_texts

if TYPE_CHECKING:
    from memograd.memory.state import MemoryState

SLOTS: Final = RELATED_ITEMS + SAME_PROPERTY_ITEMS
ACTIONS: Final = 2 + 2 * SLOTS
ADD, NONE = 0, 1

FACT_FEATURES: Final = (
    *("terms", "numbers", "asks", "exclaims", "retracts", "changed", "changed_to", "negated"),
    *("understood", "ended", "chinese", "most_similar", "mean_similarity", "related", "items"),
    *("tokens", "names_subject"),
)
PAIR_FEATURES: Final = (
    *("similarity", "meaning_rank", "words_rank", "place", "agreement", "item_in_fact"),
    *("fact_in_item", "numbers_differ", "negation_differs", "same_subject", "same_slot"),
    *("single_valued", "same_value", "same_text", "age", "length", "same_opening", "newest"),
    *("names_shared", "names_missing", "names_new", "common_start", "common_pairs"),
)

_NAME: Final = re.compile(r"\b[A-Z][\w'-]*")  # Chinese has none; pairs of characters tell there


@dataclass(frozen=True, slots=True)
class Observation:
    """One decision as arrays, float32, and `allowed` [ACTIONS], bool; absent items are zeros."""

    fact_D: np.ndarray
    fact_F: np.ndarray
    items_KD: np.ndarray
    pairs_KP: np.ndarray
    allowed_A: np.ndarray

    @property
    def present_K(self) -> np.ndarray:
        """Which places hold an item: exactly those that may be deleted."""
        present: np.ndarray = self.allowed_A[2 + SLOTS :]
        return present


@dataclass(frozen=True, slots=True)
class _Compared:
    wording: Wording
    statement: Statement | None
    opening: str
    names: frozenset[str]
    pairs: frozenset[str]  # of neighbouring characters


def observe(
    state: MemoryState, fact: Fact, query: Query, hits: Sequence[Hit[MemoryItem]]
) -> Observation:
    """The decision about `fact`; at most `SLOTS` hits, best first."""
    dimension = len(query.vector)
    items_KD = np.zeros((SLOTS, dimension), np.float32)
    pairs_KP = np.zeros((SLOTS, len(PAIR_FEATURES)), np.float32)
    allowed_A = np.zeros(ACTIONS, bool)
    allowed_A[NONE], allowed_A[ADD] = True, not fact.retracts
    said = _understand(fact.text)
    if hits:
        count = len(hits)
        items_KD[:count] = state.items.vectors([hit.record.id for hit in hits])
        newest = max(_since(hit.record) for hit in hits)
        for place, hit in enumerate(hits):
            pairs_KP[place] = _pair_features(fact, said, hit, place, newest)
        allowed_A[2 : 2 + count] = not fact.retracts
        allowed_A[2 + SLOTS : 2 + SLOTS + count] = True
    return Observation(
        fact_D=np.asarray(query.vector, np.float32),
        fact_F=_fact_features(fact, said, query, hits, len(state.items)),
        items_KD=items_KD,
        pairs_KP=pairs_KP,
        allowed_A=allowed_A,
    )


def action_of(op: MemoryOp, hits: Sequence[Hit[MemoryItem]]) -> int | None:
    """The number of an operation; None when it names an item that is not among the hits."""
    if op.kind is OpKind.ADD:
        return ADD
    if op.kind is OpKind.NONE:
        return NONE
    first = 2 if op.kind is OpKind.UPDATE else 2 + SLOTS
    for place, hit in enumerate(hits):
        if hit.record.id == op.item_id:
            return first + place
    return None


def operation_of(action: int, fact: Fact, hits: Sequence[Hit[MemoryItem]]) -> MemoryOp:
    """The operation with that number; an update lets the item say what the fact says."""
    if action == ADD:
        return MemoryOp.add(fact.text)
    if action == NONE:
        return MemoryOp.none()
    if action < 2 + SLOTS:
        return MemoryOp.update(hits[action - 2].record.id, fact.text)
    return MemoryOp.delete(hits[action - 2 - SLOTS].record.id)


def _fact_features(
    fact: Fact, said: _Compared, query: Query, hits: Sequence[Hit[MemoryItem]], items: int
) -> np.ndarray:
    similarities = [hit.why.similarity for hit in hits] or [0.0]
    statement = said.statement
    return np.array(
        [
            math.log1p(len(query.terms)) / 3,
            bool(said.wording.numbers),
            fact.text.rstrip().endswith(("?", "？")),
            fact.text.rstrip().endswith(("!", "！")),
            fact.retracts,
            said.wording.changed,
            said.wording.changed_to,
            said.wording.negated,
            statement is not None,
            statement is not None and statement.ended,
            language_of(fact.text) == "zh",
            max(similarities),
            sum(similarities) / len(similarities),
            len(hits) / SLOTS,
            math.log1p(items) / 6,
            math.log1p(len(fact.text)) / 5,
            bool(fact.subject),
        ],
        np.float32,
    )


def _pair_features(
    fact: Fact, said: _Compared, hit: Hit[MemoryItem], place: int, newest: float
) -> np.ndarray:
    item = hit.record
    known = _understand(item.text)
    ours, theirs = said.wording, known.wording
    new, old = said.statement, known.statement
    both = new is not None and old is not None
    common = len(ours.terms & theirs.terms)
    same_slot = new is not None and old is not None and new.same_slot(old)
    return np.array(
        [
            hit.why.similarity,
            1 / hit.why.dense_rank if hit.why.dense_rank else 0.0,
            1 / hit.why.lexical_rank if hit.why.lexical_rank else 0.0,
            1 / (1 + place),
            agreement(ours, theirs),
            common / max(1, len(theirs.terms)),
            common / max(1, len(ours.terms)),
            bool(ours.numbers and theirs.numbers) and ours.numbers != theirs.numbers,
            ours.negated != theirs.negated,
            both and new.same_subject(old),  # type: ignore[union-attr, arg-type]
            same_slot,
            same_slot and new is not None and new.single_valued,
            both and new.same_value(old),  # type: ignore[union-attr, arg-type]
            _same_text(fact.text, item.text),
            _age(fact, item),
            math.log((1 + len(fact.text)) / (1 + len(item.text))),
            said.opening == known.opening,
            _since(item) == newest,
            len(said.names & known.names) / max(1, len(said.names | known.names)),
            len(known.names - said.names) / 3,
            len(said.names - known.names) / 3,
            _common_start(fact.text, item.text) / max(1, min(len(fact.text), len(item.text))),
            len(said.pairs & known.pairs) / max(1, min(len(said.pairs), len(known.pairs))),
        ],
        np.float32,
    )


def _age(fact: Fact, item: MemoryItem) -> float:
    """Months from when the item began to be true (else was learnt) to the fact, on a log scale."""
    if fact.told_at is None:
        return 0.0
    days = (seconds(fact.told_at) - _since(item)) / 86_400
    return math.log1p(max(0.0, days) / 30)


def _since(item: MemoryItem) -> float:
    return seconds(item.valid_from or item.updated_at)


def seconds(moment: datetime) -> float:
    """Since 1970; a time without a zone is read as it stands, the same on every machine."""
    if moment.tzinfo is None:
        return (moment - datetime(1970, 1, 1)).total_seconds()
    return moment.timestamp()


def _common_start(first: str, second: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(first, second, strict=False))
    shorter = min(len(first), len(second))
    return next((place for place, (one, other) in pairs if one != other), shorter)


@of_texts
@lru_cache(maxsize=65_536)
def _same_text(first: str, second: str) -> bool:
    return same_text(first, second)


@of_texts
@lru_cache(maxsize=16_384)  # a raw turn of some pages takes 50 kB here
def _understand(text: str) -> _Compared:
    straight = text.replace("’", "'")
    opening = straight.split(maxsplit=1)[0].casefold().removesuffix("'s") if text.strip() else ""
    if language_of(text) == "zh":
        opening = text.strip()[:2]
    names = frozenset(word.removesuffix("'s") for word in _NAME.findall(straight))
    pairs = frozenset(text[at : at + 2] for at in range(len(text) - 1))
    return _Compared(wording(text), parse_statement(text), opening, names, pairs)
