"""The encoder of multilingual-e5-small as an ONNX graph that multiplies in 8 bits.

Activations are two bytes, of which the second holds what the first leaves over. With one byte the
vectors were at a cosine of 0.9993 to float32, and that was not enough: texts of a conversation lie
so close together that recall at 20 fell by two points. With two it is 0.9999 and recall stays. What
comes out of the attention, a mean over tokens, needs one: that changes a cosine by 0.000002.

The word embeddings stay outside (they are 54 of the 72 MB, and a text needs few of their rows), so
the graph begins with vectors of words and ends with the mean over the tokens of each row.

Invariant: the graph computes BERT; its vectors have a cosine of at least 0.9995 to those of the
same weights in float32.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from memograd.memory.embedders.e5_weights import E5Weights
from memograd.memory.embedders.quantised_graph import LARGEST, MICROSOFT, QuantisedGraph

VERSION: Final = 2  # of what is built here: a cached file of another version is not used
_FINE: Final = 1 / 254  # the second byte of a token counts in this part of its scale


def build_graph(weights: E5Weights, *, signed_weights: bool) -> bytes:
    """The serialised ONNX model.

    signed_weights: as `QuantisedGraph`'s.

    Inputs: `words` float32 `[rows, tokens, hidden]`, the embeddings of the words, padded at the
    end; `lengths` int32 `[rows]`; `shares` float32 `[rows, 1, tokens]`, what each token counts in
    the mean (0 for padding). Output: `means` float32 `[rows, hidden]`, not normalised.
    """
    return _E5Graph(weights, signed_weights).build()


class _InBytes(NamedTuple):
    """Names of tensors: x = scales * ((first - 128) + (second - 128) / 254)."""

    first: str  # uint8 [tokens, width]
    second: str | None  # uint8 [tokens, width], or nothing
    scales: str  # float32 [tokens, 1]


class _E5Graph(QuantisedGraph):
    """The layers of e5."""

    def __init__(self, weights: E5Weights, signed_weights: bool) -> None:
        super().__init__(
            weights.vectors,
            hidden=weights.hidden,
            layer_norm_eps=weights.layer_norm_eps,
            signed=signed_weights,
        )
        self._weights = weights

    def build(self) -> bytes:
        from onnx import TensorProto, helper

        hidden = self._weights.hidden
        x = self._embedding_norm()
        shape = self.node("Shape", ["words"])
        x = self.node("Reshape", [x, self.flat])  # rows of tokens, except within attention
        for number in range(self._weights.layers):
            x = self._layer(x, shape, f"encoder.layer.{number}")
        means = self.node("MatMul", ["shares", self.node("Reshape", [x, shape])])
        self.named_node("Reshape", [means, self.flat], "means")

        def tensor(name: str, kind: int, *axes: str | int) -> Any:
            return helper.make_tensor_value_info(name, kind, axes)

        floats = TensorProto.FLOAT
        return self.serialised(
            "multilingual-e5-small",
            [
                tensor("words", floats, "rows", "tokens", hidden),
                tensor("lengths", TensorProto.INT32, "rows"),
                tensor("shares", floats, "rows", 1, "tokens"),
            ],
            [tensor("means", floats, "rows", hidden)],
        )

    def _embedding_norm(self) -> str:
        import numpy as np

        vectors = self._weights.vectors
        places = vectors["embeddings.position_embeddings.weight"]
        first_type = vectors["embeddings.token_type_embeddings.weight"][0]
        used = self.node(
            "Slice",
            [
                self.constant("places", places + first_type),
                self.constant("start", np.array([0], np.int64)),
                self.node("Shape", ["words"], start=1, end=2),
                self.constant("axis", np.array([0], np.int64)),
            ],
        )
        return self.norm(self.node("Add", ["words", used]), "embeddings.LayerNorm")

    def _layer(self, x: str, shape: str, name: str) -> str:
        """`[tokens, hidden]` to `[tokens, hidden]`: attention, then the feed-forward part."""
        import numpy as np

        attention = f"{name}.attention.self"
        quantised = self._quantise(x)
        parts = {
            "query": self._product(quantised, f"{attention}.query"),
            "key": self._product(quantised, f"{attention}.key"),
            "value": self._product(quantised, f"{attention}.value"),
        }
        biases = [self._weights.vectors[f"{attention}.{part}.bias"] for part in parts]
        mixed = self.node(
            "MultiHeadAttention",
            [
                *(self.node("Reshape", [part, shape]) for part in parts.values()),
                self.constant(f"{attention}.bias", np.concatenate(biases)),
                "lengths",
            ],
            domain=MICROSOFT,
            num_heads=self._weights.heads,
        )
        mixed = self.node("Reshape", [mixed, self.flat])
        x = self._residual(self._in_one_byte(mixed), x, f"{name}.attention.output")

        inner = f"{name}.intermediate.dense"
        wide = self._product(self._quantise(x), inner)
        wide = self.node("BiasGelu", [wide, self.vector(f"{inner}.bias")], domain=MICROSOFT)
        return self._residual(self._quantise(wide), x, f"{name}.output")

    def _residual(self, inner: _InBytes, x: str, name: str) -> str:
        """LayerNorm(x + W inner + b)."""
        product = self._product(inner, f"{name}.dense")
        product = self.node("Add", [product, self.vector(f"{name}.dense.bias")])
        # Not SkipLayerNormalization: this pair takes a third of its time.
        return self.norm(self.node("Add", [product, x]), f"{name}.LayerNorm")

    def _in_one_byte(self, x: str) -> _InBytes:
        """`[tokens, width]` in one byte alone."""
        whole, scales, _ = self.in_bytes(x)
        return _InBytes(whole, None, self.by_token(scales))

    def _quantise(self, x: str) -> _InBytes:
        """`[tokens, width]` in one byte, and what that leaves over in another."""
        import numpy as np

        first, scales, zeros = self.in_bytes(x)
        rough = self.node("DequantizeLinear", [first, scales, zeros], axis=0)
        rest = self.node("Sub", [x, rough])
        finer = self.node("Mul", [scales, self.constant("fine", np.array([_FINE], np.float32))])
        second = self.node("QuantizeLinear", [rest, finer, zeros], axis=0)
        return _InBytes(first, second, self.by_token(scales))

    def _product(self, x: _InBytes, name: str) -> str:
        """x W^T without the bias, `[tokens, out]`, in 8 bits."""
        import numpy as np

        dense = self._weights.matrices[f"{name}.weight"].dense()
        scales = np.abs(dense).max(axis=1) / LARGEST
        matrix = self.matrix(name, np.rint(dense / scales[:, None]), scales)
        product = self.times(x.first, matrix)
        if x.second is not None:
            second = self.times(x.second, matrix, scale="fine")
            product = self.node("Add", [product, second])
        return self.node("Mul", [product, x.scales])
