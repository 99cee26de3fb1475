"""Opening a causal language model and its tokenizer, with every refusal in one sentence.

A model is the packaged one (`smollm2-135m-instruct`), a folder, or a Hugging Face id. It is loaded
in fp32 on a CPU and in bf16 on CUDA, with the attention that transformers chooses for it and, on
AMD processors, the faster linear layers of `memograd.policy.cpu_linear`.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import torch
from safetensors import SafetensorError
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils.logging import disable_progress_bar

from memograd.errors import BadInput
from memograd.policy.cpu_linear import onednn_is_faster, speed_up_linears
from memograd.policy.packaged_model import PACKAGED_MODEL, packaged_model_folder


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
            f"model={model}: its tokenizer cannot be loaded: {_first_line(error)}"
        ) from error
    if tokenizer.eos_token_id is None:
        raise BadInput(
            f"model={model}: its tokenizer has no end token, so no answer would ever end"
        )
    return tokenizer


def load_causal_lm(model: str, device: torch.device, *, to_cut: bool = False) -> PreTrainedModel:
    """The weights of `model` in the number type for `device`, in evaluation mode: on `device`, or
    `to_cut`, in the CPU's memory still, for `memograd.policy.sharding` to bring them there."""
    location = resolve_model(model)
    # The library's own bar for a second of loading would break into the run's progress.
    disable_progress_bar()
    try:
        loaded = AutoModelForCausalLM.from_pretrained(location, dtype=choose_dtype(device))
    except (OSError, ValueError, SafetensorError) as error:
        raise BadInput(f"model={model} cannot be loaded: {_first_line(error)}") from error
    module = cast(torch.nn.Module, loaded)
    if not to_cut:
        module.to(device)
    module.eval()
    if onednn_is_faster():
        speed_up_linears(module)
    return cast(PreTrainedModel, module)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
