"""Adapter into weights: one folder that transformers, vLLM and others load without peft.

The product of the two LoRA matrices is added to the weights that it adapts, once, in fp32, and the
model is written with its tokenizer, chat template and generation settings.

Invariant: the merged model's logits are those of model plus adapter (to float rounding), and a
folder of that name exists only when all of it is written.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, cast

import torch
from safetensors import SafetensorError
from transformers import PreTrainedTokenizerBase

from memograd.errors import BadInput, MemogradError
from memograd.grpo import RunFolder
from memograd.grpo.checkpoint_folder import sync
from memograd.grpo.resume import begun
from memograd.policy.language_model import LanguageModel
from memograd.tasks.base.policy import REWARD_MODEL, adapter_of

NumberType = Literal["float32", "bfloat16", "float16"]


def merge(run: Path, out: Path, dtype: NumberType = "float32") -> Path:
    """Write the model of `run` with its trained adapter merged into `out`, and return `out`.

    `run` is a run folder (its latest checkpoint is taken) or a checkpoint in one.
    `dtype` is the number type of the written weights; the sum is computed in fp32.

    Raises:
        BadInput: there is no trained run, or `out` is not a new or empty folder.
        MemogradError: the merged weights are not finite, or could not be written; nothing is left.
    """
    checkpoint = adapter_of(run)
    check_free(out)
    began = begun(RunFolder.open(checkpoint.parent))
    if began.recipe == REWARD_MODEL:
        raise BadInput(f"{run} is a reward model; use memograd reward-model merge.")
    policy = LanguageModel.load_adapter(began.model, checkpoint, reference=None, device="cpu")
    merged = merged_weights(policy.peft_model, checkpoint)
    merged.to(getattr(torch, dtype))
    write_model(merged, policy.tokenizer, out)
    return out


def merged_weights(peft_model: Any, checkpoint: Path) -> torch.nn.Module:
    """The model inside with the adapter added to its weights.

    Raises MemogradError if the sum is not finite.
    """
    try:
        return cast(torch.nn.Module, peft_model.merge_and_unload(safe_merge=True))
    except ValueError as error:
        raise MemogradError(f"The adapter in {checkpoint} cannot be merged: {error}") from error


def write_model(
    merged: torch.nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    out: Path,
    also: Callable[[Path], None] | None = None,
) -> None:
    """Write model and tokenizer into `out`, all of it or nothing; `also` writes further files."""
    try:
        aside = _written_aside(merged, tokenizer, out, also)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise MemogradError(f"{out} could not be written ({reason}); nothing is left.") from error
    aside.rename(out)
    sync(out.parent)


def check_free(out: Path) -> None:
    """Refuse a place that is taken."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out} is not an empty folder; choose another one with --out.")


def _written_aside(
    merged: torch.nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    out: Path,
    also: Callable[[Path], None] | None,
) -> Path:
    """A complete folder beside `out`, flushed to disk; a half-written one is removed."""
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    aside.chmod(0o755)
    try:
        merged.save_pretrained(aside)  # type: ignore[operator]
        tokenizer.save_pretrained(aside)
        if also is not None:
            also(aside)
        for path in aside.rglob("*"):
            sync(path)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return aside
