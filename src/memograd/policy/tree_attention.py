"""Trees as one depth-first row, and the attention over it, which transformers knows as `TREE`.

Trees stand one after another, each trunk first and then its inner nodes in depth-first order (a
leaf predicts nothing and is left out). In this order the tokens below token k are the neighbours
behind it, so two numbers a token say all about who sees whom: its place in the row (`tin`) and the
end of what lies below it (`tout`).

    q sees k   <=>   tin[k] <= tin[q] < tout[k]

    place    0   1     2    3    4     5
    token    What is?  7    May  June  Sweden      (trunk "What", root "is?")
    tout     6   6     5    4    5     6           June sees What, is?, 7 and itself

Nothing is padded, however different the trees are. What a stretch of the row sees outside itself
is exactly what its first token sees, because an ancestor of any of its tokens that lies before the
stretch is an ancestor of the first. So attention over the row can be computed stretch by stretch
(`tiles`), each against the few keys that it can see, and answers never pay for each other.

A model whose attention is `TREE` computes as with `sdpa`, to the bit, until a row of trees is
announced (`attending`). Then its mask is the row's (`TiledMask`, or a block mask), made once a pass
and handed to every layer by transformers' own mask registry:

    CPU, others  the row in tiles, each against the keys that it sees, by
                 scaled_dot_product_attention: no N x N mask exists
    CUDA         FlexAttention with a block mask, which leaves out blocks of 128 x 128 tokens that
                 see nothing of each other

Invariants: for every inner node the tokens that it sees are its prompt and its own branch, in
order; a token's result is that of ordinary causal attention over its own sequence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch.nn.attention.flex_attention import BlockMask
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.flex_attention import flex_attention_forward
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from memograd.rollout.token_tree import TokenTree

TILE = 256
"""Tokens of a stretch whose attention is computed at once, where no kernel skips empty blocks.
Longer ones spend products on pairs that see nothing of each other, shorter ones spend calls."""


@dataclass(frozen=True)
class Tile:
    """Tokens `start` to `end` of the row, and the places before them that the first of them sees.

    `before_L` is None where that is nothing and the tokens are a chain: plain causal attention.
    """

    start: int
    end: int
    before_L: np.ndarray | None

    @property
    def pairs(self) -> int:
        """Pairs of query and key that are computed: a causal chain leaves out half."""
        length = self.end - self.start
        if self.before_L is None:
            return length * (length + 1) // 2
        return length * (len(self.before_L) + length)


@dataclass(frozen=True, eq=False)
class PackedRow:
    """N tokens of all trees in one row.

    `tokens_N` ids, `positions_N` places in their own sequences (what a position embedding gets),
    `tout_N` the ends of what lies below them. `nodes[t]` are the places of tree t's inner nodes, in
    the order of its `inner_M`.
    """

    tokens_N: np.ndarray
    positions_N: np.ndarray
    tout_N: np.ndarray
    nodes: tuple[np.ndarray, ...]

    def __len__(self) -> int:
        return len(self.tokens_N)

    @cached_property
    def chains(self) -> list[tuple[int, int]]:
        """The row cut where a token does not go on from the one before it alone."""
        if not len(self):
            return []
        # A token goes on from its neighbour if it is below it; alone, if both end together.
        goes_on = self.tout_N[:-1] == self.tout_N[1:]
        below = np.arange(1, len(self)) < self.tout_N[:-1]
        cuts = np.flatnonzero(~(goes_on & below)) + 1
        edges = [0, *cuts.tolist(), len(self)]
        return list(pairwise(edges))

    def seen_before(self, place: int) -> np.ndarray:
        """The places before `place` that the token there sees, in order."""
        return np.flatnonzero(self.tout_N[:place] > place)

    def tiles(self, size: int = TILE) -> list[Tile]:
        """The row in stretches of at most `size` tokens; a chain that begins a tree is one, however
        long."""
        tiles: list[Tile] = []
        start = end = 0

        def close() -> None:
            if end > start:
                tiles.append(Tile(start, end, self.seen_before(start)))

        for first, last in self.chains:
            if last - first < size:
                if last - start > size:
                    close()
                    start = first
                end = last
                continue
            close()
            if self.positions_N[first] == 0:
                tiles.append(Tile(first, last, None))
            else:
                for piece in range(first, last, size):
                    stop = min(piece + size, last)
                    tiles.append(Tile(piece, stop, self.seen_before(piece)))
            start = end = last
        close()
        return tiles


def pack(trees: Sequence[TokenTree]) -> PackedRow:
    """The row of `trees`; one token of nothing where none of them has anything to compute."""
    tokens: list[np.ndarray] = []
    positions: list[np.ndarray] = []
    ends: list[np.ndarray] = []
    nodes: list[np.ndarray] = []
    base = 0
    for tree in trees:
        if not len(tree.inner_M):
            nodes.append(np.zeros(0, dtype=np.int64))
            continue
        trunk = len(tree.trunk)
        place_M, size_M = _depth_first(tree)
        count = len(place_M)
        inner_tokens = np.zeros(count, dtype=np.int64)
        inner_positions = np.zeros(count, dtype=np.int64)
        inner_ends = np.zeros(count, dtype=np.int64)
        inner_tokens[place_M] = tree.tokens_N[tree.inner_M]
        inner_positions[place_M] = trunk + tree.depths_N[tree.inner_M]
        inner_ends[place_M] = base + trunk + place_M + size_M
        tokens += [np.asarray(tree.trunk, dtype=np.int64), inner_tokens]
        positions += [np.arange(trunk), inner_positions]
        ends += [np.full(trunk, base + trunk + count), inner_ends]
        nodes.append(base + trunk + place_M)
        base += trunk + count
    if not base:
        nothing = np.zeros(1, dtype=np.int64)
        return PackedRow(nothing, nothing, nothing + 1, tuple(nodes))
    return PackedRow(
        np.concatenate(tokens), np.concatenate(positions), np.concatenate(ends), tuple(nodes)
    )


def _depth_first(tree: TokenTree) -> tuple[np.ndarray, np.ndarray]:
    """Of every inner node its place in depth-first order and how many lie in its subtree [M]."""
    inner_M = tree.inner_M
    parents_M = np.searchsorted(inner_M, tree.parents_N[inner_M])
    size_M = np.ones(len(inner_M), dtype=np.int64)
    # A parent's index is smaller than its child's, so children are complete before they are added.
    for row in range(len(inner_M) - 1, 0, -1):
        size_M[parents_M[row]] += size_M[row]
    place_M = np.zeros(len(inner_M), dtype=np.int64)
    next_M = np.ones(len(inner_M), dtype=np.int64)
    for row in range(1, len(inner_M)):
        parent = parents_M[row]
        place_M[row] = place_M[parent] + next_M[parent]
        next_M[parent] += size_M[row]
    return place_M, size_M


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
