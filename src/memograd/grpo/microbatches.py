"""Micro-batches that keep a rollout whole, for ratios that are taken over all its tokens.

Invariant: every index appears once, and rollouts that share a tree, directly or through others, are
in one piece. Proved in `tests/grpo/test_microbatches.py`. Imports nothing.
"""

from __future__ import annotations

from collections.abc import Sequence


def keep_rollouts_whole(
    pieces: Sequence[Sequence[int]], rollouts_of_tree: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Merge `pieces` (indices of trees) until no rollout has rows in two of them."""
    merged: list[tuple[list[int], set[int]]] = []
    for piece in pieces:
        trees = list(piece)
        rollouts = {rollout for tree in piece for rollout in rollouts_of_tree[tree]}
        apart = []
        for other_trees, other_rollouts in merged:
            if rollouts.isdisjoint(other_rollouts):
                apart.append((other_trees, other_rollouts))
            else:
                trees = other_trees + trees
                rollouts |= other_rollouts
        merged = [*apart, (trees, rollouts)]
    return [trees for trees, _ in merged]
