"""`LangGraphStore` beside LangGraph's own `InMemoryStore`."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="needs the extra langgraph")

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from memograd.errors import BadInput
from memograd.integrations.langgraph import LangGraphStore
from memograd.memory import Memory

USERS = (f"user-{number}" for number in itertools.count())


class Reference(InMemoryStore):
    """LangGraph's own, which also lists namespaces that hold nothing (any more); ours does not."""

    def _handle_list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        for namespace in [name for name, held in self._data.items() if not held]:
            del self._data[namespace]
        return super()._handle_list_namespaces(op)


labels = st.sampled_from(["a", "b", "用户", "*"])
namespaces = st.lists(labels, min_size=1, max_size=3).map(tuple)
prefixes = st.lists(labels, max_size=2).map(tuple)
keys = st.sampled_from(["1", "2", "钥"])
numbers = st.integers(-3, 3) | st.sampled_from([0.5, 2.0])
scalars = numbers | st.booleans() | st.none() | st.sampled_from(["x", "茶", ""])
values = st.fixed_dictionaries(
    {},
    optional={
        "n": numbers,
        "s": scalars,
        "list": st.lists(scalars, max_size=2),
        "in": st.fixed_dictionaries({}, optional={"n": numbers, "s": scalars}),
    },
)
bounds = st.dictionaries(
    st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), numbers, min_size=1, max_size=2
)
wanted = st.fixed_dictionaries(
    {},
    optional={
        "n": numbers | bounds,
        "s": scalars,
        "list": st.lists(scalars, max_size=2),
        "in": st.fixed_dictionaries({}, optional={"n": numbers | bounds, "s": scalars}),
    },
)
conditions = st.builds(
    MatchCondition, match_type=st.sampled_from(["prefix", "suffix"]), path=namespaces
)
operations = st.one_of(
    st.builds(GetOp, namespaces, keys),
    st.builds(PutOp, namespaces, keys, values | st.none()),
    st.builds(SearchOp, prefixes, wanted | st.none(), limit=st.just(100)),
    st.builds(
        ListNamespacesOp,
        match_conditions=st.lists(conditions, max_size=2).map(tuple) | st.none(),
        max_depth=st.integers(1, 3) | st.none(),
        limit=st.integers(0, 5),
        offset=st.integers(0, 2),
    ),
)


def plain(result: Any) -> Any:
    """A result without its times; a search's without its order, which no store promises."""
    if isinstance(result, list):
        if result and isinstance(result[0], tuple):
            return result
        return sorted((one.namespace, one.key, repr(one.value)) for one in result)
    return None if result is None else (result.namespace, result.key, result.value)


@settings(max_examples=30)
@given(batches=st.lists(st.lists(operations, max_size=5), max_size=12))
def test_the_same_calls_give_the_same_results(memory: Memory, batches: Any) -> None:
    ours, theirs = LangGraphStore(memory, user_id=next(USERS)), Reference()
    for number, batch in enumerate(batches):
        try:
            expected = theirs.batch(batch)
        except (TypeError, ValueError):  # a number was asked of what is none: ours finds nothing
            ours.batch([op for op in batch if not isinstance(op, PutOp)])
            continue
        found = asyncio.run(ours.abatch(batch)) if number % 4 == 3 else ours.batch(batch)
        assert list(map(plain, found)) == list(map(plain, expected))


def test_pages_of_a_search_hold_everything_once(memory: Memory) -> None:
    store = LangGraphStore(memory, user_id=next(USERS))
    for number in range(7):
        store.put(("notes",), str(number), {"n": number, "text": f"note {number}"})
    for query in (None, "note"):
        pages = [store.search(("notes",), query=query, limit=3, offset=at) for at in (0, 3, 6)]
        assert [len(page) for page in pages] == [3, 3, 1]
        assert {hit.key for page in pages for hit in page} == set(map(str, range(7)))


def test_a_query_finds_in_both_languages(memory: Memory) -> None:
    store = LangGraphStore(memory, user_id=next(USERS))
    store.put(("memories", "likes"), "food", {"text": "我喜欢吃四川火锅"})
    store.put(("memories", "likes"), "sport", {"text": "The user plays tennis on Sundays"})
    store.put(("other",), "sport", {"text": "tennis tennis tennis"})
    store.put(("memories",), "hidden", {"text": "tennis"}, index=False)
    best = store.search(("memories",), query="四川火锅")[0]
    assert (best.key, best.namespace) == ("food", ("memories", "likes")) and best.score is not None
    found = store.search(("memories",), query="tennis")
    assert found[0].key == "sport" and ("other",) not in {hit.namespace for hit in found}
    assert (found[-1].key, found[-1].score) == ("hidden", None)
    only = store.search(("memories",), query="tennis", filter={"text": {"$ne": "tennis"}}, limit=1)
    assert [hit.key for hit in only] == ["sport"]


def test_fields_say_what_is_searched(memory: Memory) -> None:
    user = next(USERS)
    store = LangGraphStore(memory, user_id=user, fields=["text"])
    store.put(("n",), "1", {"text": "tea", "secret": "coffee"})
    store.put(("n",), "2", {"text": "tea", "secret": "coffee"}, index=["secret"])
    assert [one["memory"] for one in memory.get_all(user_id=user)["results"]] == ["tea", "coffee"]


def test_documents_are_memories_of_their_owner(memory: Memory) -> None:
    user = next(USERS)
    store, other = LangGraphStore(memory, user_id=user), LangGraphStore(memory, user_id=next(USERS))
    store.put(("n",), "1", {"text": "我住在上海"})
    store.put(("n",), "1", {"text": "我住在北京"})
    (found,) = memory.search("北京", user_id=user)["results"]
    assert found["memory"] == "我住在北京" and found["metadata"]["value"] == {"text": "我住在北京"}
    assert [one["event"] for one in memory.history(found["id"])] == ["ADD", "UPDATE"]
    kept = store.get(("n",), "1")
    assert kept is not None and kept.updated_at > kept.created_at
    assert other.get(("n",), "1") is None and other.search(()) == []
    assert other.list_namespaces() == []
    memory.purge(user_id=user)
    assert store.get(("n",), "1") is None


def test_writers_beside_each_other_lose_nothing(make_memory: Any, tmp_path: Any) -> None:
    stores = [LangGraphStore(make_memory(tmp_path), user_id="u") for _ in range(2)]

    def write(store: LangGraphStore, who: int) -> None:
        for number in range(10):
            store.batch([PutOp(("n",), f"{who}-{number}", {}), PutOp(("n",), "same", {"by": who})])

    threads = [
        threading.Thread(target=write, args=pair) for pair in zip(stores, (0, 1), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        assert len(store.search((), limit=100)) == 21


def test_bad_input(memory: Memory) -> None:
    store = LangGraphStore(memory, user_id=next(USERS))
    for namespace in ((), ("a.b",), ("",), ("langgraph",)):
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {})
    with pytest.raises(NotImplementedError):
        store.put(("a",), "k", {}, ttl=1)
    with pytest.raises(ValueError, match="Unsupported operator"):
        store.batch([PutOp(("a",), "k", {"n": 1})])
        store.search((), filter={"n": {"$almost": 1}})
    with pytest.raises(ValueError, match="Unknown operation"):
        store.batch(["get"])  # type: ignore[list-item]
    with pytest.raises(BadInput):
        LangGraphStore(memory)
