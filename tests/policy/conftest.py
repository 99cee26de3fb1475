"""Models for the policy room: a tiny one in float64, where rounding hides nothing, and SmolLM2."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from memograd.config import LoraConfig
from memograd.policy.language_model import LanguageModel
from memograd.policy.loading import PACKAGED_MODEL
from memograd.policy.tree_attention import use_tree_attention

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_model(tiny_model_folder) -> PreTrainedModel:
    """The tiny Llama in float64, with the attention that knows packed rows."""
    model = AutoModelForCausalLM.from_pretrained(tiny_model_folder, dtype=torch.float64).eval()
    assert use_tree_attention(model)
    return model


@pytest.fixture
def tiny_policy(tiny_model_folder) -> LanguageModel:
    """The tiny Llama with an adapter that does something (both of its halves are random)."""
    policy = LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=4), device="cpu")
    randomise_adapter(policy, seed=1, scale=0.2)
    return policy


@pytest.fixture(scope="session")
def smollm2() -> LanguageModel:
    """The packaged SmolLM2 with an adapter that does something; converted on first use."""
    policy = LanguageModel.load(PACKAGED_MODEL, lora=LoraConfig(r=8), device="cpu")
    randomise_adapter(policy, seed=1, scale=0.02)
    return policy


@pytest.fixture
def random_ids() -> Callable[[int], list[int]]:
    """A seeded source of token ids that both models know."""
    generator = torch.Generator().manual_seed(0)
    return lambda count: torch.randint(2, 250, (count,), generator=generator).tolist()


def randomise_adapter(policy: LanguageModel, *, seed: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)
