"""Filters: against a naive evaluator, and what they refuse; `pinned` never leaves an id out."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.memory import Memory
from memograd.memory.filters import parse_filter, scope_filter
from memograd.memory.records.items import Kind, MemoryItem
from memograd.memory.records.scope import SCOPE_FIELDS, Scope

MOMENT = datetime(2023, 5, 7, 18, 30, tzinfo=UTC)


def item(text: str = "Alice likes hiking", **fields: Any) -> MemoryItem:
    scope = Scope(
        fields.pop("user_id", "alice"), fields.pop("agent_id", None), fields.pop("run_id", None)
    )
    moments = {"created_at": MOMENT, "updated_at": MOMENT}
    return MemoryItem(id=fields.pop("id", "m1"), text=text, scope=scope, **(moments | fields))


# A second reading of the language, written apart: recursive, over the dictionaries themselves.


def naive_field(thing: MemoryItem, key: str) -> Any:
    plain = {
        "id": thing.id,
        "text": thing.text,
        "memory": thing.text,
        "kind": str(thing.kind),
        "user_id": thing.scope.user_id,
        "agent_id": thing.scope.agent_id,
        "run_id": thing.scope.run_id,
        "categories": list(thing.categories) or None,
        "created_at": thing.created_at,
        "valid_from": thing.valid_from,
    }
    if key in plain:
        return plain[key]
    value: Any = thing.metadata
    for part in key.removeprefix("metadata.").split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def naive_sort(value: Any) -> str:
    if isinstance(value, bool):
        return "truth"
    return "number" if isinstance(value, int | float) else type(value).__name__


def naive_equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, list):
        return any(naive_equal(element, wanted) for element in value)
    return naive_sort(value) == naive_sort(wanted) and bool(value == wanted)


def naive_operator(value: Any, operator: str, wanted: Any) -> bool:
    if operator in ("ne", "nin"):
        return not naive_operator(value, "eq" if operator == "ne" else "in", wanted)
    if operator == "eq":
        return naive_equal(value, wanted)
    if operator == "in":
        return any(naive_equal(value, element) for element in wanted)
    if operator in ("contains", "icontains"):
        fold = str.casefold if operator == "icontains" else str
        if isinstance(value, str):
            return isinstance(wanted, str) and fold(wanted) in fold(value)
        elements = value if isinstance(value, list) else []
        if operator == "contains":
            return any(naive_equal(element, wanted) for element in elements)
        return any(isinstance(e, str) and fold(e) == fold(wanted) for e in elements)
    if naive_sort(value) != naive_sort(wanted) or naive_sort(value) == "truth":
        return False
    return {
        "gt": value > wanted,
        "gte": value >= wanted,
        "lt": value < wanted,
        "lte": value <= wanted,
    }[operator]


def naive_matches(raw: dict[str, Any], thing: MemoryItem) -> bool:
    for key, value in raw.items():
        joint = key.strip("$").upper()
        if joint in ("AND", "OR", "NOT"):
            held = [naive_matches(member, thing) for member in value]
            held_as_wanted = {"AND": all(held), "OR": any(held), "NOT": not any(held)}[joint]
            if not held_as_wanted:
                return False
            continue
        found = naive_field(thing, key)
        if value == "*":
            holds = found is not None
        elif isinstance(value, list):
            holds = naive_operator(found, "in", value)
        elif isinstance(value, dict):
            holds = all(naive_operator(found, name, wanted) for name, wanted in value.items())
        else:
            holds = naive_operator(found, "eq", value)
        if not holds:
            return False
    return True


TRICKY = [
    "alice",
    "Bob",
    'a "quoted" \\ id',
    "x == 1 or true",
    "two\nlines",
    "🙂",
    "北京",
    "%_",
    "ß",
]
ids = st.sampled_from(TRICKY)
moments = st.integers(0, 3).map(lambda days: MOMENT + timedelta(days=days))
scalars = st.one_of(ids, st.integers(-2, 2), st.sampled_from([0.5, 1.0]), st.booleans(), st.none())
kinds = st.sampled_from([kind.value for kind in Kind])


def field_filters(values: st.SearchStrategy[Any], operators: tuple[str, ...]) -> Any:
    """Bare values, lists and operator dictionaries for one field."""
    known = values.filter(lambda value: value is not None)
    ordered = known.filter(lambda value: not isinstance(value, bool))
    by_operator = {
        "eq": values,
        "ne": values,
        "in": st.lists(values, max_size=3),
        "nin": st.lists(values, max_size=3),
        **dict.fromkeys(("gt", "gte", "lt", "lte"), ordered),
        "contains": known,
        "icontains": ids,
    }
    several = st.fixed_dictionaries(
        {}, optional={name: by_operator[name] for name in operators}
    ).filter(bool)
    return st.one_of(values, st.lists(values, max_size=3), several, st.just("*"))


EQUALITY = ("eq", "ne", "in", "nin")
ORDER = ("gt", "gte", "lt", "lte")
CONTAINS = ("contains", "icontains")
FIELDS = {
    "user_id": field_filters(ids, EQUALITY + ORDER + CONTAINS),
    "agent_id": field_filters(st.none() | ids, EQUALITY + ORDER + CONTAINS),
    "memory": field_filters(ids, EQUALITY + ORDER + CONTAINS),
    "kind": field_filters(kinds, EQUALITY + ORDER),
    "categories": field_filters(ids, EQUALITY + CONTAINS),
    "created_at": field_filters(moments, EQUALITY + ORDER),
    "valid_from": field_filters(st.none() | moments, EQUALITY + ORDER),
    "mark": field_filters(scalars, EQUALITY + ORDER + CONTAINS),
    "trip.city": field_filters(scalars, EQUALITY + ORDER + CONTAINS),
    "metadata.kind": field_filters(scalars, EQUALITY + ORDER + CONTAINS),
}
flat = st.fixed_dictionaries({}, optional=FIELDS).filter(bool)
filters = st.recursive(
    flat,
    lambda inner: st.dictionaries(
        st.sampled_from(["AND", "OR", "NOT", "$and", "$or", "$not", "and", "or", "not"]),
        st.lists(inner, min_size=1, max_size=3),
        min_size=1,
        max_size=2,
    ),
    max_leaves=5,
)
values_in_metadata = st.one_of(scalars, st.lists(scalars, max_size=2))
items = st.builds(
    item,
    text=ids,
    user_id=ids,
    agent_id=st.none() | ids,
    run_id=st.none() | ids,
    kind=st.sampled_from(Kind),
    categories=st.lists(ids, max_size=2).map(tuple),
    created_at=moments,
    valid_from=st.none() | moments,
    metadata=st.fixed_dictionaries(
        {},
        optional={
            "mark": values_in_metadata,
            "kind": values_in_metadata,
            "trip": st.one_of(scalars, st.dictionaries(st.just("city"), values_in_metadata)),
        },
    ),
)


@settings(max_examples=300, deadline=None)
@given(filters, items)
def test_a_filter_agrees_with_a_naive_evaluation(raw: dict[str, Any], thing: MemoryItem) -> None:
    assert parse_filter(raw).matches(thing) == naive_matches(raw, thing)


@settings(max_examples=150, deadline=None)
@given(filters, items)
def test_pinned_never_leaves_out_the_id_of_a_match(raw: dict[str, Any], thing: MemoryItem) -> None:
    parsed = parse_filter(raw)
    for name in SCOPE_FIELDS:
        allowed = parsed.pinned(name)
        if allowed is not None and parsed.matches(thing):
            assert getattr(thing.scope, name) in allowed


@pytest.mark.parametrize(
    ("raw", "pinned"),
    [
        ({"user_id": "a"}, {"a"}),
        ({"user_id": ["a", "b"]}, {"a", "b"}),
        ({"user_id": {"in": []}}, set()),
        ({"user_id": "*"}, None),
        ({"user_id": {"ne": "a"}}, None),
        ({"agent_id": {"in": ["a", None]}}, None),
        ({"AND": [{"user_id": ["a", "b"]}, {"user_id": ["b", "c"]}, {"city": "x"}]}, {"b"}),
        ({"user_id": "a", "AND": [{"user_id": "b"}]}, set()),
        ({"OR": [{"user_id": "a"}, {"user_id": "b", "city": "x"}]}, {"a", "b"}),
        ({"OR": [{"user_id": "a"}, {"city": "x"}]}, None),
        ({"NOT": [{"user_id": "a"}]}, None),
        ({}, None),
    ],
)
def test_pinned_by_hand(raw: dict[str, Any], pinned: set[str] | None) -> None:
    field = "agent_id" if "agent_id" in raw else "user_id"
    assert parse_filter(raw).pinned(field) == pinned


def test_moments_compare_in_every_form_and_zone() -> None:
    thing = item(created_at=MOMENT)  # 18:30 in UTC, 20:30 two hours further east
    east = timezone(timedelta(hours=2))
    for equal in (
        MOMENT,
        "2023-05-07T18:30:00",
        "2023-05-07T18:30:00Z",
        "2023-05-07 20:30:00+02:00",
        datetime(2023, 5, 7, 20, 30, tzinfo=east),
        datetime(2023, 5, 7, 18, 30),
    ):
        assert parse_filter({"created_at": {"gte": equal, "lte": equal}}).matches(thing)
        assert parse_filter({"created_at": equal}).matches(thing)
    assert parse_filter({"created_at": {"gt": date(2023, 5, 7)}}).matches(thing)
    assert not parse_filter({"created_at": {"lte": "2023-05-07"}}).matches(thing)
    naive = item(valid_from=datetime(2023, 5, 7, 18, 30))
    assert parse_filter({"valid_from": MOMENT}).matches(naive)


def test_truth_is_not_a_number_and_a_star_can_be_looked_for() -> None:
    thing = item(metadata={"on": True, "one": 1, "star": "*"})
    assert not parse_filter({"on": 1}).matches(thing)
    assert not parse_filter({"one": True}).matches(thing)
    assert parse_filter({"on": 1}) != parse_filter({"on": True})
    assert not parse_filter({"on": {"gt": 0}}).matches(thing)
    assert parse_filter({"one": 1.0}).matches(thing)
    assert parse_filter({"star": {"eq": "*"}}).matches(thing)
    assert not parse_filter({"one": {"eq": "*"}}).matches(thing)


def test_what_is_missing_differs_from_every_value() -> None:
    thing = item()
    for raw in ({"city": {"ne": "x"}}, {"city": {"nin": ["x"]}}, {"city": None}):
        assert parse_filter(raw).matches(thing)
    for raw in ({"city": "*"}, {"city": {"ne": None}}, {"city": {"lt": "x"}}, {"categories": "*"}):
        assert not parse_filter(raw).matches(thing)


def test_a_key_with_dots_goes_before_a_path() -> None:
    thing = item(metadata={"a.b": "key", "a": {"b": "path"}, "text": "mine"})
    assert parse_filter({"a.b": "key"}).matches(thing)
    assert parse_filter({"metadata.text": "mine"}).matches(thing)
    assert not parse_filter({"text": "mine"}).matches(thing)


def test_metadata_too_large_for_a_float_is_a_number_like_any_other() -> None:
    assert parse_filter({"n": {"gt": 1.5}}).matches(item(metadata={"n": 10**400}))
    assert parse_filter({"n": {"lt": 10**400}}).matches(item(metadata={"n": 1.5}))


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ("user_id == 'a'", "dictionary"),
        ({1: "a"}, "field name"),
        ({"city": {"like": "x"}}, "unknown operator 'like'"),
        ({"city": {}}, "empty"),
        ({"city": {"in": "abc"}}, "takes a list"),
        ({"city": {"gt": {"a": 1}}}, "never {'a': 1}"),
        ({"city": {"gt": None}}, "gt in the filter on 'city'"),
        ({"city": {"lt": True}}, "takes a text, a number"),
        ({"city": {"eq": ["a"]}}, "never ['a']"),
        ({"city": {"contains": None}}, "takes a text"),
        ({"city": {"icontains": 3}}, "takes a text"),
        ({"city": float("nan")}, "never nan"),
        ({"city": MOMENT}, "never datetime"),
        ({"metadata": {"city": "x"}}, "one metadata field at a time"),
        ({"user_id": 7}, "holds an id"),
        ({"user_id": " "}, "must not be empty"),
        ({"kind": "dream"}, "no kind 'dream', only core, episodic, semantic, procedural"),
        ({"categories": {"gt": "a"}}, "neither greater"),
        ({"created_at": "yesterday"}, "ISO 8601"),
        ({"created_at": 5}, "a moment"),
        ({"created_at": {"contains": "2023"}}, "gt, gte, lt or lte"),
        ({"OR": []}, "one or more conditions"),
        ({"NOT": [{}]}, "one or more conditions"),
        ({"AND": "x"}, "one or more conditions"),
        ({"AND": ["x"]}, "dictionary"),
    ],
)
def test_what_can_never_be_right_is_refused_in_a_sentence(raw: Any, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_filter(raw)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def nested(depth: int) -> dict[str, Any]:
    raw: dict[str, Any] = {"city": "x"}
    for _ in range(depth):
        raw = {"NOT": raw}
    return raw


def test_nesting_has_a_limit() -> None:
    assert parse_filter(nested(50)).matches(item(metadata={"city": "x"}))
    assert not parse_filter(nested(49)).matches(item(metadata={"city": "x"}))
    with pytest.raises(BadInput, match="50 levels"):
        parse_filter(nested(51))
    endless: dict[str, Any] = {}
    endless["AND"] = [endless]
    with pytest.raises(BadInput, match="50 levels"):
        parse_filter(endless)


def test_equal_filters_can_be_cached_by() -> None:
    raw = {"user_id": "a", "OR": [{"city": "x"}, {"n": {"gte": 2}}]}
    assert {parse_filter(raw): 1}[parse_filter(dict(raw))] == 1
    assert parse_filter({"city": "x"}) == parse_filter({"metadata.city": {"eq": "x"}})
    assert parse_filter({"n": 1}) != parse_filter({"n": 2})


def test_mentions() -> None:
    raw = {"OR": [{"NOT": [{"user_id": "a"}]}, {"memory": {"contains": "x"}}]}
    assert parse_filter(raw).mentions("user_id")
    assert parse_filter(raw).mentions("text")
    assert not parse_filter(raw).mentions("agent_id")


def test_scope_filter_takes_both_forms_together() -> None:
    thing = item(user_id="alice", agent_id="planner", metadata={"city": "x"})
    assert scope_filter("alice").matches(thing)
    assert scope_filter(filters={"user_id": "alice"}) == scope_filter(user_id="alice")
    both = scope_filter(agent_id="planner", filters={"user_id": "alice", "city": "x"})
    assert both.matches(thing)
    assert both.pinned("agent_id") == {"planner"}
    assert both.pinned("user_id") == {"alice"}
    torn = scope_filter(user_id="bob", filters={"user_id": "alice"})
    assert torn.pinned("user_id") == set()
    assert not torn.matches(thing)


@pytest.mark.parametrize("raw", [None, {}, {"city": "x"}, {"NOT": [{"city": "x"}]}])
def test_a_query_that_names_nobody_is_refused(raw: dict[str, Any] | None) -> None:
    with pytest.raises(BadInput, match="Say whose memory is meant"):
        scope_filter(filters=raw)
    with pytest.raises(BadInput, match="user_id must not be empty"):
        scope_filter(user_id="", filters=raw)


def test_is_owner_only_where_every_item_of_the_owner_matches() -> None:
    assert scope_filter("alice").is_owner("user:alice")
    assert scope_filter(agent_id="a").is_owner("agent:a")
    assert not scope_filter("alice").is_owner("user:bob")
    # Items of Alice's may be by any agent, so the agent's filter must still be asked.
    assert not scope_filter(agent_id="a").is_owner("user:alice")
    assert not scope_filter("alice", agent_id="a").is_owner("user:alice")
    assert not scope_filter("alice", filters={"city": "x"}).is_owner("user:alice")
    assert not scope_filter(filters={"user_id": ["alice", "bob"]}).is_owner("user:alice")
    assert not parse_filter({"agent_id": None}).is_owner("user:alice")
    assert not parse_filter({"NOT": [{"user_id": "alice"}]}).is_owner("user:alice")


def test_an_assistants_turns_are_found_under_a_run(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="e5") as memory:
        said = [
            {"role": "user", "content": "I want pizza tonight."},
            {"role": "assistant", "content": "I recommend Regina in the North End for pizza."},
        ]
        memory.add(said, user_id="ann", run_id="one")
        memory.add("I like pizza with ham.", user_id="ann", run_id="two")
        found = memory.search("Which pizza place?", user_id="ann", run_id="one", turns=5)["turns"]
        assert "assistant" in {turn["speaker"] for turn in found}
        assert not any("ham" in turn["text"] for turn in found)


def test_an_assistants_turns_are_found_by_their_metadata(tmp_path: Path) -> None:
    """No memory need come from them: the metadata of the call is theirs too."""
    with Memory.open(tmp_path, env_file=None) as memory:
        for trip, said in (("rome", "I booked the Quirinale for you."), ("oslo", "Take the tram.")):
            memory.add(
                [
                    {"role": "user", "content": "Where do I stay?"},
                    {"role": "assistant", "content": said},
                ],
                user_id="u",
                metadata={"trip": trip},
                infer=True,
            )
        memory.add([{"role": "assistant", "content": "I booked the Savoy."}], user_id="u")

        def found(filters: dict[str, object]) -> set[str]:
            got = memory.search("booked hotel", user_id="u", filters=filters, turns=10)
            return {turn["text"] for turn in got["turns"]}

        assert "I booked the Quirinale for you." in found({"trip": "rome"})
        assert found({"trip": "rome"}).isdisjoint({"Take the tram.", "I booked the Savoy."})
        assert "I booked the Savoy." in found({"NOT": [{"trip": "*"}]})
    with Memory.open(tmp_path, env_file=None) as memory:  # it is in the journal
        assert "I booked the Quirinale for you." in found({"trip": "rome"})
