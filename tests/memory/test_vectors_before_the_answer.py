"""Before `add` answers, what is compared with items gets its vector, and nothing else does."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memograd.errors import MemogradError
from memograd.memory import Memory
from memograd.memory.state.derived_texts import CHARACTERS_A_BATCH, EmbeddingBehind

AT = "2024-05-07T10:00:00Z"
BOOKED = {"role": "assistant", "content": "I booked you a table at Sora for Friday at eight."}
CANCELLED = {"role": "user", "content": "I cancelled the table at Sora."}
CAT = {"role": "user", "content": "I have a cat called Momo."}
CONCERT = {"role": "user", "content": "I went to a jazz concert in Leeds on Friday."}


class Noting:
    """An embedder that notes who asked for which text, and fails behind the answer if it shall."""

    def __init__(self, inner: Any, *, broken_behind: bool = False) -> None:
        self.inner, self.name, self.dimension = inner, inner.name, inner.dimension
        self.broken_behind = broken_behind
        self.before: list[str] = []
        self.behind: list[str] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        behind = threading.current_thread().name == "memograd-embedding"
        if behind and self.broken_behind:
            raise MemogradError("no route to the embedder")
        (self.behind if behind else self.before).extend(texts)
        return np.asarray(self.inner.embed(texts))

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return np.asarray(self.inner.embed(texts))


def opened(folder: Path, embedder: Any) -> Memory:
    return Memory.open(folder, embedder=embedder, reader="trained", manager="trained")


def items(memory: Memory) -> list[str]:
    return [one["memory"] for one in memory.get_all(user_id="u")["results"]]


def test_the_first_message_of_somebody_waits_for_no_vector(tmp_path: Path, trigrams: Any) -> None:
    noting = Noting(trigrams())
    with opened(tmp_path / "m", noting) as memory:
        [kept] = [one["memory"] for one in memory.add([CAT], user_id="u", timestamp=AT)["results"]]
        assert noting.before == []
        memory.store.texts.finish()
        assert kept in noting.behind
        [hit] = memory.search("cat Momo", user_id="u")["results"]
        assert hit["memory"] == kept
        assert hit["similarity"] > 0  # with its vector


def test_a_message_that_only_adds_waits_for_no_vector(tmp_path: Path, trigrams: Any) -> None:
    noting = Noting(trigrams())
    with opened(tmp_path / "m", noting) as memory:
        memory.add([CAT], user_id="u", timestamp=AT)
        memory.store.texts.finish()
        added = memory.add([CONCERT], user_id="u", timestamp=AT)["results"]
        [kept] = [one["memory"] for one in added]
        assert noting.before == []
        memory.store.texts.finish()
        assert kept in noting.behind
        [hit] = memory.search("jazz concert", user_id="u", top_k=1)["results"]
        assert hit["memory"] == kept
        assert hit["similarity"] > 0  # with its vector


def test_what_an_assistant_says_waits_for_no_vector_and_is_compared_by_the_next_message(
    tmp_path: Path, trigrams: Any
) -> None:
    noting = Noting(trigrams())
    with opened(tmp_path / "m", noting) as memory:
        memory.add([CAT], user_id="u", timestamp=AT)
        memory.store.texts.finish()
        before = list(noting.before)
        added = memory.add([BOOKED], user_id="u", timestamp=AT)["results"]
        [said] = [one["memory"] for one in added]
        assert noting.before == before
        memory.add([CANCELLED], user_id="u", timestamp=AT)
        assert (said in noting.before) != (said in noting.behind)  # once, whoever was first
        state = memory.store.states.current("user:u", turn_vectors=False)
        vectors = state.items.vectors([item.id for item in state.items])
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)  # all there
    together = Noting(trigrams())
    with opened(tmp_path / "n", together) as memory:
        memory.add([CAT, BOOKED, CANCELLED], user_id="u", timestamp=AT)
        assert said in together.before  # for the message behind it is compared with it
        one_call = items(memory)
    with opened(tmp_path / "m", noting) as memory:
        assert items(memory) == one_call


def test_what_an_assistant_repeats_is_found_by_its_words_meanwhile(
    tmp_path: Path, trigrams: Any
) -> None:
    broken = Noting(trigrams(), broken_behind=True)
    with opened(tmp_path / "m", broken) as memory:
        first, again = (
            memory.add([BOOKED], user_id="u", timestamp=AT)["results"] for _ in range(2)
        )
        assert [one["event"] for one in first] == ["ADD"]
        assert again == []
        both = memory.add([BOOKED, BOOKED], user_id="v", timestamp=AT)["results"]
        assert [one["event"] for one in both] == ["ADD"]


def test_a_crash_behind_the_answer_loses_nothing(
    tmp_path: Path, trigrams: Any, caplog: pytest.LogCaptureFixture
) -> None:
    talk = [CAT, BOOKED]
    with opened(tmp_path / "calm", Noting(trigrams())) as memory:
        memory.add(talk, user_id="u", timestamp=AT)
        memory.store.texts.finish()
        expected = memory.search("table at Sora", user_id="u", turns=2)
    with opened(tmp_path / "m", Noting(trigrams(), broken_behind=True)) as memory:
        memory.add(talk, user_id="u", timestamp=AT)
        memory.store.texts.finish()
        assert "no route to the embedder" in caplog.text
    with opened(tmp_path / "m", Noting(trigrams())) as memory:
        found = memory.search("table at Sora", user_id="u", turns=2)
    for kind, name in (("results", "memory"), ("turns", "text")):
        assert [(one[name], one["score"]) for one in found[kind]] == [
            (one[name], one["score"]) for one in expected[kind]
        ]
    assert any("Sora for Friday" in one["memory"] for one in found["results"])


def test_short_texts_come_first_and_a_long_one_alone() -> None:
    batches: list[list[str]] = []
    begun, may = threading.Event(), threading.Event()

    def embed(owner: str, texts: Sequence[str], seen: int) -> None:
        batches.append(list(texts))
        begun.set()
        assert may.wait(20)

    behind = EmbeddingBehind(embed)
    behind.put("u", ["begins"], seen=1)
    assert begun.wait(20)
    long = "x" * (CHARACTERS_A_BATCH + 1)
    behind.put("u", [long, "an item"], seen=2)
    behind.put("u", ["another"], seen=3)
    may.set()
    behind.finish()
    assert batches == [["begins"], ["an item", "another"], [long]]
