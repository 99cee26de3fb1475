"""A memory that is quick to make, for adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memograd.memory import Memory


@pytest.fixture(scope="module")
def make_memory(
    tmp_path_factory: pytest.TempPathFactory, trigrams: Any
) -> Iterator[Callable[[], Memory]]:
    """Opens a memory in a folder of its own."""
    opened: list[Memory] = []

    def make(path: Path | None = None) -> Memory:
        folder = path or tmp_path_factory.mktemp("memory")
        opened.append(Memory.open(folder, embedder=trigrams(), ranking="fusion"))
        return opened[-1]

    yield make
    for memory in opened:
        memory.close()


@pytest.fixture(scope="module")
def memory(make_memory: Callable[[], Memory]) -> Memory:
    """One memory for all tests of a file; each takes an owner of its own."""
    return make_memory()
