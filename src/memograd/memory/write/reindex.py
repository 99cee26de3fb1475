"""Computing anew what is computed from the journal: vectors, search terms, the Milvus index.

For another embedder, after a repair, or when the analysis of texts has changed. The journal is only
read. Stopped at any moment, the memory opens with the old embedder or with the new one, never with
a mixture: what is missing is computed when it is needed, and a process that has the memory open
with the old embedder is refused when it writes.

Invariant: afterwards every search answers as a memory that was filled with this embedder would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memograd.config import MemorySettings
from memograd.memory.journal import Journal
from memograd.memory.search.recall import Recall
from memograd.memory.state.store import MemoryStore, embedder_meta, journal_url

if TYPE_CHECKING:
    from memograd.memory.embedders import Embedder


def reindex(settings: MemorySettings, embedder: Embedder | None = None) -> dict[str, Any]:
    """Compute everything again with the settings' embedder (or the one given).

    Returns the embedder's name and dimension, and how many owners, items and turns there are.
    """
    from memograd.memory.embedders import embedder_from_settings

    embedder = embedder or embedder_from_settings(settings)
    embedder.embed(["a first text, to see that it works before anything is changed"])
    with Journal.open(journal_url(settings)) as journal:
        journal.reset_derived(embedder_meta(embedder))
    store = MemoryStore(settings, embedder)
    recall = Recall(store, reranker=None)
    try:
        report = {"owners": 0, "items": 0, "turns": 0}
        for owner in store.journal.owners():
            state = store.states.current(owner)
            report["owners"] += 1
            report["items"] += len(state.items)
            report["turns"] += len(state.turns)
        recall.rebuild_index()
    finally:
        recall.close()
        store.close()
    return {"embedder": embedder.name, "dimension": embedder.dimension} | report
