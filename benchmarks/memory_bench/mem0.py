"""mem0's side: its public `Memory` over Milvus Lite, with `infer=False` and telemetry off.

Its language model is configured but never called. Cosine instead of its default L2, which its own
scores need. Two things bypass its public interface, both in its favour: `fill` hands rows to its
vector store 1,000 at a time and flushes (its `add` takes one text at a time), and when its first
search in an existing store fails because Milvus Lite 3 wants the collection loaded, it is loaded
here and the search repeated.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

os.environ["MEM0_TELEMETRY"] = "False"

from memory_bench.stand_in import DIMENSION, StandInEmbedder

BATCH = 1_000
EMBEDDER = StandInEmbedder()


class Side:
    """A mem0 `Memory` in the folder that `open` names."""

    def __init__(self) -> None:
        self.embedder = EMBEDDER
        self.loaded_by_hand = False
        self._memory: Any = None

    def versions(self) -> str:
        names = {"mem0ai": "mem0ai", "pymilvus": "pymilvus", "milvus-lite": "Milvus Lite"}
        return " + ".join(f"{shown} {_version(name)}" for name, shown in names.items())

    def open(self, folder: str) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        os.environ["MEM0_DIR"] = folder  # else it writes into the home folder
        from mem0 import Memory
        from mem0.utils.factory import EmbedderFactory

        # Providers are a fixed list, so one name of it is given another class.
        EmbedderFactory.provider_to_class["fastembed"] = f"{__name__}.SharedEmbedder"
        self._memory = Memory.from_config(
            {
                "llm": {"provider": "openai", "config": {"api_key": "never-called"}},
                "embedder": {"provider": "fastembed", "config": {"embedding_dims": DIMENSION}},
                "vector_store": {
                    "provider": "milvus",
                    "config": {
                        "url": f"{folder}/vectors.db",
                        "token": "",
                        "embedding_model_dims": DIMENSION,
                        "metric_type": "COSINE",
                    },
                },
                "history_db_path": f"{folder}/history.db",
            }
        )

    def fill(self, texts: list[str], users: list[str]) -> None:
        """The rows that `add(..., infer=False)` would write, 1,000 at a time, then one flush."""
        store = self._memory.vector_store
        owned = [(text, users[number % len(users)]) for number, text in enumerate(texts)]
        for start in range(0, len(owned), BATCH):
            batch = owned[start : start + BATCH]
            store.insert(
                ids=[str(uuid.uuid4()) for _ in batch],
                vectors=[_as_list(EMBEDDER.embed([text])[0]) for text, _ in batch],
                payloads=[_payload(text, user) for text, user in batch],
            )
        store.client.flush(store.collection_name)

    def add(self, text: str, user: str) -> None:
        self._memory.add(text, user_id=user, infer=False)

    def search(self, query: str, user: str, top_k: int) -> list[str]:
        from pymilvus import MilvusException

        filters = {"user_id": user}
        try:
            found = self._memory.search(query, filters=filters, top_k=top_k)
        except MilvusException:
            if self.loaded_by_hand:
                raise
            store = self._memory.vector_store
            store.client.load_collection(store.collection_name)
            self.loaded_by_hand = True
            found = self._memory.search(query, filters=filters, top_k=top_k)
        return [hit["memory"] for hit in found["results"]]

    def keyword_scores(self, query: str, user: str) -> list[float]:
        """Raw scores of its keyword search; mem0 uses only those above zero."""
        found = self._memory.vector_store.keyword_search(query, filters={"user_id": user})
        return [hit.score for hit in found or []]

    def close(self) -> None:
        self._memory.close()
        self._memory.vector_store.client.close()


class SharedEmbedder:
    """What mem0's embedder factory makes: the stand-in behind mem0's interface."""

    def __init__(self, config: Any = None) -> None:
        self.config = config

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """The vector as a list, which is what mem0's stores take."""
        one = EMBEDDER.embed_queries if memory_action == "search" else EMBEDDER.embed
        return _as_list(one([text])[0])

    def embed_batch(self, texts: list[str], memory_action: str = "add") -> list[list[float]]:
        """One after the other, as mem0's own base class does."""
        return [self.embed(text, memory_action) for text in texts]


def _as_list(vector: Any) -> list[float]:
    values: list[float] = vector.tolist()
    return values


def _payload(text: str, user: str) -> dict[str, str]:
    from mem0.utils.lemmatization import lemmatize_for_bm25

    now = datetime.now(UTC).isoformat()
    return {
        "user_id": user,
        "role": "user",
        "data": text,
        "hash": hashlib.md5(text.encode()).hexdigest(),
        "created_at": now,
        "updated_at": now,
        "text_lemmatized": lemmatize_for_bm25(text),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(absent)"
