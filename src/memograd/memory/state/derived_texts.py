"""Vector and search terms of every remembered text: computed once, kept beside the journal.

What an embedder and `analyse` make of a text depends on the text alone, so it is kept by content
hash, for each owner apart: purging one owner neither leaves nor takes anything of another. A
bounded cache in the process holds what was just used.

Invariant: what comes back for a text equals what embedder and analysis say of it, whether it came
from the process, the table or the model.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from memograd.memory.analysis import analyse
from memograd.memory.journal import DerivedText, Journal
from memograd.memory.records.items import content_hash

if TYPE_CHECKING:
    import numpy as np

    from memograd.memory.embedders import Embedder

HELD_TEXTS: Final = 20_000  # 30 MB of vectors at 384 dimensions
EMBED_BATCH: Final = 256
FULL_SCAN_FROM: Final = 2_000

Derivation = tuple["np.ndarray", tuple[str, ...]]


class DerivedTexts:
    """Looks up, or computes, what is derived from an owner's texts."""

    def __init__(self, journal: Journal, embedder: Embedder) -> None:
        self._journal, self._embedder = journal, embedder
        self._held: OrderedDict[tuple[str, str], DerivedText] = OrderedDict()
        self._lock = threading.Lock()

    def prepare(self, owner: str, texts: Sequence[str]) -> list[DerivedText]:
        """What has to be stored with the events that bring these texts, each once."""
        found, _ = self._find(owner, texts, stored={})
        return list(found.values())

    def derive(self, owner: str, texts: Sequence[str]) -> list[Derivation]:
        """`(vector [d], terms)` of each text; nothing is stored, for no event may ever hold it."""
        found, _ = self._find(owner, texts, self._stored(owner, texts))
        return _in_order(found, texts)

    def look_up(self, owner: str, texts: Sequence[str], *, seen: int) -> list[Derivation]:
        """`(vector [d], terms)` of each text that stands in the owner's events.

        What the table does not hold is computed and stored, unless a purge came after the event
        `seen`, the last one that the caller has read: then it may have erased these texts.
        """
        found, computed = self._find(owner, texts, self._stored(owner, texts))
        if computed:
            self._journal.store_derived(computed, embedder=self._embedder.name, purged_until=seen)
        return _in_order(found, texts)

    def forget(self, owner: str | None = None) -> None:
        """Drop what the process holds of an owner, or all of it."""
        with self._lock:
            for key in [key for key in self._held if owner is None or key[0] == owner]:
                del self._held[key]

    def _find(
        self, owner: str, texts: Sequence[str], stored: Mapping[str, DerivedText]
    ) -> tuple[dict[str, DerivedText], list[DerivedText]]:
        """The derivation of every text by content hash, and those that had to be computed.

        A vector of another length was made by another embedder and counts as missing.
        """
        by_hash = {content_hash(text): text for text in texts}
        found: dict[str, DerivedText] = {}
        for key in by_hash:
            held = self._get(owner, key) or stored.get(key)
            if held is not None and len(held.vector) == self._embedder.dimension:
                found[key] = held
        missing = [key for key in by_hash if key not in found]
        computed = []
        for start in range(0, len(missing), EMBED_BATCH):
            batch = missing[start : start + EMBED_BATCH]
            vectors = self._embedder.embed([by_hash[key] for key in batch])
            for key, vector in zip(batch, vectors, strict=True):
                found[key] = DerivedText(owner, key, vector, analyse(by_hash[key]))
                computed.append(found[key])
        if len(found) <= FULL_SCAN_FROM:  # more than that goes into a state, which holds it
            self._hold(list(found.values()))
        return found, computed

    def _stored(self, owner: str, texts: Sequence[str]) -> dict[str, DerivedText]:
        """What the table holds of the texts that the process does not."""
        hashes = {content_hash(text) for text in texts}
        missing = {key for key in hashes if self._get(owner, key) is None}
        if not missing:
            return {}
        # One scan of the owner's rows is faster than thousands of look-ups.
        wanted = None if len(missing) > FULL_SCAN_FROM else list(missing)
        stored = self._journal.derived(owner, wanted)
        return {key: derived for key, derived in stored.items() if key in missing}

    def _get(self, owner: str, key: str) -> DerivedText | None:
        with self._lock:
            held = self._held.get((owner, key))
            if held is not None:
                self._held.move_to_end((owner, key))
            return held

    def _hold(self, texts: Sequence[DerivedText]) -> None:
        with self._lock:
            for text in texts:
                self._held[(text.owner, text.content_hash)] = text
            while len(self._held) > HELD_TEXTS:
                self._held.popitem(last=False)


def _in_order(found: Mapping[str, DerivedText], texts: Sequence[str]) -> list[Derivation]:
    derived = [found[content_hash(text)] for text in texts]
    return [(one.vector, one.terms) for one in derived]
