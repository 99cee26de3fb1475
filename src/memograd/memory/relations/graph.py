"""The relation model as an ONNX graph that multiplies in 8 bits.

One row of tokens goes through the encoder; what is made of its vectors (`model.py`) is not part of
the graph, so that a row is computed once whatever is asked of it. Weights are one byte each, with
one scale for each output; activations are one byte with one scale for each token. Attention,
LayerNorm and GELU are float32.

Invariant: the graph computes what `tasks.relations.network` trains, up to the rounding of 8 bits
(`tests/memory/test_relation_model.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memograd.memory.embedders.e5_graph import GraphNodes
from memograd.memory.relations.weights import Weights

if TYPE_CHECKING:
    pass

_MICROSOFT: Final = "com.microsoft"  # the fused operators of ONNX Runtime
_ZERO: Final = 128  # what stands for 0 in unsigned 8 bits
_LARGEST: Final = 127


def build_graph(weights: Weights, *, signed_weights: bool) -> bytes:
    """The serialised ONNX model.

    signed_weights: int8 weights, which is fast on processors that add products of unsigned and
    signed bytes exactly; false: uint8, which is exact everywhere.

    Input: `embedded` float32 `[tokens, hidden]`, the sums of word, position and part embeddings.
    Output: `encoded` float32 `[tokens, hidden]`.
    """
    return _RelationGraph(weights, signed_weights).build()


class _RelationGraph(GraphNodes):
    """Collects nodes and constants; every method adds to the graph and returns a tensor's name."""

    def __init__(self, weights: Weights, signed_weights: bool) -> None:
        import numpy as np

        super().__init__()
        self._weights, self._signed = weights, signed_weights
        self._last = self._constant("last", np.array([-1], np.int64))
        self._flat = self._constant("flat", np.array([-1, weights.hidden], np.int64))
        self._row = self._constant("row", np.array([1, -1, weights.hidden], np.int64))

    def build(self) -> bytes:
        from onnx import TensorProto, helper

        hidden = self._weights.hidden
        x = self._norm("embedded", "embeddings.norm")
        for number in range(self._weights.layers):
            x = self._layer(x, f"layers.{number}")
        self._nodes.append(helper.make_node("Identity", [x], ["encoded"]))

        def tensor(name: str) -> Any:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["tokens", hidden])

        graph = helper.make_graph(
            self._nodes,
            "relations",
            [tensor("embedded")],
            [tensor("encoded")],
            list(self._constants.values()),
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid(_MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return bytes(model.SerializeToString())

    def _layer(self, x: str, name: str) -> str:
        """`[tokens, hidden]` to `[tokens, hidden]`: attention, then the feed-forward part."""
        quantised = self._quantise(x)
        mixed = self._node(
            "MultiHeadAttention",
            [
                *(
                    self._node("Reshape", [self._product(quantised, f"{name}.{part}"), self._row])
                    for part in ("query", "key", "value")
                ),
            ],
            domain=_MICROSOFT,
            num_heads=self._weights.heads,
        )
        mixed = self._node("Reshape", [mixed, self._flat])
        mixed = self._product(self._quantise(mixed), f"{name}.attended")
        x = self._norm(self._node("Add", [mixed, x]), f"{name}.attended.norm")
        wide = self._product(self._quantise(x), f"{name}.wide", bias=False)
        wide = self._node("BiasGelu", [wide, self._vector(f"{name}.wide.bias")], domain=_MICROSOFT)
        narrow = self._product(self._quantise(wide), f"{name}.narrow")
        return self._norm(self._node("Add", [narrow, x]), f"{name}.narrow.norm")

    def _norm(self, x: str, name: str) -> str:
        return self._node(
            "LayerNormalization",
            [x, self._vector(f"{name}.weight"), self._vector(f"{name}.bias")],
            axis=-1,
            epsilon=self._weights.layer_norm_eps,
        )

    def _quantise(self, x: str) -> tuple[str, str]:
        """uint8 `[tokens, width]` and the scales `[tokens, 1]`: x = scales * (bytes - 128)."""
        import numpy as np
        from onnx import TensorProto, helper

        highest = self._node("ReduceMax", [x, self._last], keepdims=0)
        lowest = self._node("ReduceMin", [x, self._last], keepdims=0)
        largest = self._node("Max", [highest, self._node("Neg", [lowest])])
        step = self._constant("step", np.array(1 / _LARGEST, np.float32))
        tiny = self._constant("tiny", np.array(1e-12, np.float32))  # a row of zeros has scale 0
        scales = self._node("Max", [self._node("Mul", [largest, step]), tiny])
        zeros = self._node(
            "ConstantOfShape",
            [self._node("Shape", [scales])],
            value=helper.make_tensor("zero", TensorProto.UINT8, [1], [_ZERO]),
        )
        whole = self._node("QuantizeLinear", [x, scales, zeros], axis=0)
        return whole, self._node("Unsqueeze", [scales, self._last])

    def _product(self, x: tuple[str, str], name: str, *, bias: bool = True) -> str:
        """x W^T (+ b), `[tokens, out]`, in 8 bits."""
        import numpy as np

        whole, scales = self._weights.matrices[name]
        zero = np.array([0 if self._signed else _ZERO], np.int8 if self._signed else np.uint8)
        stored = (whole.astype(np.int16) + zero).astype(zero.dtype).T
        product = self._node(
            "MatMulIntegerToFloat",
            [
                x[0],
                self._constant(f"{name}.weight", stored),
                self._constant("one", np.array([1], np.float32)),
                self._constant(f"{name}.scales", scales),
                self._constant("zero", np.array([_ZERO], np.uint8)),
                self._constant("zero_of_weights", zero),
            ],
            domain=_MICROSOFT,
        )
        product = self._node("Mul", [product, x[1]])
        return self._node("Add", [product, self._vector(f"{name}.bias")]) if bias else product

    def _vector(self, name: str) -> str:
        return self._constant(name, self._weights.vectors[name])
