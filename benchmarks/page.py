"""What the page costs where an owner has many items, in seconds of the processor.

    python benchmarks/page.py [--items 100000] [--changed 1000] [--path FOLDER]

Fills a memory (kept with --path, and then only filled the first time), serves it in this process
and asks each page `ROUNDS` times. The memory is folded before, as `memograd serve` does behind its
start; what that takes is told first. The embedder hashes words, so it costs nothing, and the
shipped ranker, which reads other vectors, is not asked: searching is by rank fusion. Then items all
over the memory are changed, and two moments of the past are looked at from behind that.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

TOKEN = "the-token-of-the-benchmark"
OWNER = "user:alice"
ROUNDS = 9
BATCH = 5000
WORDS = [f"word{number}" for number in range(3000)]


class HashedWords:
    """Texts as hashed words."""

    name, dimension = "hashed-words", 64

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.full((len(texts), self.dimension), 1e-3, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                vectors[row, hashlib.md5(word.encode()).digest()[0] % self.dimension] += 1
        unit: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return self.embed(texts)


def main() -> None:
    from fastapi.testclient import TestClient

    from memograd.memory import Memory
    from memograd.serve.app import create_app
    from memograd.serve.served import ServeSettings

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--changed", type=int, default=1000)
    parser.add_argument("--path", type=Path)
    given = parser.parse_args()
    path = given.path or Path(tempfile.mkdtemp())
    with Memory.open(
        path,
        embedder=HashedWords(),
        env_file=None,
        reader="rules",
        manager="rules",
        ranking="fusion",
    ) as memory:
        journal = memory.store.journal
        missing = given.items - journal.count_added([OWNER])
        fill(memory, missing)
        web = TestClient(
            create_app(memory, ServeSettings(token=TOKEN)), base_url="http://localhost"
        )
        web.headers["Authorization"] = f"Bearer {TOKEN}"
        began = time.process_time()
        item = memory.store.states.current(OWNER).items.last(1)[0].id
        print(f"folding the journal after a start: {time.process_time() - began:.1f} s\n")
        pages = {
            "owners": "/page/memory",
            "list": f"/page/memory?owner={OWNER}",
            "last page": f"/page/memory?owner={OWNER}&after={given.items - 30}",
            "one kind": f"/page/memory?owner={OWNER}&kind=episodic",
            "search": f"/page/memory?owner={OWNER}&q=word7+word2021",
            "one item": f"/page/memory/item/{item}",
            "the past, half way": f"/page/memory?owner={OWNER}&at={given.items // 2}",
        }
        print("| page | first | median | worst |\n|---|---:|---:|---:|")
        show(web, pages)
        change(memory, given.changed - (journal.count_changes(OWNER) - given.items))
        web.get(pages["list"])  # reads the changes
        behind = f", {given.changed:,} changes later"
        past = f"/page/memory?owner={OWNER}&at={given.items}"
        show(
            web,
            {
                f"the past, all items{behind}": past,
                f"search there{behind}": f"{past}&q=word7+word2021",
                f"the past, half way{behind}": pages["the past, half way"],
            },
        )


def show(web: Any, pages: dict[str, str]) -> None:
    """A line for each page."""
    for name, address in pages.items():
        seconds = [measured(web, address) for _ in range(ROUNDS)]
        rest = seconds[1:]
        shown = (seconds[0], statistics.median(rest), max(rest))
        print("|", name, "|", " | ".join(f"{1000 * one:.0f} ms" for one in shown), "|", flush=True)


def fill(memory: Any, missing: int) -> None:
    """Give the owner items that are made by nobody's decision."""
    from memograd.memory.records.events import EventKind, NewEvent
    from memograd.memory.records.items import Kind, MemoryItem
    from memograd.memory.records.scope import Scope

    random = np.random.default_rng(0)
    scope, now = Scope(user_id="alice"), datetime.now(UTC)
    for start in range(0, missing, BATCH):
        events = []
        for number in range(start, min(start + BATCH, missing)):
            text = " ".join(random.choice(WORDS, 8))
            kind = Kind.EPISODIC if number % 5 == 0 else Kind.SEMANTIC
            item = MemoryItem(f"item-{number}", text, scope, now, now, kind=kind)
            events.append(NewEvent(EventKind.ADD, scope, item.id, after=item.to_json()))
        memory.store.write(OWNER, events)


def change(memory: Any, missing: int) -> None:
    """Let items all over the memory say something else."""
    from memograd.memory.records.events import EventKind, NewEvent

    items = list(memory.store.states.current(OWNER).items)
    events = []
    for at in np.random.default_rng(1).choice(len(items), max(missing, 0), replace=False):
        after = replace(items[at], text=f"{items[at].text} changed")
        told = {"before": items[at].to_json(), "after": after.to_json()}
        events.append(NewEvent(EventKind.UPDATE, items[at].scope, items[at].id, **told))
    memory.store.write(OWNER, events)


def measured(web: Any, address: str) -> float:
    """Seconds of the processor for one answer."""
    began = time.process_time()
    answer = web.get(address)
    assert answer.status_code == 200, answer.text
    return time.process_time() - began


if __name__ == "__main__":
    main()
