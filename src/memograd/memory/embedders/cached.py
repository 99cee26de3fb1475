"""An embedder that remembers what it embedded last, up to a number of texts.

Queries and passages are kept apart, because models may embed them differently. Invariant: the
vectors equal those of the embedder inside, which sees every text at most once while it is held, and
never more than `max_entries` are held.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from memograd.memory.embedders.embedder import Embedder, check_vectors

if TYPE_CHECKING:
    import numpy as np

MAX_ENTRIES: Final = 4_096  # 6 MB of vectors at 384 dimensions

_Key = tuple[str, bytes]


class CachedEmbedder:
    """Wraps any embedder; checks the vectors that it makes. Safe to call from several threads."""

    def __init__(self, inner: Embedder, max_entries: int = MAX_ENTRIES) -> None:
        self._inner, self._max_entries = inner, max_entries
        self._held: OrderedDict[_Key, np.ndarray] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The name of the embedder inside: the vectors are the same."""
        return self._inner.name

    @property
    def dimension(self) -> int:
        """The length of one vector."""
        return self._inner.dimension

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, dimension]`, rows of length 1, of statements."""
        return self._look_up("passage", texts, self._inner.embed)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, dimension]`, rows of length 1, of questions."""
        return self._look_up("query", texts, self._inner.embed_queries)

    def _look_up(
        self, role: str, texts: Sequence[str], embed: Callable[[Sequence[str]], np.ndarray]
    ) -> np.ndarray:
        import numpy as np

        keys = [(role, _digest(text)) for text in texts]
        with self._lock:
            found = {key: self._held[key] for key in keys if key in self._held}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            made = check_vectors(
                embed(list(missing.values())), len(missing), self.dimension, self.name
            )
            # Copies, or one small vector would keep its whole batch in memory.
            found |= {key: row.copy() for key, row in zip(missing, made, strict=True)}
        with self._lock:
            for key in keys:
                self._held[key] = found[key]
                self._held.move_to_end(key)
            while len(self._held) > self._max_entries:
                self._held.popitem(last=False)
        rows = [found[key] for key in keys]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)


def _digest(text: str) -> bytes:
    # A text that is no valid Unicode gets its sentence from the embedder, not from here.
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).digest()
