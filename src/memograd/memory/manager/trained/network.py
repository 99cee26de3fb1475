"""The operation head's network in numpy: what a running memory computes, without torch.

One token for the fact and one for every related item go through a small pre-norm Transformer
(arXiv:1706.03762, norm first as in arXiv:2002.04745). The fact's token answers ADD and NONE, each
item's token UPDATE and DELETE of that item: a pointer, whatever the number and order of the items.
A pointer's logit has the logarithm of the number of items taken off, so that before anything is
learnt the four operations are equally likely, however many items there are to point at.
`memograd.tasks.memory_ops.learning.head` trains the same function with torch.

    x_0 = fact_D W_fact + fact_F W_fact_features        x_i = (item_i, |fact - item_i|) W_item
                                                              + pairs_i W_pair

Invariant: equal to the torch module to float rounding, for any weights and any observations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from memograd.memory.manager.trained.observation import ADD, NONE, SLOTS, Observation

Weights = Mapping[str, np.ndarray]
NORM_EPSILON = 1e-5


@dataclass(frozen=True, slots=True)
class Shape:
    """dimension: of the embedder's vectors. width, layers, heads: of the Transformer."""

    dimension: int
    width: int = 96
    layers: int = 2
    heads: int = 4

    def to_json(self) -> dict[str, Any]:
        """Plain numbers by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Batch:
    """B observations as arrays: `fact_BD`, `fact_BF`, `items_BKD`, `pairs_BKP`, `allowed_BA`."""

    fact_BD: np.ndarray
    fact_BF: np.ndarray
    items_BKD: np.ndarray
    pairs_BKP: np.ndarray
    allowed_BA: np.ndarray

    def __len__(self) -> int:
        return len(self.fact_BD)

    @classmethod
    def of(cls, observations: Sequence[Observation]) -> Batch:
        """All observations, stacked."""
        return cls(
            np.stack([one.fact_D for one in observations]),
            np.stack([one.fact_F for one in observations]),
            np.stack([one.items_KD for one in observations]),
            np.stack([one.pairs_KP for one in observations]),
            np.stack([one.allowed_A for one in observations]),
        )

    def take(self, rows: np.ndarray) -> Batch:
        """Some of the observations, by number."""
        return Batch(
            self.fact_BD[rows],
            self.fact_BF[rows],
            self.items_BKD[rows],
            self.pairs_BKP[rows],
            self.allowed_BA[rows],
        )


def logits_BA(weights: Weights, shape: Shape, batch: Batch) -> np.ndarray:
    """Unnormalised log-probabilities of all actions, float32; -inf where not allowed."""
    count_K = batch.items_BKD.shape[1]
    present_BK = batch.allowed_BA[:, 2 + count_K :]
    fact_BW = (
        _linear(weights, "fact", batch.fact_BD)
        + _linear(weights, "fact_features", _scaled(weights, "fact_features", batch.fact_BF))
    )  # fmt: skip
    beside_BKD = np.abs(batch.items_BKD - batch.fact_BD[:, None])
    items_BKW = _linear(
        weights, "item", np.concatenate([batch.items_BKD, beside_BKD], axis=2)
    ) + _linear(weights, "pair", _scaled(weights, "pair", batch.pairs_BKP))
    x_BTW = np.concatenate([fact_BW[:, None], items_BKW], axis=1)
    seen_BT = np.concatenate([np.ones((len(batch), 1), bool), present_BK], axis=1)
    for layer in range(shape.layers):
        name = f"layers.{layer}"
        x_BTW = x_BTW + _attention(
            weights, name, _norm(weights, f"{name}.norm1", x_BTW), seen_BT, shape.heads
        )
        hidden = _linear(weights, f"{name}.up", _norm(weights, f"{name}.norm2", x_BTW))
        x_BTW = x_BTW + _linear(weights, f"{name}.down", np.maximum(hidden, 0.0))
    x_BTW = _norm(weights, "norm", x_BTW)
    whole_B2 = _linear(weights, "whole", x_BTW[:, 0])
    each_BK2 = _linear(weights, "each", x_BTW[:, 1:])
    each_BK2 = each_BK2 - np.log(np.maximum(present_BK.sum(axis=1), 1))[:, None, None]
    raw_BA = np.concatenate([whole_B2, each_BK2[:, :, 0], each_BK2[:, :, 1]], axis=1)
    return np.where(batch.allowed_BA, raw_BA, -np.inf).astype(np.float32)


def probabilities_BA(logits: np.ndarray) -> np.ndarray:
    """Softmax over the last axis; actions that are not allowed have probability 0."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    result: np.ndarray = shifted / shifted.sum(axis=-1, keepdims=True)
    return result


def writing_worth(logits_A: np.ndarray) -> float:
    """Log odds of writing a statement (ADD or any UPDATE) against leaving it (NONE)."""
    writing = logits_A[[ADD, *range(2, 2 + SLOTS)]]
    highest = float(writing.max())
    if not np.isfinite(highest):
        return -np.inf
    total = highest + float(np.log(np.exp(writing - highest).sum()))
    return total - float(logits_A[NONE])


def _linear(weights: Weights, name: str, x: np.ndarray) -> np.ndarray:
    result: np.ndarray = x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return result


def _scaled(weights: Weights, name: str, x: np.ndarray) -> np.ndarray:
    result: np.ndarray = (x - weights[f"{name}_mean"]) / weights[f"{name}_std"]
    return result


def _norm(weights: Weights, name: str, x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    result: np.ndarray = (
        centred / np.sqrt(variance + NORM_EPSILON) * weights[f"{name}.weight"]
        + weights[f"{name}.bias"]
    )
    return result


def _attention(
    weights: Weights, name: str, x_BTW: np.ndarray, seen_BT: np.ndarray, heads: int
) -> np.ndarray:
    batch, tokens, width = x_BTW.shape
    query, key, value = (
        part.reshape(batch, tokens, heads, width // heads).transpose(0, 2, 1, 3)
        for part in np.split(_linear(weights, f"{name}.qkv", x_BTW), 3, axis=-1)
    )
    scores_BHTT = query @ key.transpose(0, 1, 3, 2) / np.sqrt(width // heads)
    scores_BHTT = np.where(seen_BT[:, None, None], scores_BHTT, -np.inf)
    mixed = probabilities_BA(scores_BHTT) @ value
    return _linear(weights, f"{name}.out", mixed.transpose(0, 2, 1, 3).reshape(x_BTW.shape))
