"""The relation model as an ONNX graph that multiplies in 8 bits.

One row of tokens goes through the encoder; what is made of its vectors (`model.py`) is not part of
the graph, so that a row is computed once whatever is asked of it. A graph holds some consecutive
layers, so that a row need not go through all of them. Activations are one byte. Behind the last
layer nobody asks for the vectors of what came before the message, so it does not make them.

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
    the sums of word, position and part embeddings; with `skips_first`, `first` int64 `[1]`: of the
    first so many tokens the last layer makes nothing.
    Output: `left` float32 `[tokens, hidden]`, or `[tokens - first, hidden]`.
    """
    return _RelationGraph(weights, signed_weights).build(layers)


def skips_first(weights: Weights, layers: range) -> bool:
    """Whether a graph of these layers has an input `first`: it ends the encoder, and does not begin
    it."""
    return 0 < layers.start < layers.stop == weights.layers


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
        skips = skips_first(self._weights, layers)
        for number in layers:
            x = self._layer(x, f"layers.{number}", skip=skips and number == layers[-1])
        self.named_node("Identity", [x], "left")

        def tensor(name: str, tokens: str) -> Any:
            shape: list[str | int | None] = [tokens, self._weights.hidden]
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

        first = helper.make_tensor_value_info("first", TensorProto.INT64, [1])
        inputs = [tensor("entered", "tokens"), *([first] if skips else [])]
        return self.serialised("relations", inputs, [tensor("left", "left tokens")])

    def _layer(self, x: str, name: str, *, skip: bool) -> str:
        """`[tokens, hidden]` to `[tokens, hidden]`: attention, then the feed-forward part.

        skip: leave the `first` tokens out, once the others have attended to them.
        """
        quantised = self._quantise(x)
        asking = quantised
        if skip:
            x = self._behind_first(x)
            asking = self._behind_first(quantised[0]), self._behind_first(quantised[1])
            self.zeros = None  # there are fewer tokens from here on
        read = {"query": asking, "key": quantised, "value": quantised}
        mixed = self.node(
            "MultiHeadAttention",
            [
                self.node("Reshape", [self._product(of, f"{name}.{part}"), self._row])
                for part, of in read.items()
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

    def _behind_first(self, x: str) -> str:
        import numpy as np

        end = self.constant("end", np.array([2**31], np.int64))
        return self.node("Slice", [x, "first", end])

    def _quantise(self, x: str) -> tuple[str, str]:
        """uint8 `[tokens, width]` and the scales `[tokens, 1]`: x = scales * (bytes - 128)."""
        whole, scales, _ = self.in_bytes(x)
        return whole, self.by_token(scales)

    def _product(self, x: tuple[str, str], name: str, *, bias: bool = True) -> str:
        """x W^T (+ b), `[tokens, out]`, in 8 bits."""
        whole, scales = self._weights.matrices[name]
        product = self.node("Mul", [self.times(x[0], self.matrix(name, whole, scales)), x[1]])
        return self.node("Add", [product, self.vector(f"{name}.bias")]) if bias else product
