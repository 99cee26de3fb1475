"""A memory whose journal is in PostgreSQL; MEMOGRAD_TEST_POSTGRES is the URL of a test database.

The tables of that database are dropped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from memograd.memory import Memory

URL = os.environ.get("MEMOGRAD_TEST_POSTGRES")
pytestmark = pytest.mark.skipif(not URL, reason="MEMOGRAD_TEST_POSTGRES names no database")


@pytest.fixture
def opened(tmp_path: Path, trigrams: Callable[[], Any]) -> Iterator[Callable[[], Memory]]:
    assert URL is not None
    engine = create_engine(URL)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE; CREATE SCHEMA public"))
    engine.dispose()
    memories: list[Memory] = []

    def open_memory() -> Memory:
        memories.append(Memory.open(tmp_path, embedder=trigrams(), journal_url=URL, env_file=None))
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
