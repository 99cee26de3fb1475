"""A policy small enough that a whole training run takes a second, and scenarios for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from memograd.config import LoraConfig, TrainConfig
from memograd.policy.language_model import LanguageModel
from memograd.rollout import Message, Scenario

torch.set_num_threads(1)


@pytest.fixture
def tiny_policy(tiny_model_folder) -> LanguageModel:
    return LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=4), device="cpu")


@pytest.fixture(scope="session")
def deeper_model_folder(tiny_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with four layers."""
    folder = tmp_path_factory.mktemp("deeper")
    config = LlamaConfig.from_pretrained(tiny_model_folder)
    config.num_hidden_layers = 4
    LlamaForCausalLM(config).save_pretrained(folder)
    for file in tiny_model_folder.glob("tokenizer*"):
        (folder / file.name).write_bytes(file.read_bytes())
    for file in tiny_model_folder.glob("chat_template*"):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


@pytest.fixture
def scenarios() -> list[Scenario]:
    return [
        Scenario(
            id=f"q{number}",
            messages=(Message(role="user", content=f"say {'x' * number}"),),
            columns={"answer": "x", "category": "single-hop"},
        )
        for number in range(5)
    ]


@pytest.fixture
def tiny_config(tiny_model_folder) -> TrainConfig:
    return TrainConfig(
        model=str(tiny_model_folder),
        device="cpu",
        lora=LoraConfig(r=4),
        steps=6,
        prompts_per_step=2,
        num_generations=4,
        max_completion_length=4,
        learning_rate=1e-2,
        save_steps=2,
        rollout_log_steps=3,
    )
