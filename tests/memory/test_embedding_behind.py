"""Long messages get their vectors behind the answer, and nothing that is found tells."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.quick import quick

from memograd.errors import MemogradError
from memograd.memory import Memory
from memograd.memory.records.items import content_hash
from memograd.memory.records.turns import RawTurn
from memograd.memory.state.corpus import Corpus

LONG = "Here is a plan for your week in Lisbon. " * 20
CHINESE = "这是一份关于里斯本一周行程的长计划。" * 20
TALK = [
    {"role": "user", "content": "I moved to Boston in May."},
    {"role": "assistant", "content": LONG},
    {"role": "user", "content": "我养了一只猫。"},
    {"role": "assistant", "content": CHINESE},
]


class Gate:
    """An embedder that waits with long texts until it may go on, and notes what it embedded."""

    def __init__(self, inner: Any, *, open_: bool = False, broken: bool = False) -> None:
        self.inner, self.name, self.dimension = inner, inner.name, inner.dimension
        self.may, self.reached, self.broken = threading.Event(), threading.Event(), broken
        self.embedded: list[str] = []
        if open_:
            self.may.set()

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        if any(len(text) > 200 for text in texts):
            self.reached.set()
            if self.broken:
                raise MemogradError("no route to the embedder")
            assert self.may.wait(20)
        self.embedded += texts
        return np.asarray(self.inner.embed(texts))

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return np.asarray(self.inner.embed(texts))


def opened(folder: Path, embedder: Any) -> Memory:
    return Memory.open(folder, embedder=embedder, reader="rules", manager="rules")


def found(memory: Memory) -> list[tuple[str, float, float]]:
    result = memory.search("里斯本 Lisbon plan", user_id="u", turns=9)
    return [(hit["text"], hit["score"], hit["similarity"]) for hit in result["turns"]]


@pytest.fixture
def expected(tmp_path: Path, trigrams: Any) -> list[tuple[str, float, float]]:
    """What is found where everything had its vector before anybody asked."""
    with opened(tmp_path / "calm", trigrams()) as memory:
        memory.add(TALK, user_id="u", timestamp="2024-05-07T10:00:00Z")
        memory.store.texts.finish()
        hits = found(memory)
    assert {LONG.strip(), CHINESE} <= {text.strip() for text, *_ in hits}
    return hits


def test_an_add_waits_for_no_long_text_and_search_finds_the_same(
    tmp_path: Path, trigrams: Any, expected: list[tuple[str, float, float]]
) -> None:
    gate = Gate(trigrams())
    with opened(tmp_path / "m", gate) as memory:
        memory.add(TALK[:2], user_id="u", timestamp="2024-05-07T10:00:00Z")
        assert gate.reached.wait(20)
        memory.add(TALK[2:], user_id="u", timestamp="2024-05-07T10:00:00Z")  # decides without it
        assert not any(len(text) > 200 for text in gate.embedded)
        gate.may.set()
        assert sorted(found(memory)) == sorted(expected)
        assert len(gate.embedded) == len(set(gate.embedded))  # the search did nothing twice


def test_closing_finishes_and_opening_embeds_nothing(
    tmp_path: Path, trigrams: Any, expected: list[tuple[str, float, float]]
) -> None:
    gate = Gate(trigrams(), open_=True)
    with opened(tmp_path / "m", gate) as memory:
        memory.add(TALK, user_id="u", timestamp="2024-05-07T10:00:00Z")
    assert sum(len(text) > 200 for text in gate.embedded) == 2
    again = Gate(trigrams(), open_=True)
    with opened(tmp_path / "m", again) as memory:
        assert found(memory) == expected
    assert again.embedded == []


def test_what_a_crash_left_without_vectors_is_found(
    tmp_path: Path,
    trigrams: Any,
    expected: list[tuple[str, float, float]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = Gate(trigrams(), broken=True)
    with opened(tmp_path / "m", broken) as memory:
        memory.add(TALK, user_id="u", timestamp="2024-05-07T10:00:00Z")
        memory.store.texts.finish()
        assert "no route to the embedder" in caplog.text  # said, not swallowed
        with pytest.raises(MemogradError, match="no route"):
            found(memory)
    with opened(tmp_path / "m", trigrams()) as memory:
        assert found(memory) == expected
        whole = memory.store.journal.derived("user:u")
    assert len(whole) >= len(TALK)


def test_nothing_is_stored_of_what_was_purged_meanwhile(tmp_path: Path, trigrams: Any) -> None:
    gate = Gate(trigrams())
    with opened(tmp_path / "m", gate) as memory:
        memory.add(TALK, user_id="u", timestamp="2024-05-07T10:00:00Z")
        assert gate.reached.wait(20)
        memory.purge(user_id="u")
        gate.may.set()
        memory.store.texts.finish()
        assert memory.store.journal.derived("user:u") == {}
        assert memory.store.texts._held == {}  # nor kept in the process
        assert found(memory) == []


def test_a_purge_of_one_item_leaves_the_others_to_be_embedded(
    tmp_path: Path, trigrams: Any
) -> None:
    gate = Gate(trigrams())
    with opened(tmp_path / "m", gate) as memory:
        memory.add(TALK, user_id="u", timestamp="2024-05-07T10:00:00Z")
        [moved] = [
            item for item in memory.get_all(user_id="u")["results"] if "Boston" in item["memory"]
        ]
        memory.purge(moved["id"])
        gate.may.set()
        texts = [text for text, *_ in found(memory)]
        assert not any("Boston" in text for text in texts)
        assert any(LONG.strip() in text for text in texts)
        hashes = set(memory.store.journal.derived("user:u"))
        assert content_hash("user: I moved to Boston in May. [7 May 2024]") not in hashes


def test_vectors_that_come_late_make_the_same_corpus(trigrams: Any) -> None:
    embedder = trigrams()
    turns = [RawTurn(str(n), "a", f"text number {n} 第{n}条", None, 1) for n in range(80)]
    vectors = embedder.embed([turn.text for turn in turns])
    terms = [tuple(turn.text.split()) for turn in turns]
    whole: Corpus[RawTurn] = Corpus(embedder.dimension)
    late: Corpus[RawTurn] = Corpus(embedder.dimension)
    whole.add_many(turns, vectors, terms)
    for number, turn in enumerate(turns):  # some in segments, some in the tail
        late.add(turn, vectors[number] if number % 3 else np.zeros(32, np.float32), terms[number])
    fork = late.fork()
    filled = late.with_vectors(
        {turn.id: vectors[n] for n, turn in enumerate(turns) if not n % 3} | {"gone": vectors[0]}
    )
    query = embedder.embed(["number 33"])[0]
    assert filled.dense(query, k=80) == whole.dense(query, k=80)
    assert filled.lexical(["number", "33"], k=80) == whole.lexical(["number", "33"], k=80)
    assert fork.dense(query, k=80) != whole.dense(query, k=80)  # a fork never sees it


@pytest.mark.parametrize("times", quick([1, 3], (0,)))
def test_a_program_that_closes_nothing_ends_well(tmp_path: Path, times: int) -> None:
    """A thread that computed in C++ when the interpreter ended used to abort the process."""
    program = (
        "import sys; from memograd import Memory\n"
        "memory = Memory.open(sys.argv[1], reader='trained', manager='trained', embedder='e5',"
        " env_file=None)\n"
        "memory.add('Denise is our treasurer.', user_id='ann')\n"
        "memory.get_all(user_id='ann')\n"
    )
    for number in range(times):
        ended = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / str(number))],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, "")
