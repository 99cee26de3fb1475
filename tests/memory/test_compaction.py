"""Compacting: what merges, what leaves first, what always stays, and that it can be taken back."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.memory import Memory
from memograd.memory.language import estimate_tokens
from memograd.memory.manager.trained.files import save_head

TEXTS = [
    "I live in Boston.",
    "I live in Boston",
    "I live in Denver.",
    "My cat is called Tom.",
    "I like green tea.",
    "I like green tea very much, above all in the morning.",
    "我住在北京。",
    "我喜欢绿茶。",
]
ITEMS = st.lists(
    st.tuples(
        st.sampled_from(TEXTS),
        st.sampled_from(["alice", "bob"]),
        st.sampled_from([None, "r1"]),
        st.sampled_from(["core", "episodic", "semantic"]),
    ),
    min_size=1,
    max_size=9,
)


@contextmanager
def opened(embedder: Any, head: Any = None) -> Iterator[Memory]:
    with tempfile.TemporaryDirectory() as folder:
        given: dict[str, Any] = {}
        if head is not None:
            save_head(head, Path(folder) / "head")
            given = {"policy": Path(folder) / "head"}
        with Memory.open(Path(folder) / "m", embedder=embedder, env_file=None, **given) as memory:
            yield memory


def items_of(memory: Memory, user: str) -> dict[str, Any]:
    return {item["id"]: item for item in memory.get_all(user_id=user)["results"]}


def stored(memory: Memory, owner: str) -> set[Any]:
    return {str(item) for item in memory.store.states.current(owner).items}


def add(memory: Memory, text: str, kind: str = "semantic", **more: Any) -> str:
    [added] = memory.add(text, user_id="alice", kind=kind, infer=False, **more)["results"]
    return str(added["id"])


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(items=ITEMS, budget=st.integers(0, 60), seed=st.none() | st.integers(0, 5))
def test_compacting_keeps_the_budget_and_undoing_gives_the_same_items(
    trigrams: Callable[[], Any],
    make_head: Callable[..., Any],
    items: list[tuple[str, str, str | None, str]],
    budget: int,
    seed: int | None,
) -> None:
    with opened(trigrams(), None if seed is None else make_head(seed=seed)) as memory:
        for number, (text, user, run, kind) in enumerate(items):
            tag = {"number": number}
            memory.add(text, user_id=user, run_id=run, kind=kind, metadata=tag, infer=False)
        before, others = items_of(memory, "alice"), items_of(memory, "bob")
        whole = stored(memory, "user:alice")
        core = {id for id, item in before.items() if item["kind"] == "core"}
        least = sum(estimate_tokens(before[id]["memory"]) for id in core)
        if least > budget:
            with pytest.raises(BadInput, match=f"have {least} tokens"):
                memory.compact(budget, user_id="alice")
            assert items_of(memory, "alice") == before
            return
        report = memory.compact(budget, user_id="alice")
        after = items_of(memory, "alice")
        tokens = sum(estimate_tokens(item["memory"]) for item in after.values())
        assert tokens == report["tokens"]["after"] <= budget
        assert core <= set(after) <= set(before)
        assert report["merged"] + report["retired"] == len(before) - len(after)
        assert report["items"] == {"before": len(before), "after": len(after)}
        assert items_of(memory, "bob") == others
        sources = {id: item["memory"] for id, item in after.items()}
        assert sources == {id: before[id]["memory"] for id in after}
        marked = memory.store.journal.of_reason(f"compact {report['batch_id']}:")
        assert {event.actor for event in marked} <= {
            "rules" if seed is None else memory.manager.actor
        }
        assert {event.scope.owner for event in marked} <= {"user:alice"}
        assume(marked)
        undone = memory.undo_compact(report["batch_id"])
        assert undone == {"restored": len(before) - len(after)}
        assert items_of(memory, "alice") == before
        assert stored(memory, "user:alice") == whole
        with pytest.raises(BadInput, match="left to undo"):
            memory.undo_compact(report["batch_id"])


def test_rules_merge_what_says_the_same_and_let_events_go_first(
    trigrams: Callable[[], Any],
) -> None:
    with opened(trigrams()) as memory:
        first = add(memory, "I live in Boston.", metadata={"a": 1}, categories=["home"])
        again = add(memory, "I live in Boston", metadata={"b": 2})
        old = add(memory, "I went to the dentist.", "episodic", timestamp="2020-01-01")
        new = add(memory, "I met Ann at the fair.", "episodic", timestamp="2024-01-01")
        tea = add(memory, "I like green tea.", timestamp="2001-01-01")
        core = add(memory, "Call me Al.", "core", timestamp="2000-01-01")
        report = memory.compact(1_000, user_id="alice")
        assert (report["merged"], report["retired"]) == (1, 0)
        standing = memory.get(first)
        assert standing is not None and memory.get(again) is None
        assert (standing["metadata"], standing["categories"]) == ({"a": 1, "b": 2}, ["home"])
        [last] = [line for line in memory.history(again) if line["event"] == "DELETE"]
        assert last["reason"] == f"compact {report['batch_id']}: said again by {first}"
        left = list(items_of(memory, "alice"))
        for gone in (old, new, tea):
            living = items_of(memory, "alice")
            tokens = sum(estimate_tokens(living[id]["memory"]) for id in left)
            memory.compact(tokens - 1, user_id="alice")
            left.remove(gone)
            assert set(items_of(memory, "alice")) == set(left)
        assert set(left) == {first, core}


def test_sources_of_merged_items_go_to_the_one_that_stays(trigrams: Callable[[], Any]) -> None:
    with opened(trigrams()) as memory:
        first, again = add(memory, "I live in Boston."), add(memory, "I live in Boston")
        turns = [memory.store.item(one).sources for one in (first, again)]  # type: ignore[union-attr]
        memory.compact(1_000, user_id="alice")
        assert memory.store.item(first).sources == (*turns[0], *turns[1])  # type: ignore[union-attr]


def test_a_policy_says_what_is_out_of_date(
    trigrams: Callable[[], Any], make_head: Callable[..., Any]
) -> None:
    with opened(trigrams(), make_head(update=5.0)) as memory:
        ids = [add(memory, text) for text in ("I live in Boston.", "I live in Rome.", "A cat.")]
        report = memory.compact(1_000, user_id="alice")
        assert (report["merged"], list(items_of(memory, "alice"))) == (2, ids[-1:])
        reasons = [memory.history(gone)[-1]["reason"] for gone in ids[:2]]
        assert all(reason.endswith(f"said again by {ids[-1]}") for reason in reasons)


def test_a_policy_that_would_write_nothing_loses_nothing_before_the_budget(
    trigrams: Callable[[], Any], make_head: Callable[..., Any]
) -> None:
    with opened(trigrams(), make_head(none=5.0)) as memory:
        ids = [add(memory, text) for text in ("I live in Boston.", "I have a cat.")]
        report = memory.compact(1_000, user_id="alice")
        assert (report["merged"], report["retired"]) == (0, 0)
        memory.compact(estimate_tokens("I have a cat."), user_id="alice")
        assert list(items_of(memory, "alice")) == ids[1:]  # of equal ones the older leaves


def test_scopes_do_not_merge(trigrams: Callable[[], Any]) -> None:
    with opened(trigrams()) as memory:
        filed: list[dict[str, Any]] = [{}, {"run_id": "r"}, {"agent_id": "a"}]
        for ids in filed:
            memory.add("I live in Boston.", user_id="alice", infer=False, **ids)
        memory.add("I live in Boston.", agent_id="a", infer=False)
        assert memory.compact(1_000, user_id="alice")["merged"] == 0
        assert memory.compact(0, user_id="alice", run_id="r")["items"] == {"before": 1, "after": 0}
        assert len(items_of(memory, "alice")) == 2
        assert memory.compact(0, agent_id="a")["items"] == {"before": 1, "after": 0}
        assert len(items_of(memory, "alice")) == 2


def test_what_changed_since_stays_as_it_is(trigrams: Callable[[], Any], tmp_path: Path) -> None:
    with opened(trigrams()) as memory:
        first, again = add(memory, "I live in Boston."), add(memory, "I live in Boston")
        gone = add(memory, "I went to the dentist.", "episodic")
        batch = memory.compact(estimate_tokens("I live in Boston."), user_id="alice")["batch_id"]
        memory.update(first, "I live in Rome.")
        memory.purge(gone)
        assert memory.undo_compact(batch) == {"restored": 1}
        left = {id: item["memory"] for id, item in items_of(memory, "alice").items()}
        assert left == {first: "I live in Rome.", again: "I live in Boston"}


def test_what_was_compacted_is_found_again_in_the_past_and_in_a_copy(
    trigrams: Callable[[], Any], tmp_path: Path
) -> None:
    with opened(trigrams()) as memory, opened(trigrams()) as copy:
        add(memory, "I live in Boston.")
        moment = memory.store.journal.tail("user:alice")[-1].recorded_at
        batch = memory.compact(0, user_id="alice")["batch_id"]
        assert items_of(memory, "alice") == {}
        assert len(memory.get_all(user_id="alice", as_of=moment)["results"]) == 1
        memory.undo_compact(batch)
        [hit] = memory.search("Boston", user_id="alice")["results"]
        memory.export(tmp_path / "all.jsonl")
        copy.import_(tmp_path / "all.jsonl")
        assert list(items_of(copy, "alice")) == [hit["id"]]


@pytest.mark.parametrize("batch", ["", "absent", "%", "0123456789ab"])
def test_an_unknown_compaction_is_refused(trigrams: Callable[[], Any], batch: str) -> None:
    with opened(trigrams()) as memory:
        add(memory, "I live in Boston.")
        memory.compact(0, user_id="alice")
        with pytest.raises(BadInput, match="There was no compaction"):
            memory.undo_compact(batch)
        with pytest.raises(BadInput, match="budget must be a whole number"):
            memory.compact(-1, user_id="alice")


def test_undoing_does_not_bring_back_what_was_deleted_since(trigrams: Callable[[], Any]) -> None:
    with opened(trigrams()) as memory:
        first = add(memory, "I live in Boston.")
        add(memory, "I live in Boston")
        gone = add(memory, "I went to the dentist.", "episodic")
        batch = memory.compact(estimate_tokens("I live in Boston."), user_id="alice")["batch_id"]
        memory.delete(first)
        assert memory.undo_compact(batch) == {"restored": 1}
        assert list(items_of(memory, "alice")) == [gone]
