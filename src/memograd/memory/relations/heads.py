"""What a head reads of an encoded row, and what it says: the mean of a span's tokens beside that of
the message's, through two layers.

Invariant: pure functions of arrays; they cost next to nothing beside the encoder.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memograd.memory.relations.rows import MESSAGE, RelationRow, Span
from memograd.memory.relations.weights import Weights


def said(row: RelationRow) -> np.ndarray:
    """bool `[tokens]`: which are of the message."""
    found: np.ndarray = np.asarray(row.parts) == MESSAGE
    return found


def beside(row: RelationRow, spans: Sequence[Span], encoded: np.ndarray) -> np.ndarray:
    """float32 `[spans, 2 hidden]`: each span's mean beside the message's."""
    shares = np.zeros((len(spans) + 1, len(encoded)), np.float32)
    for number, (start, end) in enumerate(spans):
        shares[number, start:end] = 1 / (end - start)
    spoken = said(row)
    shares[-1, spoken] = 1 / spoken.sum()
    means = shares @ encoded
    return np.concatenate([means[:-1], np.broadcast_to(means[-1], means[:-1].shape)], axis=1)


def through(both: np.ndarray, head: str, weights: Weights) -> np.ndarray:
    """float32 `[n, labels]` of `[n, 2 hidden]`."""
    vectors = weights.vectors
    inner = np.tanh(both @ vectors[f"{head}.inner.weight"].T + vectors[f"{head}.inner.bias"])
    return np.asarray(inner @ vectors[f"{head}.outer.weight"].T + vectors[f"{head}.outer.bias"])


def softmax(logits: np.ndarray) -> np.ndarray:
    """float32 `[n, labels]`: probabilities, each row sums to 1."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), dtype=np.float32)
