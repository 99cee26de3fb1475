"""The two halves of a causal language model that the token tree needs apart: body and output layer.

`head(body(ids))` must be the model's logits; `memograd.policy.verify` checks that for each run, and
`tests/policy/test_verify.py` that it notices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from transformers import PreTrainedModel

from memograd.errors import BadInput


def body_of(model: PreTrainedModel) -> Callable[..., Any]:
    """The decoder: token ids to hidden states, with a cache of keys and values."""
    body: Callable[..., Any] = model.get_decoder()
    return body


def head_of(model: PreTrainedModel) -> Callable[[torch.Tensor], torch.Tensor]:
    """The output layer: hidden states to logits. Raises `BadInput` if the model has none."""
    head = model.get_output_embeddings()
    if head is None:
        raise BadInput(
            f"{type(model).__name__} has no output layer over the vocabulary, so it cannot answer; "
            "use a causal language model"
        )
    layer: Callable[[torch.Tensor], torch.Tensor] = head
    return layer
