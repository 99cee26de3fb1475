"""An ONNX graph as it is built: nodes and constants, each under a name of its own.

Invariant: every method adds to the graph and returns the name of a tensor in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


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
