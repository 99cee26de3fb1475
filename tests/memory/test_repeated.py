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
