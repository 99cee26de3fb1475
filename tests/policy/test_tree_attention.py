"""The attention of packed rows: an ordinary one for ordinary calls, tiles and blocks for rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_forward import forests
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from memograd.policy import tree_attention
from memograd.policy.forward_choice import compare_forwards
from memograd.policy.rows import row_logprobs
from memograd.policy.tree_attention import (
    BLOCK,
    PackedRow,
    attending,
    block_mask,
    blocks_computed,
    pack,
    tiled_mask,
    use_tree_attention,
)
from memograd.policy.tree_forward import packed_logprobs
from memograd.rollout import TokenTree


@pytest.fixture
def trees(random_ids) -> list[TokenTree]:
    """Long and short trees, answers that share beginnings, one that goes over several tiles."""
    start = random_ids(30)
    return [
        TokenTree.from_branches(
            random_ids(140), [start + random_ids(60), start + random_ids(5), random_ids(150)]
        ),
        TokenTree.from_branches(random_ids(20), [random_ids(3), random_ids(9), []]),
    ]


def test_ordinary_calls_are_as_with_sdpa_to_the_bit(tiny_model_folder, random_ids) -> None:
    plain, ours = (AutoModelForCausalLM.from_pretrained(tiny_model_folder) for _ in range(2))
    assert plain.config._attn_implementation == "sdpa" and use_tree_attention(ours)
    ids = torch.tensor([random_ids(12), random_ids(12)])
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0
    for attention_mask in (None, mask):
        logits = [m(ids, attention_mask=attention_mask).logits for m in (plain, ours)]
        assert torch.equal(*logits)


def test_several_tiles_give_the_gradient_of_rows(tiny_model, trees, monkeypatch) -> None:
    monkeypatch.setattr(tree_attention.PackedRow.tiles, "__defaults__", (40,))
    assert len(pack(trees).tiles()) > 8
    found = []
    for forward in (packed_logprobs, row_logprobs):
        scores = forward(tiny_model, trees, temperature=0.8)
        total = scores.logprobs_RT.square().sum()
        gradients = torch.autograd.grad(total, list(tiny_model.parameters()))
        found.append((scores.logprobs_RT, *gradients))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-5)


@pytest.mark.slow
def test_flex_attention_and_tiles_agree(trees) -> None:
    """FlexAttention without its compiler, forward only: on a CPU it has no backward."""
    row = pack(trees)
    generator = torch.Generator().manual_seed(0)
    query, key, value = (
        torch.randn((1, heads, len(row), 16), generator=generator) for heads in (4, 2, 2)
    )
    module = torch.nn.Module()
    module.num_key_value_groups = 2
    module.is_causal = True
    masks = [
        tiled_mask(row, torch.float32, query.device),
        block_mask(row, query.device),
    ]
    with torch.no_grad(), torch.compiler.set_stance("force_eager"):
        tiles, blocks = (
            tree_attention._attention(module, query, key, value, mask, scaling=0.25)[0]
            for mask in masks
        )
    torch.testing.assert_close(blocks, tiles, atol=1e-5, rtol=1e-5)


def test_a_row_ends_where_it_was_announced(tiny_model, trees, random_ids) -> None:
    ids = torch.tensor([random_ids(7)])
    before = tiny_model(ids).logits
    with pytest.raises(ZeroDivisionError), attending(pack(trees)):
        raise ZeroDivisionError
    assert torch.equal(tiny_model(ids).logits, before)


def qwen3() -> PreTrainedModel:
    torch.manual_seed(0)
    shape = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "head_dim": 32}
    config = Qwen3Config(vocab_size=300, num_attention_heads=4, num_key_value_heads=2, **shape)
    return Qwen3ForCausalLM(config).eval()


def test_a_qwen3_is_computed_as_by_rows(trees) -> None:
    """fp32, normalised queries and keys, a head size that is not hidden_size / heads."""
    model = qwen3()
    assert use_tree_attention(model)
    agreement = compare_forwards(
        model, list(model.parameters()), trees, temperature=0.8, forward=packed_logprobs
    )
    assert agreement.logprob_error <= 5e-5
    assert agreement.gradient_error <= 2e-5


@pytest.mark.slow
def test_compiled_layers_compute_a_packed_row(trees) -> None:
    """`torch.compile` of every layer takes the row's attention whole, backward pass included.

    The compiler's own code generator is left out: it takes a minute and is torch's to test.
    """
    found = []
    for compiled in (False, True):
        model = qwen3()
        assert use_tree_attention(model)
        if compiled:
            torch._dynamo.reset()
            torch._dynamo.utils.counters.clear()
            for layer in model.model.layers:
                layer.compile(backend="aot_eager", fullgraph=True)
        scores = packed_logprobs(model, trees, temperature=0.8)
        gradients = torch.autograd.grad(scores.logprobs_RT.sum(), list(model.parameters()))
        found.append((scores.logprobs_RT, *gradients))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0
    for plain, made in zip(*found, strict=True):
        torch.testing.assert_close(made, plain, atol=1e-5, rtol=1e-5)


def test_attention_that_does_more_is_left_alone() -> None:
    """Gemma 2 caps its scores and is loaded with eager attention."""
    config = Gemma2Config(vocab_size=99, hidden_size=32, intermediate_size=32, num_hidden_layers=1,
                          num_attention_heads=2, num_key_value_heads=1, head_dim=16)  # fmt: skip
    config._attn_implementation = "eager"
    model = Gemma2ForCausalLM(config)
    assert not use_tree_attention(model)
    assert model.config._attn_implementation == "eager"


def visible_NN(row: PackedRow) -> np.ndarray:
    """Which token sees which [N, N] bool."""
    places_N = np.arange(len(row))
    before_NN = places_N[None, :] <= places_N[:, None]
    return before_NN & (places_N[:, None] < row.tout_N[None, :])


def seen(row: PackedRow, place: int) -> list[int]:
    return row.tokens_N[visible_NN(row)[place]].tolist()


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
            outside = np.flatnonzero(visible_NN(row)[place, : tile.start])
            assert set(outside) <= set(before)
            if tile.before_L is None:
                assert visible_NN(row)[place, tile.start : place + 1].all() and not len(outside)
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
    visible[: len(row), : len(row)] = visible_NN(row)
    blocks = visible.reshape(size // BLOCK, BLOCK, size // BLOCK, BLOCK)
    assert mask.to_dense()[0, 0].bool().tolist() == blocks.any(axis=(1, 3)).tolist()
    full = np.zeros(blocks.shape[::2], dtype=bool)
    for query in range(len(full)):
        count = int(mask.full_kv_num_blocks[0, 0, query])
        full[query, mask.full_kv_indices[0, 0, query, :count].numpy()] = True
    assert full.tolist() == blocks.all(axis=(1, 3)).tolist()
