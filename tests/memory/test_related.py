"""Which items a decision looks at: the nearest, and those of the fact's property."""

from __future__ import annotations

from datetime import UTC, datetime

from memograd.memory.analysis import analyse
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.search import Query
from memograd.memory.search.related import RELATED_ITEMS, SAME_PROPERTY_ITEMS, find_related
from memograd.memory.state import MemoryState

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def state_of(trigrams, texts: list[str]) -> tuple[MemoryState, object]:
    embedder = trigrams(dimension=64)
    state = MemoryState(64)
    for number, text in enumerate(texts):
        item = MemoryItem(str(number), text, Scope(user_id=f"u{number % 2}"), NOW, NOW)
        state.add_item(item, embedder.embed([text])[0], tuple(analyse(text)))
    return state, embedder


def query_of(embedder, text: str) -> Query:
    return Query(text, embedder.embed([text])[0], tuple(analyse(text)))


def test_each_item_once_and_not_too_many(trigrams) -> None:
    texts = [f"Ann lives in a house of type {number}." for number in range(40)]
    state, embedder = state_of(trigrams, texts)
    hits = find_related(state.items, query_of(embedder, "Ann moved to Oslo."))
    ids = [hit.record.id for hit in hits]
    assert len(ids) == len(set(ids))
    assert RELATED_ITEMS <= len(ids) <= RELATED_ITEMS + SAME_PROPERTY_ITEMS


def test_the_property_finds_what_nothing_else_would(trigrams) -> None:
    """Moving is about where somebody lives, though no word of it stands in the item."""
    noise = [f"Ann moved box {number} to the Oslo shelf." for number in range(30)]
    state, embedder = state_of(trigrams, [*noise, "Ann lives in Rome."])
    found = find_related(state.items, query_of(embedder, "Ann moved to Oslo."))
    assert "Ann lives in Rome." in [hit.record.text for hit in found[RELATED_ITEMS:]]


def test_only_eligible_items(trigrams) -> None:
    state, embedder = state_of(trigrams, ["Ann lives in Rome."] * 1 + ["Bob lives in Rome."])
    hits = find_related(
        state.items,
        query_of(embedder, "Ann moved to Oslo."),
        eligible=lambda item: item.scope.user_id == "u1",
    )
    assert [hit.record.scope.user_id for hit in hits] == ["u1"]
