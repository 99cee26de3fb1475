"""Opening a sequence classifier with one output, and its tokenizer.

For training, the backbone may be a causal language model (the packaged one, a folder or a hub id):
its head is replaced by a fresh one, drawn from a seed. For scoring, the head must have been
trained: a checkpoint without one is refused, since its scores would be noise.

The score is read at the last token that is no padding, so padding must be a token that no row ends
with: where the tokenizer pads with its end token, another special token pads in training. On CUDA
the backbone is in bf16 and the head in fp32, because two good answers differ by less than bf16 can
tell at the size of a score.

Invariant: no head that was not trained ever scores.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils.logging import disable_progress_bar

from memograd.errors import BadInput
from memograd.policy.cpu_linear import onednn_is_faster, speed_up_linears
from memograd.policy.loading import choose_dtype, first_line, resolve_model

HEADS = ("score", "classifier")
"""What transformers calls the layer that makes the score."""


def open_tokenizer(model: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer of `model`; unlike a policy's, it may be without a chat template.

    A path is a folder that holds a tokenizer, with or without a model.
    """
    location = model if isinstance(model, Path) else resolve_model(model)
    try:
        return cast(PreTrainedTokenizerBase, AutoTokenizer.from_pretrained(location))
    except (OSError, ValueError) as error:
        raise BadInput(
            f"model={model}: its tokenizer cannot be loaded: {first_line(error)}"
        ) from error


def open_backbone(model: str, device: torch.device, seed: int) -> PreTrainedModel:
    """`model` with one output, to be trained; a head that is missing is drawn from `seed`."""
    loaded, _ = _load(model, device, seed)
    return _ready(loaded, device)


def open_trained(model: str, device: torch.device) -> PreTrainedModel:
    """`model` with its trained head, to score with.

    Raises BadInput if the checkpoint has no such head: a language model, for example.
    """
    loaded, missing = _load(model, device, seed=0)
    if missing:
        raise BadInput(
            f"{model} has no trained score head ({', '.join(sorted(missing)[:3])}): it is no "
            "reward model; make one of it with memograd reward-model train."
        )
    return _ready(loaded, device)


def set_padding(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> None:
    """Let a backbone that is to be trained pad with a token that no row ends with.

    Without another special token it pads with the end token; the score is then read at the last
    token before the end, which is as well defined.
    """
    end = tokenizer.eos_token_id
    if tokenizer.pad_token_id in (None, end):
        special = [tokenizer.unk_token_id, *tokenizer.all_special_ids]
        others = [token for token in special if token not in (None, end)]
        if not others and end is None:
            raise BadInput(
                "The tokenizer has no special token, so rows of different length cannot be padded; "
                "choose another model."
            )
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(cast(int, (others or [end])[0]))
    model.config.get_text_config().pad_token_id = tokenizer.pad_token_id


def _load(model: str, device: torch.device, seed: int) -> tuple[PreTrainedModel, set[str]]:
    location = resolve_model(model)
    disable_progress_bar()
    # Transformers warns of a head that is new; `missing` tells us, and the caller decides.
    warnings = logging.getLogger("transformers.modeling_utils")
    warnings.addFilter(_silence)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            loaded, info = AutoModelForSequenceClassification.from_pretrained(
                location, num_labels=1, dtype=choose_dtype(device), output_loading_info=True
            )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise BadInput(
            f"model={model} cannot be opened as a classifier with one output: {first_line(error)}"
        ) from error
    finally:
        warnings.removeFilter(_silence)
    return cast(PreTrainedModel, loaded), set(info["missing_keys"])


def _silence(record: logging.LogRecord) -> bool:
    return False


def _ready(loaded: PreTrainedModel, device: torch.device) -> PreTrainedModel:
    module = cast(torch.nn.Module, loaded)
    module.to(device)
    module.eval()
    loaded.config.use_cache = False
    head: Any = next((getattr(loaded, name) for name in HEADS if hasattr(loaded, name)), None)
    if isinstance(head, torch.nn.Linear) and head.weight.dtype != torch.float32:
        head.float()
        head.register_forward_pre_hook(_in_full_precision)
    if onednn_is_faster():
        speed_up_linears(module)
    return loaded


def _in_full_precision(head: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return (inputs[0].float(), *inputs[1:])
