"""Embedders that remember: the last texts in memory (`CachedEmbedder`), or every text in a file.

Training walks through the same texts in every run, and embedding them is most of the work, so
`StoredEmbedder` embeds no text twice. A name does not say everything about an embedder (the model
in a folder may be another one today), so one short text is embedded when the file is opened: where
its vector is not the one in the file, a new generation of vectors begins. Queries and passages are
kept apart, because models may embed them differently.

Invariants: the vectors equal those of the embedder inside, in a file to the bit and also when
several processes share it; never more than `max_entries` are held in memory.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memograd.errors import MemogradError
from memograd.memory.embedders.embedder import Embedder, check_vectors
from memograd.memory.text_caches import hold

if TYPE_CHECKING:
    import numpy as np

MAX_ENTRIES: Final = 4_096  # 6 MB of vectors at 384 dimensions
BATCH: Final = 256
CHECKED: Final = "memograd 你好"
SAME: Final = 1e-3  # endpoints and other machines round otherwise, other models differ by more
_Key = tuple[str, bytes]


class _Remembering(ABC):
    """An embedder around another one, which is asked only for what is not remembered."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner

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

    @abstractmethod
    def _look_up(
        self, role: str, texts: Sequence[str], embed: Callable[[Sequence[str]], np.ndarray]
    ) -> np.ndarray:
        """The vectors of the texts in that role; `embed` makes those that are missing."""


class CachedEmbedder(_Remembering):
    """Wraps any embedder; checks the vectors that it makes. Safe to call from several threads."""

    def __init__(self, inner: Embedder, max_entries: int = MAX_ENTRIES) -> None:
        super().__init__(inner)
        self._max_entries = max_entries
        self._held: OrderedDict[_Key, np.ndarray] = OrderedDict()
        self._lock = threading.Lock()
        hold(self)

    def drop_texts(self) -> None:
        """See `TextHolder`: a vector tells what its text was about."""
        with self._lock:
            self._held.clear()

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


class StoredEmbedder(_Remembering):
    """Wraps any embedder; the file is made when it is missing.

    Processes and threads may share the file. Raises MemogradError when it cannot be used.
    """

    def __init__(self, inner: Embedder, path: Path) -> None:
        super().__init__(inner)
        self._path = path
        [check] = check_vectors(inner.embed([CHECKED]), 1, inner.dimension, inner.name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MemogradError(f"The folder {path.parent} cannot be made ({error}).") from None
        with self._open() as file, file:
            file.execute("BEGIN IMMEDIATE")  # another process may be doing the same
            for table in ("vectors", "checks"):
                file.execute(
                    f"CREATE TABLE IF NOT EXISTS {table}"
                    " (key BLOB PRIMARY KEY, vector BLOB NOT NULL)"
                )
            self._generation = self._generation_of(check, file)

    def _look_up(
        self, role: str, texts: Sequence[str], embed: Callable[[Sequence[str]], np.ndarray]
    ) -> np.ndarray:
        import numpy as np

        keys = {text: self._key(role, text) for text in texts}
        found: dict[str, np.ndarray] = {}
        with self._open() as file:
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

    def _generation_of(self, check: np.ndarray, file: sqlite3.Connection) -> int:
        """Number of the generation whose check vector this is; a new one where there is none."""
        import numpy as np

        number = 0
        while True:
            key = self._key("check", str(number), 0)
            row = file.execute("SELECT vector FROM checks WHERE key = ?", (key,)).fetchone()
            if row is None:
                vector = np.asarray(check, np.float32).tobytes()
                file.execute("INSERT INTO checks VALUES (?, ?)", (key, vector))
                return number
            if np.abs(np.frombuffer(row[0], np.float32) - check).max() < SAME:
                return number
            number += 1

    def _key(self, role: str, text: str, generation: int | None = None) -> bytes:
        number = self._generation if generation is None else generation
        again = f"\0{number}" if number else ""
        content = f"{self.name}\0{self.dimension}{again}\0{role}\0{text}"
        return hashlib.sha256(content.encode("utf-8", errors="surrogatepass")).digest()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=60)) as file:
                yield file
        except sqlite3.Error as error:
            raise MemogradError(
                f"The file of vectors {self._path} cannot be used ({error}): remove it, and it is"
                " made anew."
            ) from None


def _digest(text: str) -> bytes:
    # A text that is no valid Unicode gets its sentence from the embedder, not from here.
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).digest()
