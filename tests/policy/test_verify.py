"""A model that the tree forward cannot serve is found out before training, not after."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
import torch
from transformers import (
    GraniteConfig,
    GraniteForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
)

from memograd.config import LoraConfig
from memograd.policy import model_policy
from memograd.policy.forward_choice import compare_forwards, sampling_error, small_subtrees
from memograd.policy.language_model import LanguageModel
from memograd.policy.rows import row_logprobs
from memograd.rollout import TokenTree

SHAPE = {
    "vocab_size": 258,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
    "eos_token_id": 0,
    "bos_token_id": None,
    "pad_token_id": 0,
}


def scaled_logits() -> PreTrainedModel:
    return GraniteForCausalLM(GraniteConfig(**SHAPE, logits_scaling=4.0))


def sliding_window() -> PreTrainedModel:
    return MistralForCausalLM(MistralConfig(**SHAPE, sliding_window=4))


def saved_policy(make, tiny_model_folder, folder, lora: LoraConfig | None = None) -> LanguageModel:
    torch.manual_seed(0)
    make().save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (folder / name).write_bytes((tiny_model_folder / name).read_bytes())
    return LanguageModel.load(str(folder), lora=LoraConfig(r=2), device="cpu")


@pytest.mark.parametrize("make", [scaled_logits, sliding_window])
def test_a_model_that_does_something_else_falls_back_to_rows(
    make, tiny_model_folder, tmp_path, caplog
) -> None:
    policy = saved_policy(make, tiny_model_folder, tmp_path)
    trees = [TokenTree.from_branches(range(5, 25), [[30, 31, 32], [30, 40]])]
    with caplog.at_level(logging.WARNING):
        agreement = policy.verify(trees, temperature=1.0)
    assert agreement is not None and not agreement.holds
    assert policy.forward == "rows"
    assert "forward=rows" in caplog.text


@pytest.mark.parametrize("make", [scaled_logits, sliding_window])
def test_such_a_model_is_sampled_from_by_rows(make, tiny_model_folder, tmp_path, caplog) -> None:
    """Found out on the first batch, whose answers are drawn again from the right distribution."""
    policy = saved_policy(make, tiny_model_folder, tmp_path)
    prompts = [list(range(5, 25)), list(range(40, 70))]
    with caplog.at_level(logging.WARNING):
        groups = policy.sample(prompts, num_generations=3, temperature=0.8, max_completion_length=6)
    assert policy.forward == "rows" and "forward=rows" in caplog.text
    assert sampling_error(policy.model, groups, temperature=0.8) < 1e-4


def test_an_ordinary_model_keeps_the_tree(tiny_policy) -> None:
    trees = [TokenTree.from_branches(range(5, 25), [[30, 31, 32], [30, 40]])]
    agreement = tiny_policy.verify(trees, temperature=1.0)
    assert agreement is not None and agreement.holds
    assert agreement.gradient_error < 1e-4
    assert tiny_policy.forward == "auto"


def test_bf16_rounding_is_tolerated_and_a_wrong_model_is_not(tiny_model_folder) -> None:
    from transformers import AutoModelForCausalLM

    trees = [TokenTree.from_branches(range(5, 25), [[30, 31, 32], [30, 40]])]
    model = AutoModelForCausalLM.from_pretrained(tiny_model_folder, dtype=torch.bfloat16)
    assert compare_forwards(model, list(model.parameters()), trees, temperature=1.0).holds
    torch.manual_seed(0)
    wrong = sliding_window().to(torch.bfloat16)
    assert not compare_forwards(wrong, list(wrong.parameters()), trees, temperature=1.0).holds


def test_the_subtrees_that_are_compared_can_tell() -> None:
    """Longest and shortest prompt; the longest branch and one that differs from it."""
    trees = [
        TokenTree.from_branches(range(2, 2 + length), [[3], [1, 2], [1, 2], [4]])
        for length in (6, 9, 4)
    ]
    chosen = small_subtrees(trees)
    assert [len(tree.prompt) for tree in chosen] == [9, 4]
    for tree in chosen:
        assert [tree.branch(row) for row in range(len(tree.branches))] == [(1, 2), (3,)]
    (same,) = small_subtrees([TokenTree.from_branches([5, 6], [[7], [7]])])
    assert [same.branch(row) for row in range(len(same.branches))] == [(7,)]


def test_a_window_that_only_a_longer_prompt_exceeds_is_found_when_it_comes(
    tiny_model_folder, tmp_path
) -> None:
    def window_of_thirty() -> PreTrainedModel:
        return MistralForCausalLM(MistralConfig(**SHAPE, sliding_window=30))

    policy = saved_policy(window_of_thirty, tiny_model_folder, tmp_path)
    settings = {"num_generations": 2, "temperature": 0.8, "max_completion_length": 4}
    policy.sample([list(range(5, 15))], **settings)
    assert policy.forward == "auto"
    policy.sample([list(range(5, 15)), list(range(5, 70))], **settings)
    assert policy.forward == "rows"


def test_nan_is_no_agreement(tiny_policy) -> None:
    prompts = [list(range(5, 15)), list(range(5, 30))]
    groups = tiny_policy.sample(
        prompts, num_generations=2, temperature=1.0, max_completion_length=3
    )
    groups[1].logprobs[0][:] = float("nan")
    error = sampling_error(tiny_policy.model, groups, temperature=1.0)
    assert not error <= 1.0


def test_a_window_that_only_a_longer_answer_exceeds_is_found_when_it_comes(
    tiny_model_folder, tmp_path
) -> None:
    """Prompts of one length, answers that grow: as a policy learns to say more."""

    def window_of_thirty() -> PreTrainedModel:
        return MistralForCausalLM(MistralConfig(**SHAPE, sliding_window=30))

    policy = saved_policy(window_of_thirty, tiny_model_folder, tmp_path)
    prompts = [list(range(5, 25))]
    settings = {"num_generations": 3, "temperature": 0.8}
    policy.sample(prompts, max_completion_length=4, **settings)
    assert policy.forward == "auto"
    groups = policy.sample(prompts, max_completion_length=60, **settings)
    assert max(map(len, groups[0].logprobs)) > 20
    assert policy.forward == "rows"
    assert sampling_error(policy.model, groups, temperature=0.8) < 1e-4


def test_where_only_the_packed_row_is_wrong_two_passes_are_used(
    tiny_policy, monkeypatch, caplog
) -> None:
    def wrong(*arguments, **settings):
        scores = row_logprobs(*arguments, **settings)
        return replace(scores, logprobs_RT=scores.logprobs_RT * 1.1)

    monkeypatch.setitem(model_policy._FORWARDS, "packed", wrong)
    trees = [TokenTree.from_branches(range(5, 25), [[30, 31, 32], [30, 40]])]
    with caplog.at_level(logging.WARNING):
        agreement = tiny_policy.verify(trees, temperature=1.0)
    assert agreement is not None and agreement.holds
    assert tiny_policy.forward == "tree" and "forward=tree" in caplog.text
