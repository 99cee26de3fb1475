"""A journal's events by the hundred, an index with vectors of hashes over them, its answers."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memograd.memory.index import IndexHit, MilvusIndex
from memograd.memory.journal import Journal
from memograd.memory.records.events import EventKind, NewEvent
from memograd.memory.records.scope import Scope

DIMENSION = 16
WORDS = [
    "tea",
    "coffee",
    "Lisbon",
    "Oslo",
    "dog",
    "cat",
    "上海",
    "北京",
    "喜欢",
    "🦀",
    "c++",
    "2023",
]
NASTY = [
    'a" or layer != "', "back\\slash", "it's", "new\nline", "tab\t", "🦀\u200d🦀", "{x}", "%s",
    "上海", 'key in ["', "\x00", "NULL", "--", "a" * 3_000,
]  # fmt: skip


def vector(text: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    values = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
    return values / np.float32(np.linalg.norm(values))


def embed(owner: str, texts: Sequence[str]) -> list[tuple[np.ndarray, tuple[str, ...]]]:
    return [(vector(text), tuple(text.split())) for text in texts]


def open_index(uri: Path | str, journal: Journal, **more: Any) -> MilvusIndex:
    known = {"embed": embed, "embedder_name": "hash", "dimension": DIMENSION}
    return MilvusIndex.open(str(uri), journal=journal, **(known | more))


def item(subject: str, text: str, kind: EventKind = EventKind.ADD, **ids: str) -> NewEvent:
    scope = Scope(**(ids or {"user_id": "ann"}))
    now = "2025-01-01T12:00:00+00:00"
    after = {"id": subject, "text": text, **scope.ids(), "kind": "semantic"}
    after |= {"created_at": now, "updated_at": now}
    return NewEvent(kind, scope, subject, after=None if kind is EventKind.DELETE else after)


def turn(subject: str, text: str, user: str = "ann", **more: Any) -> NewEvent:
    said = {"id": subject, "speaker": "Ann", "text": text, "session": 1}
    return NewEvent(EventKind.TURN, Scope(user_id=user), subject, after={"turn": said, **more})


def purge(journal: Journal, subject: str | None = None, owner: str | None = None) -> None:
    subjects, owners = [subject] if subject else [], [owner] if owner else []
    journal.purge(subjects=subjects, owners=owners, actor="user", reason="asked")


def answers(index: MilvusIndex, **more: Any) -> dict[str, Any]:
    """What does not depend on how Lite cut its files: dense lists, and who is in the lexical."""
    found: dict[str, Any] = {}
    for layer in ("item", "turn"):
        for word in WORDS:
            hits = index.search(vector(word), [word], layer=layer, k=500, **more)
            hits.sort(key=lambda hit: hit.dense_rank or 0)
            found[f"{layer} {word}"] = (
                [(h.owner, h.id) for h in hits if h.dense_rank],
                {(h.owner, h.id) for h in hits if h.lexical_rank},
            )
    return found


def ids(hits: list[IndexHit]) -> list[str]:
    return [hit.id for hit in hits]


def history(count: int, seed: int = 0) -> list[NewEvent]:
    rng, alive, events = random.Random(seed), list[str](), list[NewEvent]()
    for number in range(count):
        text = " ".join(rng.choices(WORDS, k=rng.randint(1, 5)))
        choice = rng.random()
        if choice < 0.15 and alive:
            events.append(item(rng.choice(alive), text, EventKind.UPDATE))
        elif choice < 0.25 and alive:
            events.append(item(alive.pop(), text, EventKind.DELETE))
        elif choice < 0.5:
            events.append(turn(f"t{number}", text, rng.choice(["ann", "bob"])))
        else:
            alive.append(f"i{number}")
            events.append(item(alive[-1], text))
    return events
