"""Running prompts, or what they have beyond a known beginning, before answers are drawn to them.

Prompts of similar length go through the model together. One that is all new is a causal row; of one
that goes on from tokens whose keys and values are at hand only the rest is run, each of its tokens
seeing the beginning and the new tokens up to itself. Prompts that open alike (the same instructions
and tools, another question) run what they share once, for all of them.

Invariants: of what is put into batches every index appears exactly once, and a batch of more than
one stays within the limit; states, keys and values are those of the whole prompts, whatever was at
hand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from memograd.errors import MemogradError
from memograd.policy.kv_cache import NOTHING, Beginning, KeysValues, KVBuffer, common
from memograd.policy.token_logprobs import body_of, head_of
from memograd.policy.tree_forward import additive_mask


def batches_by_sum(lengths: Sequence[int], limit: int) -> list[list[int]]:
    """Group indices of similar length so that `sum <= limit` (at least one each): no padding."""
    batches: list[list[int]] = []
    total = 0
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        if batches and total + lengths[index] <= limit:
            batches[-1].append(index)
            total += lengths[index]
        else:
            batches.append([index])
            total = lengths[index]
    return batches


def batches_by_tokens(lengths: Sequence[int], limit: int) -> list[list[int]]:
    """Group indices of similar length so that `members x longest <= limit`, for what is padded to
    its longest member (at least one each)."""
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        # Ascending order: the sequence at hand is the longest of its batch.
        if batches and (len(batches[-1]) + 1) * lengths[index] <= limit:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


PREFILL_TOKENS = {"cpu": 1024, "cuda": 65_536, "mps": 8_192}
"""Padded new tokens a batch: on a CPU padding costs more than batching saves."""

LEAST_COMMON = 64
"""Tokens that new prompts must share before a pass of its own for them is worth it."""


@torch.no_grad()
def common_beginning(model: PreTrainedModel, prompts: Sequence[Sequence[int]]) -> Beginning | None:
    """What all prompts open with, run once; None if that is too little, or there is one prompt.

    It is never the whole of a prompt: of each, at least the last token is left to run.
    """
    if len(prompts) < 2:
        return None
    first = np.asarray(prompts[0])
    length = min(min(common(first, np.asarray(prompt)), len(prompt) - 1) for prompt in prompts)
    if length < LEAST_COMMON:
        return None
    _, found = _run(model, [prompts[0][:length]], [NOTHING])
    return Beginning(length, [(keys_BHSD[0], values_BHSD[0]) for keys_BHSD, values_BHSD in found])


def prefill(
    model: PreTrainedModel, prompts: Sequence[Sequence[int]], beginnings: Sequence[Beginning]
) -> tuple[torch.Tensor, list[KVBuffer]]:
    """The logits after each prompt [B, V], and a buffer a layer with all prompts' keys and values.

    Raises `MemogradError` for a model whose cache is not keys and values a layer.
    """
    longest = max(len(prompt) for prompt in prompts)
    layers = model.config.get_text_config().num_hidden_layers
    buffers = [KVBuffer(len(prompts), longest) for _ in range(layers)]
    states: list[torch.Tensor] = [torch.empty(0)] * len(prompts)
    new = [
        prompt[beginning.length :] for prompt, beginning in zip(prompts, beginnings, strict=True)
    ]
    # Apart from each other: prompts that are all new need no mask.
    for all_new in (True, False):
        chosen = [row for row, one in enumerate(beginnings) if (one.length == 0) == all_new]
        limit = PREFILL_TOKENS[model.device.type]
        for places in batches_by_tokens([len(new[row]) for row in chosen], limit):
            rows = [chosen[place] for place in places]
            hidden_BSD, found = _run(
                model, [new[row] for row in rows], [beginnings[row] for row in rows]
            )
            for line, row in enumerate(rows):
                count, begun = len(new[row]), beginnings[row]
                states[row] = hidden_BSD[line, count - 1]
                for buffer, known in zip(buffers, begun.keys_values, strict=False):
                    buffer.place(row, *known)
                for buffer, (keys_BHSD, values_BHSD) in zip(buffers, found, strict=True):
                    keys, values = keys_BHSD[line, :, :count], values_BHSD[line, :, :count]
                    buffer.place(row, keys, values, start=begun.length)
    return head_of(model)(torch.stack(states)), buffers


def _run(
    model: PreTrainedModel, new: Sequence[Sequence[int]], beginnings: Sequence[Beginning]
) -> tuple[torch.Tensor, list[KeysValues]]:
    """States [B, S, D] of new tokens behind their beginnings (all of them empty, or none), padded
    on the right, and their keys and values, [B, H, S, D] a layer."""
    device = model.device
    width = max(map(len, new))
    ids_BS = np.zeros((len(new), width), dtype=np.int64)
    for line, tokens in enumerate(new):
        ids_BS[line, : len(tokens)] = tokens
    lengths_B11 = np.array([beginning.length for beginning in beginnings])[:, None, None]
    known = int(lengths_B11.max())
    cache = DynamicCache()
    mask = None
    if known:
        for number, layer in enumerate(zip(*(one.keys_values for one in beginnings), strict=True)):
            keys, values = zip(*layer, strict=True)
            cache.update(_padded(keys, known), _padded(values, known), number)
        slots_K, own_S1 = np.arange(known + width), known + np.arange(width)[:, None]
        # Causal attention needs no mask for what is padded on the right; what is padded between a
        # shorter beginning and the new tokens must not be seen.
        visible_BSK = (slots_K < lengths_B11) | ((slots_K >= known) & (slots_K <= own_S1))
        mask = additive_mask(visible_BSK, model.dtype, device)
    hidden_BSD = body_of(model)(
        input_ids=torch.from_numpy(ids_BS).to(device),
        position_ids=torch.from_numpy(lengths_B11[:, 0] + np.arange(width)).to(device),
        attention_mask=mask,
        past_key_values=cache,
        use_cache=True,
    ).last_hidden_state
    return hidden_BSD, [_new_part(model, layer, known) for layer in cache.layers]


def _padded(parts_HTD: Sequence[torch.Tensor], length: int) -> torch.Tensor:
    """[B, H, length, D], zeros behind each part."""
    first = parts_HTD[0]
    padded_BHTD = first.new_zeros((len(parts_HTD), first.shape[0], length, first.shape[2]))
    for line, part in enumerate(parts_HTD):
        padded_BHTD[line, :, : part.shape[1]] = part
    return padded_BHTD


def _new_part(model: PreTrainedModel, layer: object, known: int) -> KeysValues:
    if not isinstance(layer, DynamicLayer) or layer.keys is None or layer.values is None:
        raise MemogradError(
            f"{type(model).__name__} keeps no keys and values a layer, so it cannot be sampled "
            "over token trees; use forward=rows, or let the gateway stand in front of vLLM"
        )
    return layer.keys[:, :, known:], layer.values[:, :, known:]
