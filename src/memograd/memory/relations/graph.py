"""The relation model as an ONNX graph that multiplies in 8 bits.

One row of tokens goes through the encoder; what is made of its vectors (`model.py`) is not part of
the graph, so that a row is computed once whatever is asked of it. A graph holds some consecutive
layers, so that a row need not go through all of them. Activations are one byte.

Invariant: the graph computes what `tasks.relations.network` trains, up to the rounding of 8 bits
(`tests/memory/test_relation_model.py`).
"""

from __future__ import annotations

from typing import Any

from memograd.memory.embedders.quantised_graph import MICROSOFT, QuantisedGraph
from memograd.memory.relations.weights import Weights


def build_graph(weights: Weights, layers: range, *, signed_weights: bool) -> bytes:
    """The serialised ONNX model of these layers of the encoder.

    signed_weights: as `QuantisedGraph`'s.

    Input: `entered` float32 `[tokens, hidden]`: what the layers before give, or for the first one
    the sums of word, position and part embeddings.
    Output: `left` float32 `[tokens, hidden]`.
    """
    return _RelationGraph(weights, signed_weights).build(layers)


class _RelationGraph(QuantisedGraph):
    """The layers of the relation model's encoder."""

    def __init__(self, weights: Weights, signed_weights: bool) -> None:
        import numpy as np

        super().__init__(
            weights.vectors,
            hidden=weights.hidden,
            layer_norm_eps=weights.layer_norm_eps,
            signed=signed_weights,
        )
        self._weights = weights
        self._row = self.constant("row", np.array([1, -1, weights.hidden], np.int64))

    def build(self, layers: range) -> bytes:
        from onnx import TensorProto, helper

        x = "entered"
        if layers.start == 0:
            x = self.norm(x, "embeddings.norm")
        for number in layers:
            x = self._layer(x, f"layers.{number}")
        self.named_node("Identity", [x], "left")

        def tensor(name: str) -> Any:
            shape: list[str | int | None] = ["tokens", self._weights.hidden]
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

        return self.serialised("relations", [tensor("entered")], [tensor("left")])

    def _layer(self, x: str, name: str) -> str:
        """`[tokens, hidden]` to `[tokens, hidden]`: attention, then the feed-forward part."""
        quantised = self._quantise(x)
        mixed = self.node(
            "MultiHeadAttention",
            [
                *(
                    self.node("Reshape", [self._product(quantised, f"{name}.{part}"), self._row])
                    for part in ("query", "key", "value")
                ),
            ],
            domain=MICROSOFT,
            num_heads=self._weights.heads,
        )
        mixed = self.node("Reshape", [mixed, self.flat])
        mixed = self._product(self._quantise(mixed), f"{name}.attended")
        x = self.norm(self.node("Add", [mixed, x]), f"{name}.attended.norm")
        wide = self._product(self._quantise(x), f"{name}.wide", bias=False)
        wide = self.node("BiasGelu", [wide, self.vector(f"{name}.wide.bias")], domain=MICROSOFT)
        narrow = self._product(self._quantise(wide), f"{name}.narrow")
        return self.norm(self.node("Add", [narrow, x]), f"{name}.narrow.norm")

    def _quantise(self, x: str) -> tuple[str, str]:
        """uint8 `[tokens, width]` and the scales `[tokens, 1]`: x = scales * (bytes - 128)."""
        whole, scales, _ = self.in_bytes(x)
        return whole, self.by_token(scales)

    def _product(self, x: tuple[str, str], name: str, *, bias: bool = True) -> str:
        """x W^T (+ b), `[tokens, out]`, in 8 bits."""
        whole, scales = self._weights.matrices[name]
        product = self.node("Mul", [self.times(x[0], self.matrix(name, whole, scales)), x[1]])
        return self.node("Add", [product, self.vector(f"{name}.bias")]) if bias else product
