"""A named call (`request_id`) is written once, however often it is made."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import BadInput
from memograd.memory import Memory


@pytest.fixture
def memory(tmp_path: Path, trigrams: Any) -> Any:
    with Memory.open(tmp_path, embedder=trigrams(), ranking="fusion") as opened:
        yield opened


@pytest.mark.parametrize("infer", [True, False])
def test_the_second_call_writes_nothing_and_answers_the_same(memory: Memory, infer: bool) -> None:
    said = [{"role": "user", "content": "I moved to Boston in May. 我喜欢喝茶。"}]
    first = memory.add(said, user_id="alice", infer=infer, request_id="r1")
    memory.add("I like red tea.", user_id="alice", request_id="r2")
    before = memory.store.journal.last_seq()
    assert first["results"]
    assert memory.add(said, user_id="alice", infer=infer, request_id="r1") == first
    assert memory.store.journal.last_seq() == before
    assert memory.add(said, user_id="bob", infer=infer, request_id="r1") != first


def test_other_messages_under_the_same_name_are_refused(memory: Memory) -> None:
    memory.add("I moved to Boston.", user_id="alice", request_id="r1")
    with pytest.raises(BadInput, match="used for other messages"):
        memory.add("I moved to Denver.", user_id="alice", request_id="r1")


@pytest.mark.parametrize("ids", [{"run_id": "r1"}, {"agent_id": "planner"}])
def test_other_ids_under_the_same_name_are_refused(memory: Memory, ids: dict[str, str]) -> None:
    """They would seem to be written there, and are not."""
    memory.add("I moved to Boston.", user_id="alice", request_id="r1")
    with pytest.raises(BadInput, match="under other ids"):
        memory.add("I moved to Boston.", user_id="alice", **ids, request_id="r1")


@pytest.mark.parametrize(
    "other",
    [
        {"metadata": {"a": 2, "b": [1]}},
        {"metadata": None},
        {"infer": False},
        {"kind": "core"},
        {"categories": ["home"]},
        {"expiration_date": "2030-01-02"},
        {"timestamp": "2024-05-08"},
        {"timestamp": None},
        {"messages": [{"role": "user", "content": "I moved to Boston."}] * 2},
        {"messages": [{"role": "user", "content": "I moved to Boston.", "name": "Ann"}]},
    ],
)
def test_other_parts_under_the_same_name_are_refused(memory: Memory, other: dict[str, Any]) -> None:
    call: dict[str, Any] = {
        "messages": [{"role": "user", "content": "I moved to Boston."}],
        "metadata": {"a": 1, "b": [1]},
        "expiration_date": "2030-01-01",
        "timestamp": "2024-05-07",
        "user_id": "alice",
        "request_id": "r1",
    }
    first = memory.add(**call)
    assert memory.add(**{**call, "metadata": {"b": (1,), "a": 1}}) == first
    before = memory.store.journal.last_seq()
    with pytest.raises(BadInput, match="This request_id"):
        memory.add(**{**call, **other})
    assert memory.store.journal.last_seq() == before


def test_fewer_messages_under_the_same_name_are_refused(memory: Memory) -> None:
    said = [{"role": "user", "content": text} for text in ("I moved to Boston.", "I like tea.")]
    memory.add(said, user_id="alice", request_id="r1")
    with pytest.raises(BadInput, match="other parts"):
        memory.add(said[:1], user_id="alice", request_id="r1")


def test_another_prompt_under_the_same_name_is_refused(memory: Memory) -> None:
    with pytest.warns(UserWarning, match="prompt changes nothing"):
        memory.add("I like tea.", user_id="alice", request_id="r1", prompt="Be brief.")
    with pytest.raises(BadInput, match="other parts"):
        memory.add("I like tea.", user_id="alice", request_id="r1")


@pytest.mark.parametrize("entries", [["I like tea."], ["I like tea.", "I like red.", "I ski."]])
def test_a_named_batch_is_one_call(memory: Memory, entries: list[str]) -> None:
    """What it was asked to write is all or it is another batch."""
    batch = ["I like tea.", "I like red."]
    first = memory.add_many(batch, user_id="alice", infer=False, request_id="r1")
    assert memory.add_many(batch, user_id="alice", infer=False, request_id="r1") == first
    with pytest.raises(BadInput, match="other parts"):
        memory.add_many(entries, user_id="alice", infer=False, request_id="r1")
    assert len(memory.get_all(user_id="alice")["results"]) == 2
    with pytest.raises(BadInput, match="not both"):
        memory.add_many([{"messages": "x", "request_id": "r2"}], user_id="a", request_id="r1")


def test_a_named_batch_that_was_cut_is_finished(memory: Memory) -> None:
    """As by a crash behind its first entry."""
    batch = ["I like tea.", "I like red."]

    def crash(done: int, _: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.add_many(batch, user_id="alice", request_id="r1", progress=crash)
    assert len(memory.get_all(user_id="alice")["results"]) == 1
    made = memory.add_many(batch, user_id="alice", request_id="r1")
    assert [len(one["results"]) for one in made["results"]] == [1, 1]
    assert len(memory.get_all(user_id="alice")["results"]) == 2


def test_a_name_is_known_where_an_export_was_imported(
    memory: Memory, tmp_path: Path, trigrams: Any
) -> None:
    call: dict[str, Any] = {"messages": "I like tea.", "user_id": "alice", "request_id": "r1"}
    first = memory.add(**call, metadata={"a": 1})
    memory.export(tmp_path / "out.jsonl")
    with Memory.open(tmp_path / "other", embedder=trigrams(), ranking="fusion") as other:
        other.import_(tmp_path / "out.jsonl")
        assert other.add(**call, metadata={"a": 1}) == first
        with pytest.raises(BadInput, match="other parts"):
            other.add(**call)


def test_what_was_purged_does_not_come_back(memory: Memory) -> None:
    memory.add("I moved to Boston.", user_id="alice", request_id="r1")
    memory.purge(user_id="alice")
    assert memory.add("I moved to Boston.", user_id="alice", request_id="r1") == {"results": []}
    assert memory.get_all(user_id="alice")["results"] == []


def test_calls_at_the_same_time_write_once(tmp_path: Path, trigrams: Any) -> None:
    opened = [Memory.open(tmp_path, embedder=trigrams(), ranking="fusion") for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        made = [
            pool.submit(
                opened[n % 4].add,
                f"I like tea {n // 8}.",
                user_id="alice",
                infer=False,
                request_id=f"r{n // 8}",
            )
            for n in range(64)
        ]
        answers = [one.result()["results"][0]["id"] for one in made]
    assert len(set(answers)) == 8
    assert len(opened[0].get_all(user_id="alice")["results"]) == 8
    for one in opened:
        one.close()


@pytest.mark.parametrize("name", ["", " ", "a\0b", "x" * 300])
def test_bad_names_are_refused(memory: Memory, name: str) -> None:
    with pytest.raises(BadInput, match="request_id"):
        memory.add("I moved to Boston.", user_id="alice", request_id=name)
