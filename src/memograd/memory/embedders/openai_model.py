"""Embeddings from any OpenAI-compatible endpoint (`POST /embeddings`).

Batches stay below what servers accept in one request, in number and in size. Invariant: whatever
the server answers, the caller gets unit vectors in the order of the texts, or one sentence.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from memograd.errors import BadInput, MemogradError
from memograd.memory.chat.openai_endpoint import OpenAIEndpoint

if TYPE_CHECKING:
    import numpy as np

# Tokens never outnumber UTF-8 bytes, so bytes keep both below OpenAI's limits of 8,192 tokens a
# text and 300,000 a request.
MAX_TEXT_BYTES: Final = 8_000
MAX_BATCH_BYTES: Final = 250_000
MAX_BATCH_TEXTS: Final = 256
EMPTY: Final = "(empty)"  # servers refuse an empty text
SHORTENABLE: Final = "text-embedding-3"  # the models that make vectors of a wished-for length


class OpenAIEmbedder:
    """`openai:<model>`. Reads the first 8,000 bytes of a text and ignores the rest.

    dimension: what the model must return, or is asked for where it can shorten its vectors; None:
    found out by a first call. Raises BadInput for a key or model that the server refuses,
    MemogradError when it cannot be reached or answers something else than vectors.
    """

    def __init__(self, model: str, endpoint: OpenAIEndpoint, dimension: int | None = None) -> None:
        self.name = f"openai:{model}"
        self._model, self._endpoint = model, endpoint
        self._client = endpoint.client()
        self._wanted, self._found = dimension, dimension
        self._lock = threading.Lock()

    @property
    def dimension(self) -> int:
        """The length of one vector; the first use may ask the server."""
        with self._lock:
            if self._found is None:
                self._found = self._request(["dimension"]).shape[1]
            return self._found

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, dimension]`, rows of length 1."""
        import numpy as np

        parts = [np.zeros((0, self.dimension), dtype=np.float32)]
        for batch in _batches([_prepare(text) for text in texts]):
            vectors = self._request(batch)
            if vectors.shape[1] != self.dimension:
                raise BadInput(
                    f"The embedder {self.name!r} returned vectors of {vectors.shape[1]} dimensions,"
                    f" not {self.dimension}: correct the setting dimension or choose another model."
                )
            parts.append(vectors)
        return np.concatenate(parts)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """The same vectors as `embed`: the protocol makes no difference."""
        return self.embed(texts)

    def _request(self, batch: Sequence[str]) -> np.ndarray:
        """float32 `[n, any dimension]`, rows of length 1."""
        options: dict[str, Any] = {}
        if self._wanted is not None and self._model.startswith(SHORTENABLE):
            options["dimensions"] = self._wanted
        with self._endpoint.explained(f"embed texts with the model {self._model!r}"):
            answer = self._client.embeddings.create(
                model=self._model, input=list(batch), encoding_format="float", **options
            )
        return self._unit_vectors(answer, len(batch))

    def _unit_vectors(self, answer: Any, count: int) -> np.ndarray:
        import numpy as np

        try:
            rows = sorted(answer.data, key=lambda row: row.index)
            vectors = np.asarray([row.embedding for row in rows], dtype=np.float64)
            if [row.index for row in rows] != list(range(count)) or vectors.ndim != 2:
                raise ValueError
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            if not np.all(np.isfinite(lengths) & (lengths > 0)):
                raise ValueError
        except (AttributeError, TypeError, ValueError):
            raise MemogradError(
                f"{self._endpoint.shown} answered something that is not {count} embeddings of the"
                f" model {self._model!r}: check OPENAI_BASE_URL and the model."
            ) from None
        return np.asarray(vectors / lengths, dtype=np.float32)


def _prepare(text: str) -> str:
    try:
        cut = text.encode("utf-8")[:MAX_TEXT_BYTES].decode("utf-8", errors="ignore")
    except UnicodeEncodeError:
        raise BadInput(
            f"The text {text[:40]!r} is not valid Unicode (half a surrogate pair): repair it where"
            " it was read."
        ) from None
    return cut if cut.strip() else EMPTY


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode("utf-8"))
        if batch and (len(batch) == MAX_BATCH_TEXTS or size + length > MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch
