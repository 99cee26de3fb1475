"""A memory whose journal is in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memograd.memory import Memory


@pytest.fixture
def opened(
    tmp_path: Path, trigrams: Callable[[], Any], postgres_url: str
) -> Iterator[Callable[[], Memory]]:
    memories: list[Memory] = []

    def open_memory() -> Memory:
        memories.append(Memory.open(tmp_path, embedder=trigrams(), journal_url=postgres_url))
        return memories[-1]

    yield open_memory
    for memory in memories:
        memory.close()


def test_two_memories_share_one_journal(opened: Callable[[], Memory]) -> None:
    first, second = opened(), opened()
    first.add("I live in Boston.", user_id="alice")
    [item] = second.get_all(user_id="alice")["results"]
    second.add("I live in Denver now.", user_id="alice")
    assert "Denver" in first.search("Where?", user_id="alice")["results"][0]["memory"]
    assert [line["event"] for line in first.history(item["id"])] == ["ADD", "UPDATE"]
    second.purge(item["id"])
    assert first.get_all(user_id="alice")["results"] == []
    assert first.add('我住在 "北京" \\ 🦊', user_id="alice", infer=False)["results"]
    assert second.delete_all(user_id="alice")["deleted"] == 1
