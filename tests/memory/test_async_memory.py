from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memograd.memory import AsyncMemory, Memory


def public_methods(of: type) -> dict[str, Any]:
    return {name: member for name, member in vars(of).items() if not name.startswith("_")}


def test_every_method_is_there_with_the_same_parameters() -> None:
    ours, theirs = public_methods(AsyncMemory), public_methods(Memory)
    assert set(ours) == set(theirs)
    for name in set(theirs) - {"open", "from_config"}:
        assert inspect.signature(ours[name]) == inspect.signature(theirs[name]), name


def test_many_adds_at_once_are_all_kept(tmp_path: Path, trigrams: Callable[[], Any]) -> None:
    async def work() -> None:
        async with await AsyncMemory.open(tmp_path, embedder=trigrams(), env_file=None) as memory:
            await asyncio.gather(
                *(memory.add(f"fact {n}", user_id="alice", infer=False) for n in range(50))
            )
            found = await memory.get_all(user_id="alice")
            assert len(found["results"]) == 50
            hits = await memory.search("fact 7", user_id="alice", top_k=1)
            assert hits["results"][0]["memory"] == "fact 7"

    asyncio.run(work())
