"""Linear layers on AMD processors: the same product by oneDNN, about twice as fast as by MKL.

torch hands fp32 products on a CPU to MKL, which keeps to its AVX2 kernels unless the processor is
Intel's. oneDNN, which torch also carries, uses AVX-512 wherever it is. So on such a machine every
linear layer of a model becomes a `OneDNNLinear`: same weights, same state dict, same gradients to
float rounding; nothing is packed or copied.

Invariant: values and gradients are those of `torch.nn.Linear`. The choice depends on the machine
alone, never on a timing, so a resumed run computes as before.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch

CPUINFO = Path("/proc/cpuinfo")


@cache
def onednn_is_faster() -> bool:
    """Whether this machine is one where MKL leaves AVX-512 unused and oneDNN does not."""
    return (
        torch.backends.mkl.is_available()
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")  # torch's own, and not documented
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and CPUINFO.is_file()
        and "AuthenticAMD" in CPUINFO.read_text(encoding="utf-8")
    )


def speed_up_linears(model: torch.nn.Module) -> int:
    """Make every plain fp32 linear layer of `model` a `OneDNNLinear`; returns how many.

    Layers of other classes, types and devices stay. Call it before an adapter is put around them.
    """
    chosen = [
        module
        for module in model.modules()
        if type(module) is torch.nn.Linear
        and module.weight.dtype == torch.float32
        and module.weight.device.type == "cpu"
    ]
    for module in chosen:
        # Nothing but `forward` differs, so hooks, tied weights and names stay what they are.
        module.__class__ = OneDNNLinear
    return len(chosen)


class OneDNNLinear(torch.nn.Linear):
    """`torch.nn.Linear` in fp32 on a CPU, computed by oneDNN; other inputs take the usual way."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """`input` [..., in] to [..., out]."""
        if {input.dtype, self.weight.dtype} != {torch.float32} or not input.numel():
            return super().forward(input)
        rows_NI = input.reshape(-1, self.in_features)
        products_NO: torch.Tensor = _Product.apply(rows_NI, self.weight)  # type: ignore[no-untyped-call]
        output = products_NO.reshape(*input.shape[:-1], self.out_features)
        return output if self.bias is None else output + self.bias


def product(left_NK: torch.Tensor, right_MK: torch.Tensor) -> torch.Tensor:
    """`left_NK @ right_MK.T` by oneDNN; either may be a transposed view."""
    result: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
        left_NK, right_MK, None, "none", [], ""
    )
    return result


class _Product(torch.autograd.Function):
    """`inputs_NI @ weight_OI.T`; a gradient is computed only for what asks for one."""

    @staticmethod
    def forward(ctx: Any, inputs_NI: torch.Tensor, weight_OI: torch.Tensor) -> torch.Tensor:
        # A frozen weight needs no inputs later, so they are not kept: less memory than a plain mm.
        kept = inputs_NI if ctx.needs_input_grad[1] else None
        ctx.save_for_backward(kept, weight_OI)
        return product(inputs_NI, weight_OI)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (gradient_NO,) = gradients
        inputs_NI, weight_OI = ctx.saved_tensors
        wants_inputs, wants_weight = ctx.needs_input_grad
        return (
            product(gradient_NO, weight_OI.t()) if wants_inputs else None,
            product(gradient_NO.t(), inputs_NI.t()) if wants_weight else None,
        )
