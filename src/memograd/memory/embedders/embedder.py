"""What every embedder promises, and the check that it keeps the promise.

A store remembers the `name` and `dimension` of the embedder that made it, so the name must change
whenever the vectors do. Invariant: both methods return float32 `[n, dimension]` with finite rows of
length 1, for any n including 0 and any text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from memograd.errors import MemogradError

if TYPE_CHECKING:
    import numpy as np

LENGTH_TOLERANCE: Final = 1e-3


class Embedder(Protocol):
    """Anything that turns texts into unit vectors; safe to call from several threads."""

    @property
    def name(self) -> str:
        """Identifies the vectors: two embedders of one name must agree on every text."""
        ...

    @property
    def dimension(self) -> int:
        """The length of one vector."""
        ...

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """The texts as something to be found: float32 `[n, dimension]`, rows of length 1."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """The texts as something that is looked for: float32 `[n, dimension]`, rows of length 1."""
        ...


def check_vectors(vectors: np.ndarray, count: int, dimension: int, name: str) -> np.ndarray:
    """`vectors` as float32, if they are `count` unit vectors of `dimension`.

    Raises MemogradError that names the embedder otherwise: such vectors would spoil a memory.
    """
    import numpy as np

    if vectors.shape != (count, dimension):
        raise MemogradError(
            f"The embedder {name!r} returned an array of shape {vectors.shape} for {count} texts,"
            f" not {(count, dimension)}."
        )
    checked = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(checked, axis=1)
    if not np.all(np.abs(lengths - 1.0) < LENGTH_TOLERANCE):  # false for NaN as well
        raise MemogradError(
            f"The embedder {name!r} returned a vector that is not finite or not of length 1."
        )
    return checked
