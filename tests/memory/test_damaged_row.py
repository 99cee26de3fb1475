"""A row of the journal whose contents are no JSON any more: the rest of the memory lives on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memograd.memory import Memory

BROKEN = ("{broken", '{"text": "cut', "{}, {}", "")


@pytest.mark.parametrize("broken", BROKEN)
def test_one_damaged_row_costs_nothing_else(
    broken: str, tmp_path: Path, trigrams: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    with Memory.open(tmp_path / "m", embedder=trigrams(), env_file=None) as memory:
        texts = ["The sky is blue.", "The sea is green.", "The sun is red."]
        answers = memory.add_many(texts, user_id="alice", infer=False)["results"]
        ids = [answer["results"][0]["id"] for answer in answers]
    raw = sqlite3.connect(tmp_path / "m" / "journal.db")
    damage = "UPDATE events SET after = ? WHERE subject = ? AND kind = 'ADD'"
    raw.execute(damage, (broken, ids[1]))
    raw.commit()
    raw.close()
    left = [texts[0], texts[2]]
    with Memory.open(tmp_path / "m", embedder=trigrams(), env_file=None) as memory:
        assert [item["memory"] for item in memory.get_all(user_id="alice")["results"]] == left
        assert memory.search("sun", user_id="alice", top_k=1)["results"][0]["memory"] == texts[2]
        assert memory.get(ids[1]) is None
        assert [line["new_memory"] for line in memory.history(ids[1])] == [None]
        memory.add("The moon is white.", user_id="alice", infer=False)
        assert "passed over" in caplog.text
        memory.export(tmp_path / "copy.jsonl")
        assert "is damaged and not exported" in caplog.text
        memory.purge(ids[1])
        memory.purge(user_id="alice")
    with Memory.open(tmp_path / "copy", embedder=trigrams(), env_file=None) as copy:
        copy.import_(tmp_path / "copy.jsonl")
        kept = [item["memory"] for item in copy.get_all(user_id="alice")["results"]]
        assert kept == [*left, "The moon is white."]


def test_an_export_without_a_damaged_beginning_can_be_imported(
    tmp_path: Path, trigrams: Callable[[], Any]
) -> None:
    with Memory.open(tmp_path / "m", embedder=trigrams(), env_file=None) as memory:
        [item] = memory.add("The sea is green.", user_id="alice", infer=False)["results"]
        memory.update(item["id"], "The sea is wide.")
        memory.add("The sun is red.", user_id="alice", infer=False)
    raw = sqlite3.connect(tmp_path / "m" / "journal.db")
    raw.execute("UPDATE events SET after = '{' WHERE kind = 'ADD' AND subject = ?", (item["id"],))
    raw.commit()
    raw.close()
    with Memory.open(tmp_path / "m", embedder=trigrams(), env_file=None) as memory:
        memory.export(tmp_path / "copy.jsonl")
    with Memory.open(tmp_path / "copy", embedder=trigrams(), env_file=None) as copy:
        copy.import_(tmp_path / "copy.jsonl")
        kept = [one["memory"] for one in copy.get_all(user_id="alice")["results"]]
        assert kept == ["The sun is red."]
