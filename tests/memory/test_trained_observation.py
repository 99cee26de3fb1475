"""Decisions as numbers: what is allowed, what the features say, which action is which."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from memograd.memory.analysis import analyse
from memograd.memory.manager.trained.observation import (
    ACTIONS,
    ADD,
    FACT_FEATURES,
    NONE,
    PAIR_FEATURES,
    SLOTS,
    action_of,
    observe,
    operation_of,
)
from memograd.memory.reader.fact import Fact
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import MemoryOp, OpKind
from memograd.memory.records.scope import Scope
from memograd.memory.search import Query
from memograd.memory.search.related import find_related
from memograd.memory.state import MemoryState

NOW = datetime(2024, 5, 1, tzinfo=UTC)
KNOWN = ("Ann lives in Rome.", "Ann's dog is called Rex.", "Bob lives in Paris.", "安住在北京。")


def remembering(trigrams, texts=KNOWN) -> tuple[MemoryState, object]:
    embedder = trigrams(dimension=64)
    state = MemoryState(64)
    for number, text in enumerate(texts):
        then = NOW - timedelta(days=30 * (len(texts) - number))
        item = MemoryItem(str(number), text, Scope(user_id="u"), then, then)
        state.add_item(item, embedder.embed([text])[0], tuple(analyse(text)))
    return state, embedder


def decision(trigrams, text: str, *, retracts: bool = False, texts=KNOWN):
    state, embedder = remembering(trigrams, texts)
    query = Query(text, embedder.embed([text])[0], tuple(analyse(text)))
    fact = Fact(text, sources=("t",), told_at=NOW, retracts=retracts)
    hits = find_related(state.items, query)
    return observe(state, fact, query, hits), fact, hits


def pair(observation, hits, text: str) -> dict[str, float]:
    place = next(place for place, hit in enumerate(hits) if hit.record.text == text)
    return dict(zip(PAIR_FEATURES, observation.pairs_KP[place].tolist(), strict=True))


def test_every_related_item_can_be_updated_and_deleted_and_nothing_else(trigrams) -> None:
    seen, _, hits = decision(trigrams, "Ann lives in Oslo now.")
    count = len(hits)
    assert 0 < count <= SLOTS
    allowed = np.zeros(ACTIONS, bool)
    allowed[[ADD, NONE, *range(2, 2 + count), *range(2 + SLOTS, 2 + SLOTS + count)]] = True
    assert np.array_equal(seen.allowed_A, allowed)
    assert seen.present_K.sum() == count
    assert not seen.items_KD[count:].any() and not seen.pairs_KP[count:].any()


def test_a_request_to_forget_is_never_remembered(trigrams) -> None:
    seen, _, hits = decision(trigrams, "Ann lives in Rome", retracts=True)
    assert not seen.allowed_A[ADD] and not seen.allowed_A[2 : 2 + SLOTS].any()
    assert seen.allowed_A[NONE] and seen.present_K.sum() == len(hits)


def test_an_empty_memory_leaves_adding_and_nothing(trigrams) -> None:
    seen, _, _ = decision(trigrams, "Ann lives in Rome.", texts=())
    assert np.flatnonzero(seen.allowed_A).tolist() == [ADD, NONE]


def test_features_say_how_fact_and_item_agree(trigrams) -> None:
    seen, _, hits = decision(trigrams, "Ann lives in Oslo.")
    rome, paris = (pair(seen, hits, text) for text in (KNOWN[0], KNOWN[2]))
    assert (rome["same_subject"], rome["same_slot"], rome["single_valued"]) == (1, 1, 1)
    assert (rome["same_value"], rome["same_text"], rome["same_opening"]) == (0, 0, 1)
    assert (paris["same_subject"], paris["same_slot"], paris["same_opening"]) == (0, 0, 0)
    assert rome["age"] > paris["age"] > 0
    again, _, hits = decision(trigrams, "Ann lives in Rome.")
    assert pair(again, hits, KNOWN[0])["same_text"] == 1


@pytest.mark.parametrize("text", ["", "???", "a" * 5000, "他 9 岁了！", "Ann lives in Rome."])
def test_features_are_finite_and_of_order_one(trigrams, text: str) -> None:
    seen, _, _ = decision(trigrams, text or " .")
    assert seen.fact_F.shape == (len(FACT_FEATURES),)
    for values in (seen.fact_F, seen.pairs_KP, seen.items_KD, seen.fact_D):
        assert values.dtype == np.float32
        assert np.isfinite(values).all() and np.abs(values).max(initial=0) < 10


def test_actions_and_operations_are_each_others_names(trigrams) -> None:
    seen, fact, hits = decision(trigrams, "Ann lives in Oslo now.")
    kinds = set()
    for action in np.flatnonzero(seen.allowed_A).tolist():
        op = operation_of(action, fact, hits)
        kinds.add(op.kind)
        assert action_of(op, hits) == action
        assert op.text == (fact.text if op.kind in (OpKind.ADD, OpKind.UPDATE) else None)
    assert kinds == set(OpKind)
    assert action_of(MemoryOp.delete("unheard of"), hits) is None


def test_observing_changes_nothing(trigrams) -> None:
    first, _, _ = decision(trigrams, "Ann lives in Oslo now.")
    second, _, _ = decision(trigrams, "Ann lives in Oslo now.")
    for name in ("fact_D", "fact_F", "items_KD", "pairs_KP", "allowed_A"):
        assert np.array_equal(getattr(first, name), getattr(second, name))


def test_names_tell_people_apart(trigrams) -> None:
    seen, _, hits = decision(trigrams, "Ann lives in Oslo.")
    rome, paris = (pair(seen, hits, text) for text in (KNOWN[0], KNOWN[2]))
    assert rome["names_shared"] == pytest.approx(1 / 3)
    assert (paris["names_shared"], paris["names_missing"]) == (0, pytest.approx(2 / 3))
    assert rome["common_start"] > paris["common_start"] == 0
    assert rome["common_pairs"] > paris["common_pairs"]
