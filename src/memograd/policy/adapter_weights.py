"""Opening a model with an adapter: a fresh one, or one that was saved.

Invariant: a fresh adapter adds zero, and its random half is a function of the seed alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, cast

import torch
from peft import LoraConfig as PeftLoraConfig
from peft import PeftModel, get_peft_model
from transformers import PreTrainedModel

from memograd.config import LoraConfig
from memograd.errors import BadInput

TRAINED = "default"
"""Name of the adapter that training moves: peft's own, which it saves without a subfolder."""
REFERENCE = "reference"
"""Name, and subfolder of a checkpoint, of the frozen adapter that training began with."""


@contextmanager
def quiet_peft() -> Iterator[None]:
    """Without the notice that peft reads an attribute which transformers has renamed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing")
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
    with torch.random.fork_rng(devices=[]), quiet_peft():
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
    with quiet_peft():
        peft_model = PeftModel.from_pretrained(base, folder, is_trainable=True)
        if reference == "saved":
            reference = folder / REFERENCE if (folder / REFERENCE).is_dir() else None
        if reference is not None:
            peft_model.load_adapter(str(reference), REFERENCE, is_trainable=False)
    return peft_model
