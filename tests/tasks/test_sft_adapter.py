"""GRPO that begins with a supervised adapter: held near it, and resumed with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from memograd.config import TrainConfig
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.policy.language_model import LanguageModel
from memograd.rollout import TokenTree
from memograd.tasks.base.policy import settings_with_adapter
from memograd.tasks.memory_qa.settings import MemoryQATrainConfig
from memograd.tasks.registry import train
from memograd.tasks.text.settings import TextTrainConfig
from memograd.warm_start.settings import SftSettings
from memograd.warm_start.sft import sft

TREES = [TokenTree.from_branches(range(5, 25), [[30, 31], [30, 40, 41]])]


@pytest.fixture(scope="module")
def begun(tmp_path_factory, tiny_model_folder) -> Path:
    """A supervised run whose adapter has moved."""
    folder = tmp_path_factory.mktemp("begun")
    rows = folder / "rows.jsonl"
    rows.write_text(json.dumps({"prompt": "2+2=", "completion": " 4"}) + "\n")
    return sft(
        SftSettings(
            data=rows,
            out=folder / "run",
            model=str(tiny_model_folder),
            device="cpu",
            lora={"r": 4},
            steps=3,
            learning_rate=0.005,
        )
    )


@pytest.fixture
def settings(begun, small_data) -> dict[str, Any]:
    return {
        "adapter": begun,
        "data": small_data,
        "device": "cpu",
        "steps": 2,
        "prompts_per_step": 2,
        "num_generations": 4,
        "temperature": 2.0,
        "max_completion_length": 4,
        "save_steps": 1,
        "memory": {"top_k": 2, "embedder": "minilm"},
        "rewards": "length(low=2, high=4)",
    }


def test_the_policy_begins_as_the_adapter_and_is_held_near_it(begun) -> None:
    config = settings_with_adapter(TrainConfig(adapter=begun, device="cpu"))
    assert config.lora.r == 4 and config.adapter == begun / "final"
    policy = LanguageModel.load_adapter(
        config.model, config.adapter, reference=config.adapter, device="cpu"
    )
    current = policy.logprobs(TREES, temperature=1.0).logprobs_RT.detach()
    torch.testing.assert_close(
        policy.reference_logprobs(TREES, temperature=1.0).logprobs_RT, current
    )
    with policy.untrained():
        alone = policy.logprobs(TREES, temperature=1.0).logprobs_RT.detach()
    assert (alone - current).abs().max() > 0.01
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 0.1
    moved = policy.logprobs(TREES, temperature=1.0).logprobs_RT.detach()
    assert (moved - current).abs().max() > 0.01
    torch.testing.assert_close(
        policy.reference_logprobs(TREES, temperature=1.0).logprobs_RT, current
    )
    assert all("reference" not in name for name, p in policy.peft_model.named_parameters()
               if p.requires_grad)  # fmt: skip


@pytest.mark.slow
def test_a_resumed_run_keeps_its_reference_to_the_bit(tmp_path, settings, begun) -> None:
    """Also when the run that it began with is gone."""
    copy = tmp_path / "begun"
    shutil.copytree(begun, copy)
    whole = train(MemoryQATrainConfig(out=tmp_path / "whole", **settings))
    cut = {**settings, "adapter": copy, "steps": 1}
    half = train(MemoryQATrainConfig(out=tmp_path / "half", **cut))
    shutil.rmtree(copy)
    train(MemoryQATrainConfig(resume=half, steps=2))
    rows = [RunFolder.open(run).read_metrics() for run in (whole, half)]
    assert rows[0][0]["kl"] is None or abs(rows[0][0]["kl"]) < 1e-5
    for one, other in zip(*rows, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}
    for name in ("adapter_model.safetensors", "reference/adapter_model.safetensors"):
        one, other = (load_file(run / "final" / name) for run in (whole, half))
        assert all(torch.equal(one[key], other[key]) for key in one)
    trained = load_file(whole / "final" / "adapter_model.safetensors")
    reference = load_file(whole / "final" / "reference" / "adapter_model.safetensors")
    assert any(not torch.equal(trained[key], reference[key]) for key in trained)


def test_settings_that_contradict_the_adapter_are_refused(begun, tmp_path) -> None:
    with pytest.raises(BadInput, match="trained with another lora"):
        settings_with_adapter(TrainConfig(adapter=begun, lora={"r": 8}))
    with pytest.raises(BadInput, match="trained with another model"):
        settings_with_adapter(TrainConfig(adapter=begun, model="Qwen/Qwen2.5-0.5B"))
    same = TrainConfig(adapter=begun / "final", lora={"r": 4})
    assert settings_with_adapter(same).adapter == begun / "final"
    partly = TrainConfig(adapter=begun, lora={"dropout": 0.0})  # r is that run's
    assert settings_with_adapter(partly).lora.r == 4
    with pytest.raises(BadInput, match="no run folder"):
        settings_with_adapter(TrainConfig(adapter=tmp_path / "gone"))


def test_a_supervised_run_is_not_resumed(begun) -> None:
    with pytest.raises(BadInput, match=r"made by memograd sft and cannot be resumed.*adapter="):
        train(MemoryQATrainConfig(resume=begun, steps=9))
    with pytest.raises(BadInput, match=r"made by memograd sft and cannot be resumed.*adapter="):
        train(TextTrainConfig(resume=begun, steps=9))
