"""Graphs of encoders that multiply in 8 bits, and what runs them.

Processors multiply 8-bit integers several times faster than floats, and most of the work of a
transformer is in its matrix products. Weights are one byte each, with one scale for each output;
activations are bytes with one scale for each *token*, so a text has the same vector alone and in
any batch. Attention, LayerNorm and GELU are float32.

Invariant: what a graph computes does not depend on the processor, for bytes are only multiplied
signed where that is exact.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np

MICROSOFT: Final = "com.microsoft"  # the fused operators of ONNX Runtime
ZERO: Final = 128  # what stands for 0 in unsigned 8 bits
LARGEST: Final = 127


class Bytes(NamedTuple):
    """Names of tensors: x is nearly scales * (whole - zeros)."""

    whole: str  # uint8 [tokens, width]
    scales: str  # float32 [tokens]
    zeros: str  # uint8 [tokens]


class Matrix(NamedTuple):
    """Names of a matrix's tensors."""

    whole: str  # 8 bits [in, out]
    scales: str  # float32 [out]
    zero_of_inputs: str
    zero: str


class QuantisedGraph:
    """Collects nodes and constants; every method adds to the graph and returns a tensor's name.

    signed: int8 weights, which is fast on processors that add products of unsigned and signed bytes
    exactly; false: uint8, which is exact everywhere. Both give the same integers.
    """

    def __init__(
        self,
        vectors: Mapping[str, np.ndarray],
        *,
        hidden: int,
        layer_norm_eps: float,
        signed: bool,
    ) -> None:
        import numpy as np

        self._vectors, self._epsilon, self._signed = vectors, layer_norm_eps, signed
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self.zeros: str | None = None
        self._last = self.constant("last", np.array([-1], np.int64))
        self.flat = self.constant("flat", np.array([-1, hidden], np.int64))
        self.constant("one", np.array([1], np.float32))

    def constant(self, name: str, values: np.ndarray) -> str:
        """Put `values` into the graph under `name`; the same name again replaces them."""
        import numpy as np
        from onnx import numpy_helper

        self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def node(self, kind: str, inputs: list[str], *, domain: str = "", **attributes: Any) -> str:
        """Add an operator with one output."""
        output = f"{kind}_{len(self._nodes)}"
        self.named_node(kind, inputs, output, domain=domain, **attributes)
        return output

    def named_node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> None:
        """Add an operator whose output has this name."""
        from onnx import helper

        self._nodes.append(helper.make_node(kind, inputs, [output], **attributes))

    def vector(self, name: str) -> str:
        """One of the model's float32 vectors."""
        return self.constant(name, self._vectors[name])

    def norm(self, x: str, name: str) -> str:
        """LayerNorm."""
        return self.node(
            "LayerNormalization",
            [x, self.vector(f"{name}.weight"), self.vector(f"{name}.bias")],
            axis=-1,
            epsilon=self._epsilon,
        )

    def in_bytes(self, x: str) -> Bytes:
        """`[tokens, width]` in one byte each."""
        import numpy as np
        from onnx import TensorProto, helper

        largest = self.node("ReduceMax", [self.node("Abs", [x]), self._last], keepdims=0)
        step = self.constant("step", np.array(1 / LARGEST, np.float32))
        tiny = self.constant("tiny", np.array(1e-12, np.float32))  # a row of zeros has scale 0
        scales = self.node("Max", [self.node("Mul", [largest, step]), tiny])
        if self.zeros is None:  # one for each token, and the tokens are the same everywhere
            self.zeros = self.node(
                "ConstantOfShape",
                [self.node("Shape", [scales])],
                value=helper.make_tensor("zero", TensorProto.UINT8, [1], [ZERO]),
            )
        whole = self.node("QuantizeLinear", [x, scales, self.zeros], axis=0)
        return Bytes(whole, scales, self.zeros)

    def by_token(self, scales: str) -> str:
        """Scales `[tokens]` as `[tokens, 1]`."""
        return self.node("Unsqueeze", [scales, self._last])

    def matrix(self, name: str, whole: np.ndarray, scales: np.ndarray) -> Matrix:
        """whole: integers from -127 to 127 `[out, in]`. scales: `[out]`."""
        import numpy as np

        zero = np.array([0 if self._signed else ZERO], np.int8 if self._signed else np.uint8)
        stored = (whole.astype(np.int16) + zero).astype(zero.dtype).T
        return Matrix(
            self.constant(f"{name}.weight", stored),
            self.constant(f"{name}.scales", scales.astype(np.float32)),
            self.constant("zero", np.array([ZERO], np.uint8)),
            self.constant("zero_of_weights", zero),
        )

    def times(self, x: str, matrix: Matrix, *, scale: str = "one") -> str:
        """scale * (x - zero) W^T, `[tokens, out]`; x: bytes. scale: name of a constant `[1]`."""
        return self.node(
            "MatMulIntegerToFloat",
            [x, matrix.whole, scale, matrix.scales, matrix.zero_of_inputs, matrix.zero],
            domain=MICROSOFT,
        )

    def serialised(self, name: str, inputs: list[Any], outputs: list[Any]) -> bytes:
        """The whole model."""
        from onnx import helper

        constants = list(self._constants.values())
        graph = helper.make_graph(self._nodes, name, inputs, outputs, constants)
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return bytes(model.SerializeToString())


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


def start_session(graph: str | bytes) -> Any:
    """An ONNX Runtime session on a graph, or on the file of one, in the calling thread alone: a
    forked child would have the session without its threads."""
    runtime = onnx_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
