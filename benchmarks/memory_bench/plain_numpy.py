"""The floor: one matrix a user, `matrix @ vector`, `argpartition`, and a list of texts.

No journal, no keyword search, no filter, and nothing is saved before `close`: a floor, no rival.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

from memory_bench.stand_in import DIMENSION, StandInEmbedder


class Side:
    """Matrices in memory, saved as .npy and .json."""

    def __init__(self) -> None:
        self.embedder = StandInEmbedder()
        self._texts: dict[str, list[str]] = {}
        self._rows: dict[str, np.ndarray] = {}
        self._folder = Path()

    def versions(self) -> str:
        return f"numpy {np.__version__} (no journal, no keyword search)"

    def open(self, folder: str) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        names = self._folder / "texts.json"
        if names.is_file():
            self._texts = json.loads(names.read_text(encoding="utf-8"))
            for number, (user, texts) in enumerate(self._texts.items()):
                rows = np.load(self._folder / f"{number}.npy")
                assert len(rows) == len(texts)
                self._rows[user] = rows

    def fill(self, texts: list[str], users: list[str]) -> None:
        for number, text in enumerate(texts):
            self.add(text, users[number % len(users)])

    def add(self, text: str, user: str) -> None:
        texts = self._texts.setdefault(user, [])
        rows = self._rows.setdefault(user, np.zeros((16, DIMENSION), dtype=np.float32))
        if len(texts) == len(rows):
            rows = self._rows[user] = np.concatenate([rows, np.zeros_like(rows)])
        rows[len(texts)] = self.embedder.embed([text])[0]
        texts.append(text)

    def search(self, query: str, user: str, top_k: int) -> list[str]:
        texts = self._texts[user]
        scores = self._rows[user][: len(texts)] @ self.embedder.embed_queries([query])[0]
        best = np.arange(len(scores))
        if len(scores) > top_k:
            best = np.argpartition(scores, -top_k)[-top_k:]
        return [texts[row] for row in best[np.argsort(-scores[best])]]

    def fork(self, user: str, times: int) -> list[float]:
        """Seconds of each copy of the matrix and the list."""
        seconds = []
        for _ in range(times + 1):
            start = time.perf_counter()
            self._rows[user].copy(), self._texts[user].copy()
            seconds.append(time.perf_counter() - start)
        return seconds[1:]

    def close(self) -> None:
        (self._folder / "texts.json").write_text(
            json.dumps(self._texts, ensure_ascii=False), encoding="utf-8"
        )
        for number, (user, texts) in enumerate(self._texts.items()):
            np.save(self._folder / f"{number}.npy", self._rows[user][: len(texts)])
