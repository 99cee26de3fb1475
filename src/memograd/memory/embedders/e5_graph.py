"""The encoder of multilingual-e5-small as an ONNX graph that multiplies in 8 bits.

Most of the work of a transformer is in its matrix products, and processors multiply 8-bit integers
several times faster than floats. Weights are one byte each, with one scale for each output.
Activations have one scale for each *token*, so a text has the same vector alone and in any batch,
and are two bytes, of which the second holds what the first leaves over. With one byte the vectors
were at a cosine of 0.9993 to float32, and that was not enough: texts of a conversation lie so close
together that recall at 20 fell by two points. With two it is 0.9999 and recall stays. Attention,
LayerNorm and GELU are float32.

The word embeddings stay outside (they are 54 of the 72 MB, and a text needs few of their rows), so
the graph begins with vectors of words and ends with the mean over the tokens of each row.
`GraphNodes` is what this builder shares with that of the relation model.

Invariant: the graph computes BERT; its vectors have a cosine of at least 0.9995 to those of the
same weights in float32.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memograd.memory.embedders.e5_weights import E5Weights

if TYPE_CHECKING:
    import numpy as np

VERSION: Final = 1  # of what is built here: a cached file of another version is not used
_MICROSOFT: Final = "com.microsoft"  # the fused operators of ONNX Runtime
_ZERO: Final = 128  # what stands for 0 in unsigned 8 bits
_LARGEST: Final = 127
_FINE: Final = 1 / 254  # the second byte of a token counts in this part of its scale


def build_graph(weights: E5Weights, *, signed_weights: bool) -> bytes:
    """The serialised ONNX model.

    signed_weights: int8 weights, which is fast on processors that add products of unsigned and
    signed bytes exactly; false: uint8, which is exact everywhere. Both give the same integers.

    Inputs: `words` float32 `[rows, tokens, hidden]`, the embeddings of the words, padded at the
    end; `lengths` int32 `[rows]`; `shares` float32 `[rows, 1, tokens]`, what each token counts in
    the mean (0 for padding). Output: `means` float32 `[rows, hidden]`, not normalised.
    """
    return _E5Graph(weights, signed_weights).build()


class GraphNodes:
    """What the builders of graphs share."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def _constant(self, name: str, values: np.ndarray) -> str:
        """Put `values` into the graph under `name`; the same name again replaces them."""
        import numpy as np
        from onnx import numpy_helper

        self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def _node(self, kind: str, inputs: list[str], *, domain: str = "", **attributes: Any) -> str:
        """Add an operator with one output."""
        from onnx import helper

        output = f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output


def onnx_runtime() -> Any:
    """The module onnxruntime, kept from reporting home.

    Since 1.29 it sends figures about its use to its maker from a thread of its own, unless the
    environment says otherwise before its first import; a forked child that ends then hangs or
    aborts in that thread's destructor. Whoever sets ORT_DISABLE_TELEMETRY themselves is obeyed.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    return onnxruntime


def adds_signed_bytes_exactly() -> bool:
    """Whether products of unsigned and signed bytes are summed without overflow here.

    x86 processors before VNNI add pairs of them in 16 bits, and saturate.
    """
    import numpy as np
    from onnx import TensorProto, helper

    width = 64
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b"], ["c"])],
        "check",
        [
            helper.make_tensor_value_info("a", TensorProto.UINT8, [1, width]),
            helper.make_tensor_value_info("b", TensorProto.INT8, [width, width]),
        ],
        [helper.make_tensor_value_info("c", TensorProto.INT32, [1, width])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    session = onnx_runtime().InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    a, b = np.full((1, width), 255, np.uint8), np.full((width, width), 127, np.int8)
    return bool(np.all(np.asarray(session.run(None, {"a": a, "b": b})[0]) == 255 * 127 * width))


class _Quantised(NamedTuple):
    """Names of tensors: x = scales * ((first - 128) + (second - 128) / 254)."""

    first: str  # uint8 [tokens, width]
    second: str  # uint8 [tokens, width]
    scales: str  # float32 [tokens, 1]


class _E5Graph(GraphNodes):
    """Collects nodes and constants; every method adds to the graph and returns a tensor's name."""

    def __init__(self, weights: E5Weights, signed_weights: bool) -> None:
        import numpy as np

        super().__init__()
        self._weights, self._signed = weights, signed_weights
        self._last = self._constant("last", np.array([-1], np.int64))
        self._flat = self._constant("flat", np.array([-1, weights.hidden], np.int64))

    def build(self) -> bytes:
        from onnx import TensorProto, helper

        hidden = self._weights.hidden
        x = self._embedding_norm()
        shape = self._node("Shape", ["words"])
        x = self._node("Reshape", [x, self._flat])  # rows of tokens, except within attention
        for number in range(self._weights.layers):
            x = self._layer(x, shape, f"encoder.layer.{number}")
        means = self._node("MatMul", ["shares", self._node("Reshape", [x, shape])])
        self._nodes.append(helper.make_node("Reshape", [means, self._flat], ["means"]))

        def tensor(name: str, kind: int, *axes: str | int) -> Any:
            return helper.make_tensor_value_info(name, kind, axes)

        floats = TensorProto.FLOAT
        graph = helper.make_graph(
            self._nodes,
            "multilingual-e5-small",
            [
                tensor("words", floats, "rows", "tokens", hidden),
                tensor("lengths", TensorProto.INT32, "rows"),
                tensor("shares", floats, "rows", 1, "tokens"),
            ],
            [tensor("means", floats, "rows", hidden)],
            list(self._constants.values()),
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid(_MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return bytes(model.SerializeToString())

    def _embedding_norm(self) -> str:
        import numpy as np

        vectors = self._weights.vectors
        places = vectors["embeddings.position_embeddings.weight"]
        first_type = vectors["embeddings.token_type_embeddings.weight"][0]
        used = self._node(
            "Slice",
            [
                self._constant("places", places + first_type),
                self._constant("start", np.array([0], np.int64)),
                self._node("Shape", ["words"], start=1, end=2),
                self._constant("axis", np.array([0], np.int64)),
            ],
        )
        return self._norm(self._node("Add", ["words", used]), "embeddings.LayerNorm")

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
        mixed = self._node(
            "MultiHeadAttention",
            [
                *(self._node("Reshape", [part, shape]) for part in parts.values()),
                self._constant(f"{attention}.bias", np.concatenate(biases)),
                "lengths",
            ],
            domain=_MICROSOFT,
            num_heads=self._weights.heads,
        )
        mixed = self._node("Reshape", [mixed, self._flat])
        x = self._residual(mixed, x, f"{name}.attention.output")

        inner = f"{name}.intermediate.dense"
        wide = self._product(self._quantise(x), inner)
        wide = self._node("BiasGelu", [wide, self._vector(f"{inner}.bias")], domain=_MICROSOFT)
        return self._residual(wide, x, f"{name}.output")

    def _residual(self, inner: str, x: str, name: str) -> str:
        """LayerNorm(x + W inner + b)."""
        product = self._product(self._quantise(inner), f"{name}.dense")
        product = self._node("Add", [product, self._vector(f"{name}.dense.bias")])
        # Not SkipLayerNormalization: this pair takes a third of its time.
        return self._norm(self._node("Add", [product, x]), f"{name}.LayerNorm")

    def _norm(self, x: str, name: str) -> str:
        return self._node(
            "LayerNormalization",
            [x, self._vector(f"{name}.weight"), self._vector(f"{name}.bias")],
            axis=-1,
            epsilon=self._weights.layer_norm_eps,
        )

    def _quantise(self, x: str) -> _Quantised:
        """`[tokens, width]` in one byte, and what that leaves over in another."""
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
        first = self._node("QuantizeLinear", [x, scales, zeros], axis=0)
        rough = self._node("DequantizeLinear", [first, scales, zeros], axis=0)
        rest = self._node("Sub", [x, rough])
        finer = self._node("Mul", [scales, self._constant("fine", np.array([_FINE], np.float32))])
        second = self._node("QuantizeLinear", [rest, finer, zeros], axis=0)
        return _Quantised(first, second, self._node("Unsqueeze", [scales, self._last]))

    def _product(self, x: _Quantised, name: str) -> str:
        """x W^T without the bias, `[tokens, out]`, in 8 bits."""
        import numpy as np

        dense = self._weights.matrices[f"{name}.weight"].dense()
        scales = np.abs(dense).max(axis=1) / _LARGEST
        whole = np.rint(dense / scales[:, None])
        zero = np.array([0 if self._signed else _ZERO], np.int8 if self._signed else np.uint8)
        stored = self._constant(f"{name}.weight", (whole + zero).astype(zero.dtype).T)
        zeros = [
            self._constant("zero", np.array([_ZERO], np.uint8)),
            self._constant("zero_of_weights", zero),
        ]
        coarse = self._constant(f"{name}.scales", scales.astype(np.float32))
        one = self._constant("one", np.array([1], np.float32))
        kind, domain = "MatMulIntegerToFloat", _MICROSOFT
        first = self._node(kind, [x.first, stored, one, coarse, *zeros], domain=domain)
        second = self._node(kind, [x.second, stored, "fine", coarse, *zeros], domain=domain)
        return self._node("Mul", [self._node("Add", [first, second]), x.scales])

    def _vector(self, name: str) -> str:
        return self._constant(name, self._weights.vectors[name])
