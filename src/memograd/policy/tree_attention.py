"""Attention over a packed row of trees, registered with transformers under the name `TREE`.

A model whose attention is `TREE` computes as with `sdpa`, to the bit, until a row of trees is
announced (`attending`). Then its mask is the row's (`TreeMask`), made once a pass and handed to
every layer by transformers' own mask registry:

    CPU, others  the row in tiles, each against the keys that it sees, by
                 scaled_dot_product_attention: no N x N mask exists
    CUDA         FlexAttention with a block mask, which leaves out blocks of 128 x 128 tokens that
                 see nothing of each other

Both read who sees whom out of the two numbers a token that `packed_row` explains.

Invariant: a token's result is that of ordinary causal attention over its own sequence.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.attention.flex_attention import BlockMask
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.flex_attention import flex_attention_forward
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from memograd.policy.packed_row import PackedRow, Tile

TREE = "memograd_tree"
"""The name that transformers knows this attention by."""

BLOCK = 128
"""Tokens of a side of a block that FlexAttention computes or leaves out."""

_row: ContextVar[PackedRow | None] = ContextVar("row of trees that is attended over", default=None)


@dataclass(frozen=True)
class TiledMask:
    """A row's tiles on the device: of each the places of its keys, and what is added to scores.

    Both are None for a chain that begins a tree: plain causal attention over itself.
    """

    tiles: tuple[tuple[Tile, torch.Tensor | None, torch.Tensor | None], ...]


def use_tree_attention(model: PreTrainedModel) -> bool:
    """Let `model` attend by `TREE`; False where it cannot (its attention is not exchangeable, or is
    not the one that `TREE` goes on from)."""
    if model.config._attn_implementation == TREE:
        return True
    if model.config._attn_implementation != "sdpa" or not model._can_set_attn_implementation():
        return False
    model.set_attn_implementation(TREE)
    return bool(model.config._attn_implementation == TREE)


@contextmanager
def attending(row: PackedRow) -> Iterator[None]:
    """Within this block a pass of a model's body is one over `row`."""
    token = _row.set(row)
    try:
        yield
    finally:
        _row.reset(token)


def tiled_mask(row: PackedRow, dtype: torch.dtype, device: torch.device) -> TiledMask:
    """The mask of `row` in tiles."""
    tiles: list[tuple[Tile, torch.Tensor | None, torch.Tensor | None]] = []
    for tile in row.tiles():
        if tile.before_L is None:
            tiles.append((tile, None, None))
            continue
        own = np.arange(tile.start, tile.end)
        keys = np.concatenate([tile.before_L, own])
        visible = (keys[None, :] <= own[:, None]) & (own[:, None] < row.tout_N[keys][None, :])
        added = torch.zeros((1, 1, *visible.shape), dtype=dtype, device=device)
        added.masked_fill_(~torch.from_numpy(visible).to(device), torch.finfo(dtype).min)
        tiles.append((tile, torch.from_numpy(keys).to(device), added))
    return TiledMask(tuple(tiles))


def block_mask(row: PackedRow, device: torch.device) -> BlockMask:
    """The mask of `row` in blocks: which are computed in part, which wholly, which not at all.

    Found from the smallest and largest ends in a block of keys, never from N x N pairs.
    """
    length = len(row)
    part_QK, whole_QK = _blocks(row)
    tout = torch.from_numpy(row.tout_N).to(device)

    def visible(
        batch: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor
    ) -> torch.Tensor:
        return (key <= query) & (query < tout[key.clamp(max=length - 1)])

    part, whole = (_block_lists(some, device) for some in (part_QK, whole_QK))
    return BlockMask.from_kv_blocks(
        *part, *whole, BLOCK_SIZE=BLOCK, mask_mod=visible, seq_lengths=(length, length)
    )


def blocks_computed(row: PackedRow) -> int:
    """Pairs of query and key in all blocks that are computed."""
    part_QK, whole_QK = _blocks(row)
    return int((part_QK | whole_QK).sum()) * BLOCK * BLOCK


def _blocks(row: PackedRow) -> tuple[np.ndarray, np.ndarray]:
    """Which blocks of queries see which blocks of keys: in part, and wholly [Q, K] bool."""
    blocks = -(-len(row) // BLOCK)
    # Nothing sees what is behind the row, so its last block is never seen wholly.
    ends = np.zeros(blocks * BLOCK, dtype=np.int64)
    ends[: len(row)] = row.tout_N
    ends_BK = ends.reshape(blocks, BLOCK)
    starts_B = np.arange(blocks) * BLOCK
    earlier_QK = starts_B[None, :] < starts_B[:, None]
    some_QK = earlier_QK & (ends_BK.max(axis=1)[None, :] > starts_B[:, None])
    whole_QK = some_QK & (ends_BK.min(axis=1)[None, :] >= starts_B[:, None] + BLOCK)
    return (some_QK & ~whole_QK) | np.eye(blocks, dtype=bool), whole_QK


def _block_lists(some_QK: np.ndarray, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """How many blocks of keys each block of queries has, and which, those it has first."""
    counts = torch.from_numpy(some_QK.sum(axis=1).astype(np.int32))
    order = torch.from_numpy(np.argsort(~some_QK, axis=1, kind="stable").astype(np.int32))
    return counts[None, None].to(device), order[None, None].contiguous().to(device)


def _mask(*arguments: Any, **options: Any) -> Any:
    """What transformers asks once a pass."""
    row = _row.get()
    if row is None:
        return sdpa_mask(*arguments, **options)
    device = torch.device(options["device"])
    if device.type == "cuda":
        return block_mask(row, device)
    return tiled_mask(row, options["dtype"], device)


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """What transformers calls in every layer: states [B, heads, N, d] to [B, N, heads, d]."""
    if isinstance(attention_mask, BlockMask):
        result: tuple[torch.Tensor, torch.Tensor | None] = flex_attention_forward(
            module, query, key, value, attention_mask, **options
        )
        return result
    if not isinstance(attention_mask, TiledMask):
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    parts = []
    for tile, keys, added in attention_mask.tiles:
        own = slice(tile.start, tile.end)
        if keys is None:
            seen_keys, seen_values = key[:, :, own], value[:, :, own]
        else:
            seen_keys, seen_values = key.index_select(2, keys), value.index_select(2, keys)
        part, _ = sdpa_attention_forward(
            module, query[:, :, own], seen_keys, seen_values, added, **options
        )
        parts.append(part)
    return torch.cat(parts, dim=1), None


AttentionInterface.register(TREE, _attention)
AttentionMaskInterface.register(TREE, _mask)
