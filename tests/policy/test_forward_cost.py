"""The cheapest forward by shapes, and trees cut by branches."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_forward import scored_trees

from memograd.policy.forward_choice import (
    LayerCosts,
    cheapest,
    cut_branches,
    predicted_costs,
)
from memograd.rollout import TokenTree

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
SMOLLM2 = LayerCosts(token=106_000_000, pair=2 * 576 * 30)


def group(prompt: int, answers: int, length: int) -> TokenTree:
    ids = iter(range(1, 10**9))
    return TokenTree.from_branches(
        [next(ids) for _ in range(prompt)],
        [[next(ids) for _ in range(length)] for _ in range(answers)],
    )


def test_layers_are_counted_without_embedding_and_output_layer(tiny_policy) -> None:
    counted = LayerCosts.of(tiny_policy.model)
    config = tiny_policy.model.config
    layers = [w for n, w in tiny_policy.model.named_parameters() if ".layers." in n]
    assert counted.token == sum(w.numel() for w in layers if w.dim() == 2)
    assert counted.pair == 2 * config.hidden_size * config.num_hidden_layers


@pytest.mark.parametrize("device", [CPU, CUDA])
@pytest.mark.parametrize("shape", [(512, 8, 32), (256, 8, 128), (128, 8, 512), (512, 16, 1024)])
def test_the_packed_row_never_costs_more_than_rows(device, shape) -> None:
    costs = predicted_costs([group(*shape)], SMOLLM2, device)
    assert costs["packed"] < costs["rows"]
    assert cheapest(costs, ("packed", "rows")) == "packed"


def test_what_is_not_allowed_is_not_taken() -> None:
    # Long answers to a short prompt: two passes pay for a mask in which nobody sees anybody.
    costs = predicted_costs([group(16, 16, 1024)], LayerCosts(1000, 2000), CPU)
    assert costs["tree"] > costs["rows"] > costs["packed"]
    assert cheapest(costs, ("tree", "rows")) == "rows"
    assert cheapest(costs, ("tree",)) == "tree"


def test_padding_counts() -> None:
    trees = [group(400, 2, 5), group(10, 2, 5)]
    together = predicted_costs(trees, SMOLLM2, CPU)
    apart = [predicted_costs([tree], SMOLLM2, CPU) for tree in trees]
    # Small trees share a tile, which costs a few pairs and saves calls.
    assert together["packed"] == pytest.approx(sum(one["packed"] for one in apart), rel=0.01)
    assert together["tree"] > 1.5 * sum(one["tree"] for one in apart)


@given(tree=scored_trees(), limit=st.integers(1, 40))
def test_parts_hold_every_branch_once_in_order_and_fit(tree: TokenTree, limit: int) -> None:
    parts = cut_branches(tree, limit)
    assert [row for part in parts for row in part] == list(range(len(tree.branches)))
    for part in parts:
        own = tree.part(part)
        assert own.tree_tokens <= limit or len(part) == 1
        assert [own.branch(place) for place in range(len(part))] == [tree.branch(r) for r in part]
        assert [s.tolist() for s in own.scored] == [tree.scored[r].tolist() for r in part]
    if tree.tree_tokens <= limit:
        assert len(parts) == 1
