"""A packed row shows every token exactly its own sequence, and its tiles and blocks agree."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_forward import forests

from memograd.policy.packed_row import PackedRow, pack
from memograd.policy.tree_attention import BLOCK, block_mask, blocks_computed
from memograd.rollout import TokenTree


def seen(row: PackedRow, place: int) -> list[int]:
    return row.tokens_N[row.visible_NN[place]].tolist()


def path(tree: TokenTree, node: int) -> list[int]:
    ids: list[int] = []
    while node >= 0:
        ids.append(int(tree.tokens_N[node]))
        node = int(tree.parents_N[node])
    return [*tree.trunk, *reversed(ids)]


@given(trees=forests)
def test_a_node_sees_its_prompt_and_its_branch_in_order(trees: list[TokenTree]) -> None:
    row = pack(trees)
    for tree, places in zip(trees, row.nodes, strict=True):
        for node, place in zip(tree.inner_M, places, strict=True):
            assert seen(row, place) == path(tree, int(node))
            assert row.positions_N[place] == len(path(tree, int(node))) - 1


def test_the_row_holds_every_distinct_token_once() -> None:
    tree = TokenTree.from_branches([3, 4, 5], [[7, 8, 9], [7, 8, 2], [6, 1]])
    other = TokenTree.from_branches([9], [[]])
    row = pack([tree, other, tree])
    # Leaves are not run, and a tree that has nothing else has nothing to run.
    assert row.tokens_N.tolist() == [3, 4, 5, 7, 8, 6] * 2
    assert row.tout_N.tolist() == [6, 6, 6, 5, 5, 6, 12, 12, 12, 11, 11, 12]
    assert row.positions_N.tolist() == [0, 1, 2, 3, 4, 3] * 2
    assert len(pack([other])) == 1


@given(trees=forests, size=st.integers(1, 12))
def test_tiles_compute_every_visible_pair_and_lose_none(trees: list[TokenTree], size: int) -> None:
    row = pack(trees)
    tiles = row.tiles(size)
    assert [place for tile in tiles for place in range(tile.start, tile.end)] == list(
        range(len(row))
    )
    for tile in tiles:
        own = list(range(tile.start, tile.end))
        before = [] if tile.before_L is None else tile.before_L.tolist()
        for place in own:
            outside = np.flatnonzero(row.visible_NN[place, : tile.start])
            assert set(outside) <= set(before)
            if tile.before_L is None:
                assert row.visible_NN[place, tile.start : place + 1].all() and not len(outside)
        assert tile.before_L is None or len(own) <= size


def test_long_answers_do_not_pay_for_each_other() -> None:
    """G = 16 answers of 1,024 tokens: pairs grow as with rows, where a dense mask has G times
    more."""
    answers = (np.arange(16)[:, None] * 2000 + np.arange(1024)[None, :]).tolist()
    row = pack([TokenTree.from_branches(range(512), answers)])
    pairs = sum(tile.pairs for tile in row.tiles())
    rows = 16 * (512 + 1024) ** 2
    dense = len(row) ** 2
    assert pairs < rows < dense / 7
    # Blocks at the edges are computed whole, so a little more than what is visible.
    visible = sum(int(end) - place for place, end in enumerate(row.tout_N))
    assert visible < blocks_computed(row) < 1.3 * visible


def test_blocks_are_whole_where_all_is_seen_and_absent_where_nothing_is() -> None:
    answers = [[500 + 700 * one + place for place in range(300)] for one in range(3)]
    trees = [
        TokenTree.from_branches(range(400), [*answers, answers[0][:100] + [3] * 90]),
        TokenTree.from_branches(range(150), [[5, 6], [7] * 40]),
    ]
    row = pack(trees)
    mask = block_mask(row, torch.device("cpu"))
    size = -(-len(row) // BLOCK) * BLOCK
    visible = np.zeros((size, size), dtype=bool)
    visible[: len(row), : len(row)] = row.visible_NN
    blocks = visible.reshape(size // BLOCK, BLOCK, size // BLOCK, BLOCK)
    assert mask.to_dense()[0, 0].bool().tolist() == blocks.any(axis=(1, 3)).tolist()
    full = np.zeros(blocks.shape[::2], dtype=bool)
    for query in range(len(full)):
        count = int(mask.full_kv_num_blocks[0, 0, query])
        full[query, mask.full_kv_indices[0, 0, query, :count].numpy()] = True
    assert full.tolist() == blocks.all(axis=(1, 3)).tolist()
