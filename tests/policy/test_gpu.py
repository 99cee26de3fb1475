"""On a CUDA device: bf16 weights, trees as right as rounding allows, and a step that learns."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM

from memograd.config import LoraConfig
from memograd.policy.forward_choice import compare_forwards
from memograd.policy.language_model import LanguageModel
from memograd.policy.loading import PACKAGED_MODEL
from memograd.policy.tree_attention import use_tree_attention
from memograd.policy.tree_forward import packed_logprobs, tree_logprobs
from memograd.rollout import TokenTree

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]


@pytest.fixture(scope="module")
def policy() -> LanguageModel:
    return LanguageModel.load(PACKAGED_MODEL, lora=LoraConfig(), device="cuda")


def test_weights_are_bf16_and_the_adapter_is_fp32(policy) -> None:
    assert policy.model.dtype == torch.bfloat16
    assert {parameter.dtype for parameter in policy.parameters()} == {torch.float32}


def test_trees_agree_with_rows(policy) -> None:
    trees = [
        TokenTree.from_branches(range(100, 300), [range(400, 420), range(400, 410), [7]]),
        TokenTree.from_branches(range(500, 540), [range(600, 606), []]),
    ]
    for forward in (packed_logprobs, tree_logprobs):
        assert compare_forwards(
            policy.model, policy.parameters(), trees, temperature=0.8, forward=forward
        ).holds


def test_sampling_stays_with_trees(policy) -> None:
    prompts = [
        policy.encode([{"role": "user", "content": text}])
        for text in ("What is the capital of France?", "Name a colour.")
    ]
    generator = torch.Generator("cuda").manual_seed(0)
    groups = policy.sample(
        prompts,
        num_generations=8,
        temperature=0.8,
        max_completion_length=16,
        generator=generator,
    )
    assert policy.forward == "auto"
    scores = policy.logprobs([group.tree for group in groups], temperature=0.8)
    scores.logprobs_RT.sum().backward()
    assert all(parameter.grad is not None for parameter in policy.parameters())


def test_flex_attention_learns_as_rows_do_in_fp32(tiny_model_folder) -> None:
    """The compiled block mask, forward and backward, over several blocks."""
    model = AutoModelForCausalLM.from_pretrained(tiny_model_folder, dtype=torch.float32)
    model = model.eval().to("cuda")
    assert use_tree_attention(model)
    trees = [
        TokenTree.from_branches(
            [5 + place % 90 for place in range(300)],
            [[100 + (7 * answer + place) % 90 for place in range(150)] for answer in range(4)],
        ),
        TokenTree.from_branches(range(5, 45), [range(60, 66), []]),
    ]
    agreement = compare_forwards(
        model, list(model.parameters()), trees, temperature=0.8, forward=packed_logprobs
    )
    assert agreement.logprob_error <= 5e-4
    assert agreement.gradient_error <= 1e-3
