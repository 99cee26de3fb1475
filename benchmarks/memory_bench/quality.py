"""Is the evidence found? Recall on LoCoMo, LongMemEval and MemDaily, one JSON object a combination.

    layer   turns  raw turns alone
            items  what the rule reader makes of them; an item that is found counts as its sources
            both   the turns behind the found items, fused with turns found directly
    mode    dense (the embedder), lexical (BM25), hybrid (both, fused)

`recall_at_K` is the mean over questions of the part of a question's evidence turns that K results
cover, with a 95% bootstrap interval over questions for K = 10. Abstentions and questions without
evidence are left out. The sample of LongMemEval holds only the sessions with the answer, about 20
turns a question, so it is also measured with all its histories in one memory. MemDaily's streams
have 4 to 20 messages; the small K say most there.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from memograd.data import (
    Conversation,
    Question,
    load_locomo,
    load_longmemeval,
    load_memdaily,
    select_conversations,
)
from memograd.evaluation import bootstrap_interval
from memograd.memory import RawTurn
from memograd.memory.analysis import analyse
from memograd.memory.embedders import Embedder, load_embedder
from memograd.memory.reader import RuleReader
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.search import Mode, Query, retrieve, turns_behind
from memograd.memory.state import MemoryState

SETS = (
    "LoCoMo conv-30",
    "MemDaily",
    "LongMemEval sample",
    "LongMemEval sample, one memory",
)
DEPTHS = (1, 5, 10, 20)
MODES: tuple[Mode, ...] = ("dense", "lexical", "hybrid")
SCOPE = Scope(user_id="benchmark")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Case:
    """Turns that are remembered together, as separate conversations, and what is asked of them."""

    conversations: tuple[tuple[RawTurn, ...], ...]
    questions: tuple[Question, ...]


class DiskCachedEmbedder:
    """An embedder that keeps its vectors in a folder between runs."""

    def __init__(self, name: str, folder: Path | None) -> None:
        self._embedder: Embedder = load_embedder(name)
        self.name, self.dimension = name, self._embedder.dimension
        self._folder = folder
        self._vectors: dict[str, dict[str, np.ndarray]] = {}

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, dimension]` of remembered texts."""
        return self._cached("passages", texts, self._embedder.embed)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, dimension]` of questions."""
        return self._cached("queries", texts, self._embedder.embed_queries)

    def _cached(
        self, role: str, texts: Sequence[str], embed: Callable[[Sequence[str]], np.ndarray]
    ) -> np.ndarray:
        held = self._vectors.setdefault(role, self._load(role))
        keys = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in held}
        if new:
            held.update(zip(new, embed(list(new.values())), strict=True))
            if self._folder is not None:
                self._folder.mkdir(parents=True, exist_ok=True)
                np.savez(self._path(role), keys=list(held), rows=np.stack([*held.values()]))
        return np.stack([held[key] for key in keys])

    def _load(self, role: str) -> dict[str, np.ndarray]:
        if self._folder is None or not self._path(role).is_file():
            return {}
        with np.load(self._path(role)) as saved:
            return dict(zip(saved["keys"].tolist(), saved["rows"], strict=True))

    def _path(self, role: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{self.name}-{role}.npz"


def measure_all(data: Path, cache: Path | None, *, quick: bool) -> Iterator[dict[str, Any]]:
    """Every set that is there, with both embedders (MiniLM knows no Chinese: that is shown)."""
    embedders = [DiskCachedEmbedder(name, cache) for name in ("e5", "minilm")]
    for name in SETS:
        cases = _cases(name, data, quick)
        if not cases:
            yield {"bench": "evidence_recall", "set": name, "missing": f"no such data in {data}"}
            continue
        for number, embedder in enumerate(embedders):
            # BM25 knows no embedder, so it is measured once.
            modes = [mode for mode in MODES if mode != "lexical" or number == 0]
            yield from _measure(name, cases, embedder, modes)


def _cases(name: str, data: Path, quick: bool) -> list[Case]:
    if name.startswith("LoCoMo"):
        paths = sorted((data / "locomo").glob("*.json"))
        return [
            _case(conversation)
            for path in paths
            for conversation in select_conversations(load_locomo(path), ["conv-30"])
        ]
    if name.startswith("LongMemEval"):
        paths = sorted((data / "longmemeval").glob("*.json"))
        conversations = [one for path in paths for one in load_longmemeval(path)]
        if "one memory" not in name:
            return [_case(conversation) for conversation in conversations if conversation.questions]
        cases = [_case(conversation) for conversation in conversations]
        return [
            Case(
                tuple(turns for case in cases for turns in case.conversations),
                tuple(question for case in cases for question in case.questions),
            )
        ] * bool(cases)
    streams = [
        stream
        for path in sorted((data / "memdaily").glob("*.json.gz"))
        for stream in load_memdaily(path)
        if stream.questions
    ]
    chosen = random.Random(0).sample(streams, min(len(streams), 40 if quick else 200))
    return [_case(stream) for stream in chosen]


def _case(conversation: Conversation) -> Case:
    questions = tuple(question for question in conversation.questions if question.evidence)
    return Case((conversation.turns,), questions)


def _measure(
    name: str, cases: Sequence[Case], embedder: DiskCachedEmbedder, modes: Sequence[Mode]
) -> Iterator[dict[str, Any]]:
    recalls: dict[tuple[str, Mode], list[list[float]]] = {}
    held = {"turns": 0, "items": 0}
    for case in cases:
        if not case.questions:
            continue
        state = _remember(case, embedder)
        held["turns"] += len(state.turns)
        held["items"] += len(state.items)
        vectors = embedder.embed_queries([question.text for question in case.questions])
        for question, vector in zip(case.questions, vectors, strict=True):
            query = Query(question.text, vector, analyse(question.text))
            for mode in modes:
                for layer, covered in _covered(state, query, mode).items():
                    evidence = set(question.evidence)
                    shares = [len(evidence & found) / len(evidence) for found in covered]
                    recalls.setdefault((layer, mode), []).append(shares)
    for (layer, mode), rows in recalls.items():
        means = np.mean(rows, axis=0)
        low, high = bootstrap_interval([row[DEPTHS.index(10)] for row in rows])
        yield {
            "bench": "evidence_recall",
            "set": name,
            "n": len(rows),
            "embedder": None if mode == "lexical" else embedder.name,
            "layer": layer,
            "mode": mode,
            **{f"recall_at_{k}": round(float(m), 4) for k, m in zip(DEPTHS, means, strict=True)},
            "recall_at_10_low": round(low, 4),
            "recall_at_10_high": round(high, 4),
            **held,
        }


def _remember(case: Case, embedder: DiskCachedEmbedder) -> MemoryState:
    """The turns of a case and the facts that the rule reader finds in them."""
    turns = list({turn.id: turn for turns in case.conversations for turn in turns}.values())
    facts = [fact for turns in case.conversations for fact in RuleReader().read(turns)]
    items = [
        MemoryItem(str(number), fact.text, SCOPE, NOW, NOW, fact.kind, sources=fact.sources)
        for number, fact in enumerate(facts)
    ]
    state = MemoryState(embedder.dimension)
    said = [turn.index_text() for turn in turns]
    state.turns.add_many(turns, embedder.embed(said), [analyse(text) for text in said])
    if items:
        read = [item.text for item in items]
        state.items.add_many(items, embedder.embed(read), [analyse(text) for text in read])
    return state


def _covered(state: MemoryState, query: Query, mode: Mode) -> dict[str, list[set[str]]]:
    """For each layer, the turns that the best 1, 5, 10 and 20 results cover."""
    deepest = max(DEPTHS)
    turns = retrieve(state.turns, query, top_k=deepest, mode=mode)
    items = retrieve(state.items, query, top_k=deepest, mode=mode)
    both = turns_behind(state, query, items, top_k=deepest, mode=mode)
    return {
        "turns": [{hit.record.id for hit in turns[:k]} for k in DEPTHS],
        "items": [{source for hit in items[:k] for source in hit.record.sources} for k in DEPTHS],
        "both": [{hit.record.id for hit in both[:k]} for k in DEPTHS],
    }
