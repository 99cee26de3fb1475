"""Vector and search terms of every remembered text: computed once, kept beside the journal.

What an embedder and `analyse` make of a text depends on the text alone, so it is kept by content
hash, for each owner apart: purging one owner neither leaves nor takes anything of another. A
bounded cache in the process holds what was just used.

Invariant: what comes back for a text equals what embedder and analysis say of it, whether it came
from the process, the table or the model (`tests/memory/test_derived_texts.py`). May import
`analysis`, `embedders`, `items` and `journal`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from memograd.memory.analysis import analyse
from memograd.memory.items import content_hash
from memograd.memory.journal import DerivedText, Journal

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
        """What has to be stored with new texts: derivations that the process does not hold yet."""
        hashes = {content_hash(text): text for text in texts}
        missing = [key for key in hashes if self._get(owner, key) is None]
        return self._compute(owner, [hashes[key] for key in missing])

    def look_up(self, owner: str, texts: Sequence[str]) -> list[Derivation]:
        """`(vector [d], terms)` of each text; what no table holds is computed and stored."""
        hashes = [content_hash(text) for text in texts]
        found = {key: held for key in set(hashes) if (held := self._get(owner, key)) is not None}
        missing = {key: text for key, text in zip(hashes, texts, strict=True) if key not in found}
        if missing:
            # One scan of the owner's rows is faster than thousands of look-ups.
            wanted = None if len(missing) > FULL_SCAN_FROM else list(missing)
            stored = {
                key: derived
                for key, derived in self._journal.derived(owner, wanted).items()
                if key in missing
            }
            computed = self._compute(
                owner, [text for key, text in missing.items() if key not in stored]
            )
            if computed:
                self._journal.store_derived(computed)
            found |= stored | {derived.content_hash: derived for derived in computed}
            if wanted is not None:  # a whole owner goes into a state, which holds it from then on
                self._hold(list(stored.values()))
        return [(found[key].vector, found[key].terms) for key in hashes]

    def forget(self, owner: str | None = None) -> None:
        """Drop what the process holds of an owner, or all of it."""
        with self._lock:
            for key in [key for key in self._held if owner is None or key[0] == owner]:
                del self._held[key]

    def _compute(self, owner: str, texts: Sequence[str]) -> list[DerivedText]:
        computed = []
        for start in range(0, len(texts), EMBED_BATCH):
            batch = texts[start : start + EMBED_BATCH]
            vectors = self._embedder.embed(batch)
            computed += [
                DerivedText(owner, content_hash(text), vector, analyse(text))
                for text, vector in zip(batch, vectors, strict=True)
            ]
        self._hold(computed)
        return computed

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
