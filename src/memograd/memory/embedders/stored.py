"""An embedder that keeps its vectors in a file, so that no text is ever embedded twice.

Training walks through the same texts in every run; embedding them is most of the work. Invariant:
the vectors equal those of the embedder inside, to the bit, also when several processes share the
file (`tests/memory/test_embedders_stored.py`). Imports the standard library; may import
`embedder`.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memograd.memory.embedders.embedder import Embedder, check_vectors

if TYPE_CHECKING:
    import numpy as np

BATCH: Final = 256


class StoredEmbedder:
    """Wraps any embedder; the file is made when it is missing. One process a thread may use it."""

    def __init__(self, inner: Embedder, path: Path) -> None:
        self._inner, self._path = inner, path
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(self._open()) as file, file:
            file.execute(
                "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)"
            )

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

        keys = {text: self._key(role, text) for text in texts}
        found: dict[str, np.ndarray] = {}
        with closing(self._open()) as file:
            for text, key in keys.items():
                row = file.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    found[text] = np.frombuffer(row[0], np.float32)
            missing = [text for text in keys if text not in found]
            for start in range(0, len(missing), BATCH):
                batch = missing[start : start + BATCH]
                made = check_vectors(embed(batch), len(batch), self.dimension, self.name)
                rows = [
                    (keys[text], np.asarray(vector, np.float32).tobytes())
                    for text, vector in zip(batch, made, strict=True)
                ]
                with file:
                    file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
                found |= dict(zip(batch, made, strict=True))
        vectors = [found[text] for text in texts]
        return np.stack(vectors) if vectors else np.zeros((0, self.dimension), np.float32)

    def _key(self, role: str, text: str) -> bytes:
        content = f"{self.name}\0{self.dimension}\0{role}\0{text}"
        return hashlib.sha256(content.encode("utf-8", errors="surrogatepass")).digest()

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=60)
