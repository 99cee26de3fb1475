"""What is purged leaves the caches of the process, too."""

from __future__ import annotations

import functools
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memograd import Memory
from memograd.memory.reader import TrainedReader
from memograd.memory.relations import RelationModel

WORD = "Quibbleworth"
SAID = f"I moved to {WORD} in May. My sister Ann sold her shop in {WORD}."
PURGES = """
import sys
from memograd import Memory
Memory.open(sys.argv[1], embedder='e5').purge(user_id='ann')
"""


def kept_in_caches(memory: Memory) -> set[str]:
    """The strings in any `lru_cache` of the package that hold the word, in any case."""
    cache_type = type(functools.lru_cache(print))
    modules = [one for name, one in sys.modules.items() if name.startswith("memograd")]
    holders = [*modules, model_of(memory), model_of(memory)._builder]
    caches = [c for one in holders for c in vars(one).values() if isinstance(c, cache_type)]
    return {text for cache in caches for text in strings_in(cache)}


def strings_in(cache: Any) -> Iterator[str]:
    known, left = {id(cache)}, [cache]
    while left:
        for one in gc.get_referents(left.pop()):
            if isinstance(one, str) and WORD.lower()[:9] in one.lower():
                yield one
            plain = isinstance(one, dict | tuple | list | frozenset) or hasattr(one, "__slots__")
            if plain and id(one) not in known and not isinstance(one, type):
                known.add(id(one))
                left.append(one)


def model_of(memory: Memory) -> RelationModel:
    assert isinstance(memory.reader, TrainedReader)
    return memory.reader._model


def told(path: Path) -> Memory:
    memory = Memory.open(path, embedder="e5", reader="trained", manager="trained")
    memory.add(SAID, user_id="ann")
    memory.add(f"It's in {WORD} that I live now, and the shop is closed.", user_id="ann")
    assert memory.search(f"Who lives in {WORD}?", user_id="ann", turns=3)["results"]
    return memory


@pytest.mark.parametrize("whose", ["user", "memories"])
def test_a_purge_empties_all_caches_of_texts(tmp_path: Path, whose: str) -> None:
    with told(tmp_path / "memory") as memory:
        model = model_of(memory)
        assert len(kept_in_caches(memory)) > 5
        assert model._encoder._behind[-1].cache_info().currsize
        if whose == "user":
            memory.purge(user_id="ann")
        else:
            for item in memory.get_all(user_id="ann")["results"]:
                memory.purge(item["id"])
        assert kept_in_caches(memory) == set()
        assert not model._encoder._behind[-1].cache_info().currsize
        assert not memory.store.embedder._held  # type: ignore[attr-defined]


def test_what_another_process_purged_leaves_the_caches_when_it_is_noticed(tmp_path: Path) -> None:
    with told(tmp_path / "memory") as memory:
        subprocess.run([sys.executable, "-c", PURGES, tmp_path / "memory"], check=True)
        assert kept_in_caches(memory)
        assert memory.get_all(user_id="ann")["results"] == []
        assert kept_in_caches(memory) == set()
