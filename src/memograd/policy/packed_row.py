"""Trees as one depth-first row: the plain data of the packed forward, without a model.

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

Invariant: for every inner node the tokens that it sees are its prompt and its own branch, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

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

    @property
    def visible_NN(self) -> np.ndarray:
        """Which token sees which [N, N] bool; for tests, and for rows that are short."""
        places_N = np.arange(len(self))
        before_NN = places_N[None, :] <= places_N[:, None]
        return np.asarray(before_NN & (places_N[:, None] < self.tout_N[None, :]))

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
