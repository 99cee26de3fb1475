"""Activation checkpointing of decoder layers: memory for time, with the tree forward's cache.

Between forward and backward only what goes into a layer is kept; the rest is computed again, layer
by layer, in the backward pass. transformers' own switch for this drops the cache of keys and values
(a layer computed twice would write into it twice), and the tree forward's trunk hands its keys and
values on, with their graph, to the nodes below it. So each layer gets a copy of the cache of its
own whenever it is computed, and its new keys and values leave it as outputs, like its states.

Invariant: values and gradients equal those without it; sampling, which has no backward pass, is as
it was.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint
from transformers import Cache, PreTrainedModel
from transformers.cache_utils import DynamicLayer
from transformers.modeling_layers import GradientCheckpointingLayer

from memograd.errors import BadInput, MemogradError


def checkpoint_layers(model: PreTrainedModel) -> int:
    """Let every decoder layer of `model` be computed again in the backward pass; returns how many.

    Raises `BadInput` for a model whose layers do not say that they can be.
    """
    layers = decoder_layers(model)
    for place, layer in enumerate(layers):
        layer.forward = partial(_checkpointed, layer.forward, place)
    return len(layers)


def decoder_layers(model: PreTrainedModel) -> list[torch.nn.Module]:
    """The layers between embedding and output layer, in order; raises `BadInput` if there are none
    that are marked as such."""
    layers = [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)]
    if not layers:
        raise BadInput(
            f"{type(model).__name__} does not mark its layers as ones that can be computed again; "
            "use activation_checkpointing=false and shard=off"
        )
    return list(layers)


def _checkpointed(
    forward: Callable[..., torch.Tensor],
    place: int,
    hidden: torch.Tensor,
    *arguments: Any,
    past_key_values: Cache | None = None,
    **options: Any,
) -> torch.Tensor:
    """What `forward`, that of layer `place`, returns; the cache grows as it would have."""
    if not torch.is_grad_enabled():
        return forward(hidden, *arguments, past_key_values=past_key_values, **options)
    if past_key_values is None:
        output: torch.Tensor = checkpoint(
            partial(forward, **options), hidden, *arguments, use_reentrant=False
        )
        return output
    before = _copied(past_key_values)

    def compute(hidden: torch.Tensor) -> tuple[torch.Tensor, Any, Any]:
        cache = _copied(before)
        states = forward(hidden, *arguments, past_key_values=cache, **options)
        layer = _layer(cache, place)
        return states, layer.keys, layer.values

    output, keys, values = checkpoint(compute, hidden, use_reentrant=False)
    if place == len(past_key_values.layers):
        past_key_values.layers.append(DynamicLayer())
    layer = _layer(past_key_values, place)
    layer.keys, layer.values, layer.is_initialized = keys, values, True
    return output


def _layer(cache: Cache, place: int) -> DynamicLayer:
    layer = cache.layers[place]
    if not isinstance(layer, DynamicLayer):
        raise MemogradError(
            "the model keeps no keys and values a layer, so its layers cannot be computed again "
            "with a cache; use activation_checkpointing=false, or forward=rows"
        )
    return layer


def _copied(cache: Cache) -> Cache:
    """A cache that grows by itself from where `cache` is: it shares the tensors, which none of
    them writes into."""
    other = copy(cache)
    other.layers = [copy(layer) for layer in cache.layers]
    return other
