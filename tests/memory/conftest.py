from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest


class TrigramEmbedder:
    """Character trigrams hashed into a unit vector: fast, deterministic, for any script."""

    def __init__(self, dimension: int = 32, name: str = "trigram") -> None:
        self.name = name
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            padded = f"  {text} "
            for start in range(len(padded) - 2):
                digest = hashlib.md5(padded[start : start + 3].encode()).digest()
                vectors[row, digest[0] % self.dimension] += 1.0
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return self.embed(texts)


@pytest.fixture(scope="session")
def trigrams() -> type[TrigramEmbedder]:
    return TrigramEmbedder
