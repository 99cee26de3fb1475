from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memograd.config import MemorySettings
from memograd.errors import BadInput
from memograd.memory import Memory
from memograd.memory.upkeep import reindex


def test_another_embedder_takes_over(tmp_path: Path, trigrams: Callable[..., Any]) -> None:
    texts = ["I live in Boston.", "我喜欢绿茶。", "My dog is called Rex."]
    settings = MemorySettings(path=tmp_path / "old")
    with Memory.open(settings=settings, embedder=trigrams(32)) as memory:
        for text in texts:
            memory.add(text, user_id="alice", infer=False)
    report = reindex(settings, trigrams(64, "wider"))
    assert report == {
        "embedder": "wider", "dimension": 64, "owners": 1, "items": 3, "turns": 3,
    }  # fmt: skip
    with pytest.raises(BadInput, match="wider"):
        Memory.open(settings=settings, embedder=trigrams(32))
    fresh = MemorySettings(path=tmp_path / "new")
    with (
        Memory.open(settings=settings, embedder=trigrams(64, "wider")) as moved,
        Memory.open(settings=fresh, embedder=trigrams(64, "wider")) as made,
    ):
        for text in texts:
            made.add(text, user_id="alice", infer=False)
        for query in ("Boston", "绿茶", "dog"):
            first, second = (
                [(hit["memory"], hit["score"], hit["similarity"]) for hit in found["results"]]
                for found in (m.search(query, user_id="alice") for m in (moved, made))
            )
            assert first == second
