"""What learning takes: counted without a number being made, and corrected by what is measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from peft import LoraConfig as PeftLoraConfig
from transformers import Qwen2Config

from memograd.config import LoraConfig, TrainConfig
from memograd.errors import BadInput
from memograd.grpo.distributed import ALONE
from memograd.policy.language_model import LanguageModel
from memograd.policy.memory_model import (
    GIB,
    LearnerNeeds,
    MemoryBudget,
    kept_bytes,
    memory_of,
    saved_bytes,
)
from memograd.policy.tree_forward import packed_logprobs
from memograd.rollout import TokenTree
from memograd.tasks.base.policy import load_policy, plan_memory

NEEDS = LearnerNeeds(
    weights=6 * GIB, optimiser=GIB, logits=0, layer_again=0.0, per_token=1e6, reserved=GIB
)


def test_a_7b_layer_is_counted_on_the_meta_device() -> None:
    config = Qwen2Config(hidden_size=3584, intermediate_size=18944, num_hidden_layers=28,
                         num_attention_heads=28, num_key_value_heads=4)  # fmt: skip
    modules = list(LoraConfig().target_modules)
    adapter = PeftLoraConfig(r=16, target_modules=modules, task_type="CAUSAL_LM")
    lora = saved_bytes(config, torch.bfloat16, lora=adapter)
    full = saved_bytes(config, torch.bfloat16, lora=None)
    # A third of a megabyte; a quarter of it are fp32 copies of what goes into the adapter.
    assert 0.30e6 < lora.layer < 0.40e6
    assert 0.6 < full.layer / lora.layer < 0.9
    assert lora.per_token(checkpointing=False) == 28 * lora.layer
    assert lora.per_token(checkpointing=True) == 28 * 3584 * 2


def test_what_is_counted_is_what_a_real_pass_keeps(tiny_policy, random_ids) -> None:
    model = tiny_policy.model
    adapter = tiny_policy.peft_model.peft_config["default"]
    counted = saved_bytes(model.config, model.dtype, lora=adapter)
    kept = []
    for length in (400, 800):
        tree = TokenTree.from_branches(random_ids(length), [random_ids(2)])
        with kept_bytes(weights=model.parameters()) as bytes_kept:
            packed_logprobs(model, [tree], temperature=1.0)
        kept.append(bytes_kept())
    assert (kept[1] - kept[0]) / 400 == pytest.approx(
        counted.per_token(checkpointing=False), rel=0.25
    )


def test_the_budget_is_what_memory_leaves_and_follows_what_is_measured() -> None:
    budget = MemoryBudget(NEEDS, 20 * GIB)
    assert budget.tokens == int((18 * GIB - 8 * GIB) / 1e6)
    budget.observe(1000, 2e9)
    assert budget.tokens == int(10 * GIB / 2e6)
    budget.observe(1000, 1e9)  # a lighter one does not make it bolder
    budget.observe(10, 1e9)  # ten tokens tell nothing
    assert budget.measured == 2e6
    assert MemoryBudget(NEEDS, 3 * GIB).tokens == 1
    assert budget.fits(1000) and not MemoryBudget(NEEDS, 8 * GIB).fits(1000)
    assert (
        budget.says(1000)
    ) == "this needs about 8.9 GiB for micro-batches of 1,000 tokens; there are 20.0"


def test_a_tree_beyond_the_budget_is_cut_and_a_first_step_measures(tiny_policy, random_ids) -> None:
    budget = tiny_policy.plan_memory()
    tree = TokenTree.from_branches(random_ids(60), [random_ids(40) for _ in range(4)])
    assert tiny_policy.cut(tree) == [[0, 1, 2, 3]] and tiny_policy.usual_tokens() == 1024
    tiny_policy.logprobs([tree], temperature=1.0)
    measured = tiny_policy.token_bytes
    assert measured == pytest.approx(budget.needs.per_token, rel=0.6)
    tiny_policy.logprobs([tree], temperature=1.0)
    assert tiny_policy.token_bytes == measured
    budget.have = int((budget.needs.fixed + 150 * measured) / 0.9) + 1
    assert tiny_policy.cut(tree) == [[0, 1], [2, 3]]
    tiny_policy.token_bytes = measured / 2
    assert tiny_policy.cut(tree) == [[0, 1, 2, 3]]


def test_measuring_changes_no_number(tiny_policy, random_ids) -> None:
    tree = TokenTree.from_branches(random_ids(60), [random_ids(20) for _ in range(3)])
    found = []
    for planned in (False, True):
        if planned:
            tiny_policy.plan_memory()
        scores = tiny_policy.logprobs([tree], temperature=1.0)
        gradients = torch.autograd.grad(scores.logprobs_RT.sum(), tiny_policy.parameters())
        found.append((scores.logprobs_RT, *gradients))
    for before, after in zip(*found, strict=True):
        assert torch.equal(before, after)


def test_what_does_not_fit_is_refused_with_what_to_change(tiny_model_folder, monkeypatch) -> None:
    config = TrainConfig(model=str(tiny_model_folder), device="cpu", max_completion_length=64)
    policy = load_policy(config, None)
    said = plan_memory(policy, config, ALONE)
    assert said.startswith("this needs about ") and "micro-batches of 1,024 tokens" in said
    plan = LanguageModel.plan_memory

    def small(self: LanguageModel, *, ranks: int = 1) -> MemoryBudget:
        budget = plan(self, ranks=ranks)
        return MemoryBudget(replace(budget.needs, weights=90 * GIB), 80 * GIB)

    monkeypatch.setattr(LanguageModel, "plan_memory", small)
    with pytest.raises(BadInput, match=r"about 9\d\.\d GiB .* there are 80\.0; use shard=fsdp2"):
        plan_memory(policy, config, ALONE)


def test_there_is_memory_here() -> None:
    assert memory_of(torch.device("cpu")) > GIB
