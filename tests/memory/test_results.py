from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memograd.memory import Memory, Scope
from memograd.memory.results import operation_result


def test_every_result_is_json_as_it_stands(tmp_path: Path, trigrams: Callable[[], Any]) -> None:
    with Memory.open(tmp_path, embedder=trigrams(), env_file=None) as memory:
        alice = Scope("alice", run_id="r1")
        events = [
            event
            for said in ("I live in Boston.", "I live in Boston.", "I live in Denver now.")
            for event in memory.learn(said, scope=alice)
        ]
        operations = [operation_result(event) for event in events]
        assert [operation["event"] for operation in operations] == ["ADD", "NONE", "UPDATE"]
        assert operations[1]["id"] == operations[0]["id"]  # the item that says it already
        assert "Boston" in operations[2]["previous_memory"]
        [item] = memory.get_all(user_id="alice")["results"]
        results: list[Any] = [
            *operations,
            memory.get(item["id"]),
            memory.search("Denver", user_id="alice", explain=True, turns=2),
            memory.history(item["id"]),
            memory.stats(),
            memory.delete_all(user_id="alice"),
            memory.purge(user_id="alice"),
        ]
        assert json.loads(json.dumps(results)) == results
