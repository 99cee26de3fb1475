from __future__ import annotations

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from memograd.memory.records.items import Kind, MemoryItem, content_hash
from memograd.memory.records.scope import Scope

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
MOMENTS = st.datetimes(timezones=st.just(UTC))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
ITEMS = st.builds(
    MemoryItem,
    id=TEXTS,
    text=TEXTS,
    scope=st.builds(Scope, user_id=st.just("alice"), agent_id=st.none() | st.just("planner")),
    created_at=MOMENTS,
    updated_at=MOMENTS,
    kind=st.sampled_from(Kind),
    categories=st.lists(TEXTS, max_size=2).map(tuple),
    metadata=st.dictionaries(TEXTS, VALUES, max_size=3),
    sources=st.lists(TEXTS, max_size=2).map(tuple),
    valid_from=st.none() | MOMENTS,
    valid_to=st.none() | MOMENTS,
)


@given(ITEMS)
def test_an_item_survives_its_json_form(item: MemoryItem) -> None:
    assert MemoryItem.from_json(json.loads(json.dumps(item.to_json()))) == item


def test_empty_fields_are_left_out() -> None:
    moment = datetime(2024, 5, 7, tzinfo=UTC)
    item = MemoryItem("1", "豆豆三岁", Scope("alice"), moment, moment)
    assert set(item.to_json()) == {"id", "text", "user_id", "created_at", "updated_at", "kind"}


def test_the_hash_is_the_content_s() -> None:
    # sha256sum of the three bytes "abc", a published test vector (FIPS 180-2).
    assert content_hash("abc") == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
