"""A policy small enough that a whole training run takes a second, and scenarios for it."""

from __future__ import annotations

import pytest
import torch

from memograd.config import LoraConfig, TrainConfig
from memograd.policy.language_model import LanguageModel
from memograd.rollout import Message, Scenario

torch.set_num_threads(1)


@pytest.fixture
def tiny_policy(tiny_model_folder) -> LanguageModel:
    return LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=4), device="cpu")


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
