"""memograd's side: the public `Memory`, and a fork of the state behind it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from memory_bench.stand_in import StandInEmbedder

BATCH = 1_000  # messages an `add` in a bulk ingest


class Side:
    """A memory in the folder that `open` names."""

    def __init__(self) -> None:
        self.embedder = StandInEmbedder()
        self._memory: Any = None

    def versions(self) -> str:
        import memograd

        return f"memograd {memograd.__version__}"

    def open(self, folder: str) -> None:
        from memograd import Memory

        self._memory = Memory.open(Path(folder), embedder=self.embedder)

    def fill(self, texts: list[str], users: list[str]) -> None:
        """Bulk ingest through `add`, up to 1,000 messages a call; each user gets every n-th."""
        for number, user in enumerate(users):
            mine = texts[number :: len(users)]
            for start in range(0, len(mine), BATCH):
                batch = mine[start : start + BATCH]
                messages = [{"role": "user", "content": text} for text in batch]
                self._memory.add(messages, user_id=user, infer=False)

    def add(self, text: str, user: str) -> None:
        self._memory.add(text, user_id=user, infer=False)

    def search(self, query: str, user: str, top_k: int) -> list[str]:
        found = self._memory.search(query, user_id=user, top_k=top_k)
        return [hit["memory"] for hit in found["results"]]

    def fork(self, user: str, times: int) -> list[float]:
        """Seconds of each fork of the user's state, after a first one that is not counted."""
        from memograd.memory.records.scope import Scope

        state = self._memory.store.states.current(Scope(user_id=user).owner)
        seconds = []
        for _ in range(times + 1):
            start = time.perf_counter()
            state.fork()
            seconds.append(time.perf_counter() - start)
        return seconds[1:]

    def close(self) -> None:
        self._memory.close()
