"""Supervised training on rows that open alike: what they share is run once a micro-batch.

Chats of one agent all begin with the same instructions and tools, often most of their tokens. Here
TRL's trainer gets a micro-batch without that opening, and the opening's keys and values with their
graph instead, so that gradients reach it.

    rows     [opening | question, call, ...]          rows x (opening + rest) tokens
             [opening | question, call, ...]    ──>   opening + rows x rest

Invariant: loss, gradients and counts are those of the whole rows, to rounding.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from memograd.policy.model_parts import body_of
from memograd.warm_start.tokens import IGNORED

LEAST = 32
"""Tokens that a micro-batch must share before a pass of its own for them is worth it."""


def sft_trainer(**arguments: Any) -> Any:
    """TRL's SFTTrainer that computes the opening of a micro-batch once."""
    from trl.trainer.sft_trainer import SFTTrainer

    class OpeningOnce(SFTTrainer):
        def compute_loss(
            self, model: Any, inputs: dict[str, Any], *positional: Any, **named: Any
        ) -> Any:
            with_adapter: Any = self.model
            rest = behind_opening(with_adapter.get_base_model(), inputs)
            return super().compute_loss(model, rest, *positional, **named)  # type: ignore[no-untyped-call]

    return OpeningOnce(**arguments)


def behind_opening(model: PreTrainedModel, inputs: dict[str, Any]) -> dict[str, Any]:
    """The batch behind the tokens [B, S] that all its rows open with, whose keys and values are in
    `past_key_values`; or the batch as it is, where that would spare little or the model's layers
    remember more than keys and values."""
    ids_BS, labels_BS = inputs["input_ids"], inputs["labels"]
    length = opening_length(ids_BS, labels_BS, inputs["attention_mask"])
    if length < LEAST or not _attends_to_all(model):
        return inputs
    cache = DynamicCache()
    body_of(model)(input_ids=ids_BS[:1, :length], past_key_values=cache, use_cache=True)
    cache.batch_repeat_interleave(len(ids_BS))
    return {
        **inputs,
        "input_ids": ids_BS[:, length:],
        "labels": labels_BS[:, length:],
        "past_key_values": cache,
    }


def opening_length(ids_BS: torch.Tensor, labels_BS: torch.Tensor, attended_BS: torch.Tensor) -> int:
    """How many tokens all rows begin with, from none of which anything is learnt or predicted; 0
    for a row alone."""
    if len(ids_BS) < 2:
        return 0
    # The token before the first one learnt predicts it, so it is not part of the opening.
    predicting_BS = torch.roll(labels_BS, -1, dims=1) != IGNORED
    ends_S = (ids_BS != ids_BS[:1]).any(0) | predicting_BS.any(0) | (attended_BS == 0).any(0)
    return int(ends_S.int().argmax()) if bool(ends_S.any()) else 0


def _attends_to_all(model: PreTrainedModel) -> bool:
    """Whether keys and values are all that a layer keeps, and every token sees all before it."""
    kinds = getattr(model.config.get_text_config(), "layer_types", None) or []
    return not model._is_stateful and all(kind == "full_attention" for kind in kinds)
