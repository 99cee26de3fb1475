"""Beyond what states should hold, with the limit turned down: the same answers, from Milvus."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import MemogradError
from memograd.memory import Memory
from memograd.memory.search import reach


@pytest.fixture
def folder(tmp_path: Path, trigrams: Callable[[], Any]) -> Path:
    with Memory.open(tmp_path, embedder=trigrams(), env_file=None) as memory:
        for user in ("alice", "bob", "小红"):
            for word in ("tea", "bread", "绿茶", 'a "quote"'):
                memory.add(
                    f"{user} likes {word}", user_id=user, agent_id="planner", infer=False,
                    metadata={"word": word},
                )  # fmt: skip
    return tmp_path


@pytest.fixture
def memory(
    folder: Path, trigrams: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Memory]:
    monkeypatch.setattr(reach, "STATE_ITEMS_WITHOUT_SERVER", 2)
    with Memory.open(folder, embedder=trigrams(), env_file=None) as opened:
        yield opened


def texts(result: dict[str, Any]) -> list[str]:
    return [item["memory"] for item in result["results"]]


def test_the_index_answers_as_the_states_do(
    memory: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = [
        {"user_id": "alice"},
        {"agent_id": "planner"},
        {"filters": {"user_id": "*", "word": {"in": ["tea", 'a "quote"']}}},
        {"filters": {"OR": [{"user_id": "bob"}, {"user_id": "小红"}]}},
    ]
    from_index = [memory.search("likes tea", top_k=20, mode="dense", **one) for one in asked]
    assert (folder / "index.db").is_dir()
    monkeypatch.setattr(reach, "STATE_ITEMS_WITHOUT_SERVER", 1_000)
    from_states = [memory.search("likes tea", top_k=20, mode="dense", **one) for one in asked]
    assert from_index == from_states
    assert [len(result["results"]) for result in from_index] == [4, 12, 6, 8]


def test_it_sees_what_was_just_written(memory: Memory) -> None:
    assert len(texts(memory.search("likes", agent_id="planner"))) == 12
    [added] = memory.add("carol likes tea", user_id="carol", agent_id="planner", infer=False)[
        "results"
    ]
    assert "carol likes tea" in texts(memory.search("likes tea", agent_id="planner"))
    memory.delete(added["id"])
    assert "carol likes tea" not in texts(memory.search("likes tea", agent_id="planner"))


def test_the_turns_behind_come_too(memory: Memory) -> None:
    memory.add("I adopted a parrot called Rex.", user_id="alice", timestamp="2024-05-07")
    found = memory.search("parrot called Rex", user_id="alice", turns=2)
    assert "Rex" in texts(found)[0]
    assert found["turns"][0]["text"] == "I adopted a parrot called Rex."


def test_what_is_purged_leaves_its_files(memory: Memory, folder: Path) -> None:
    hits = memory.search("绿茶", agent_id="planner", mode="lexical")["results"]
    assert len(hits) == 3
    for hit in hits:
        memory.purge(hit["id"])
    assert memory.search("绿茶", agent_id="planner", mode="lexical")["results"] == []


def test_a_second_process_answers_from_the_states_and_says_so(
    memory: Memory,
    folder: Path,
    trigrams: Callable[[], Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory.search("likes", agent_id="planner")  # this one holds the index now
    with Memory.open(folder, embedder=trigrams(), env_file=None) as second:
        with caplog.at_level(logging.WARNING, logger="memograd"):
            found = second.search("likes", agent_id="planner")
        assert len(texts(found)) == 12
        assert "Answering without the index" in caplog.text
        [hit] = second.search("bread", user_id="bob", top_k=1)["results"]
        with pytest.raises(MemogradError, match="memograd memory reindex"):
            second.purge(hit["id"])
