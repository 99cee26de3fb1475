"""A second, slower look at the best hits by a model that reads query and text together.

Invariant: a reranker decides the order of the hits it is shown and nothing else: which hits those
are, and their fused scores, stay as they were.
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from memograd.errors import BadInput, MemogradError

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

SHOWN_PER_RESULT: Final = 3


class Reranker(Protocol):
    """Anything that says how well each text answers a query."""

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """One finite number a text, higher is better; any unit."""
        ...


class CrossEncoderReranker:
    """A cross-encoder that sentence-transformers can load: the id or the folder of a model.

    The model loads with the first query, on the CPU unless `device` says otherwise. Raises BadInput
    when the package is missing, or when the model cannot be loaded or gives more than one number
    for a pair.
    """

    def __init__(self, model: str | os.PathLike[str], *, device: str = "cpu") -> None:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise BadInput(
                "A cross-encoder needs the Python package sentence-transformers, which is missing:"
                " run pip install 'memograd[minilm]'."
            )
        self.name = os.fspath(model)
        self._device = device
        self._model: CrossEncoder | None = None

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """The model's score of each pair of query and text."""
        if not texts:
            return []
        scores = self._loaded().predict([(query, text) for text in texts], show_progress_bar=False)
        return [float(score) for score in scores]

    def _loaded(self) -> CrossEncoder:
        if self._model is None:
            from sentence_transformers import CrossEncoder

            try:
                model = CrossEncoder(self.name, device=self._device)
            except (OSError, ValueError) as error:
                raise BadInput(
                    f"The cross-encoder {self.name!r} cannot be loaded: give the folder of a"
                    f" sentence-transformers model, or the id of one ({_first_line(error)})."
                ) from error
            if model.num_labels != 1:
                raise BadInput(
                    f"{self.name!r} gives {model.num_labels} numbers for a pair: a reranker needs a"
                    " cross-encoder with one."
                )
            self._model = model
        return self._model


def checked_scores(reranker: Reranker, query: str, texts: Sequence[str]) -> list[float]:
    """The reranker's scores. Raises MemogradError unless they are one finite number a text."""
    scores = [float(score) for score in reranker.score(query, texts)]
    if len(scores) != len(texts) or not all(map(math.isfinite, scores)):
        raise MemogradError(
            f"The reranker must give one finite number a text; it gave {len(scores)} for"
            f" {len(texts)}, {sum(map(math.isfinite, scores))} of them finite."
        )
    return scores


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".")
