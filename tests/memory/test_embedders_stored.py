"""Vectors in a file: the embedder's own to the bit, shared by processes, never those of another."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memograd.errors import MemogradError
from memograd.memory.embedders.stored import StoredEmbedder

TEXTS = ["Ann lives in Rome.", "她住在北京。", "", "Ann lives in Rome."]


class Counted:
    """Passes texts on and remembers them; `shift` makes it another model of the same name."""

    def __init__(self, inner: Any, shift: int = 0) -> None:
        self._inner, self._shift = inner, shift
        self.name, self.dimension = inner.name, inner.dimension
        self.seen: list[str] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.seen += texts
        return np.roll(self._inner.embed(texts), self._shift, axis=1)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return np.roll(self.embed(texts), 1, axis=1)


def test_vectors_are_the_embedders_own_and_made_once(tmp_path: Path, trigrams) -> None:
    counted = Counted(trigrams())
    stored = StoredEmbedder(counted, tmp_path / "v.db")
    before = len(counted.seen)
    for _ in range(2):
        assert np.array_equal(stored.embed(TEXTS), trigrams().embed(TEXTS))
        assert np.array_equal(stored.embed_queries(TEXTS), np.roll(stored.embed(TEXTS), 1, axis=1))
    assert len(counted.seen) - before == 2 * len(set(TEXTS))  # as passages and as queries
    again = Counted(trigrams())
    assert np.array_equal(
        StoredEmbedder(again, tmp_path / "v.db").embed(TEXTS), stored.embed(TEXTS)
    )
    assert len(again.seen) == 1  # the check alone
    assert stored.embed([]).shape == (0, 32)


def test_another_model_of_the_same_name_gets_its_own_vectors(tmp_path: Path, trigrams) -> None:
    path = tmp_path / "v.db"
    StoredEmbedder(Counted(trigrams()), path).embed(TEXTS)
    other = StoredEmbedder(Counted(trigrams(), shift=3), path)
    assert np.array_equal(other.embed(TEXTS), np.roll(trigrams().embed(TEXTS), 3, axis=1))
    back = Counted(trigrams())  # the first one is still there
    assert np.array_equal(StoredEmbedder(back, path).embed(TEXTS), trigrams().embed(TEXTS))
    assert len(back.seen) == 1


def test_many_may_write_at_once(tmp_path: Path, trigrams) -> None:
    texts = [f"text {number}" for number in range(60)]

    def work(start: int) -> np.ndarray:
        return StoredEmbedder(trigrams(), tmp_path / "v.db").embed(texts[start : start + 30])

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, [0, 10, 20, 30]))
    for start, vectors in zip([0, 10, 20, 30], found, strict=True):
        assert np.array_equal(vectors, trigrams().embed(texts[start : start + 30]))


def test_a_file_that_is_no_cache_is_one_sentence(tmp_path: Path, trigrams) -> None:
    (tmp_path / "v.db").write_bytes(b"not a database, but long enough to be read as one" * 20)
    with pytest.raises(MemogradError, match="remove it"):
        StoredEmbedder(trigrams(), tmp_path / "v.db")
    with sqlite3.connect(tmp_path / "w.db") as file:
        file.execute("CREATE TABLE vectors (other TEXT)")
    with pytest.raises(MemogradError, match="remove it"):
        StoredEmbedder(trigrams(), tmp_path / "w.db").embed(["text"])
