"""The attention of packed rows: an ordinary one for ordinary calls, tiles and blocks for rows."""

from __future__ import annotations

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from memograd.policy import packed_row, tree_attention
from memograd.policy.packed_row import pack
from memograd.policy.rows import row_logprobs
from memograd.policy.tree_attention import attending, block_mask, tiled_mask, use_tree_attention
from memograd.policy.tree_forward import packed_logprobs
from memograd.policy.verify import compare_forwards
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
    monkeypatch.setattr(packed_row.PackedRow.tiles, "__defaults__", (40,))
    assert len(pack(trees).tiles()) > 8
    found = []
    for forward in (packed_logprobs, row_logprobs):
        scores = forward(tiny_model, trees, temperature=0.8)
        total = scores.logprobs_RT.square().sum()
        gradients = torch.autograd.grad(total, list(tiny_model.parameters()))
        found.append((scores.logprobs_RT, *gradients))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-5)


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
