"""Six ways in which a server poisons training: each is refused before the first step by name."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
import torch
from tests.policy.scripted_vllm import FAULTS, ScriptedVllm
from transformers import LlamaConfig, LlamaForCausalLM

from memograd.config import SamplerConfig
from memograd.errors import BadInput
from memograd.grpo.sampler_gap import GapLimits, climb
from memograd.policy.remote.pool import ServerPool
from memograd.policy.remote.probe import probe
from memograd.policy.remote.sampler import RemoteSampler
from memograd.policy.remote.server import SamplingFailed, VllmServer

SAYS = {
    "stale prefix": "stale prefix cache",
    "raw log-probabilities": "--logprobs-mode processed_logprobs",
    "temperature": "another temperature, about 0.85",
    "template": "another prompt than was sent",
    "adapter": "answers from the model alone",
    "BOS": "dropped the first token",
}


@pytest.fixture(scope="module")
def server(tiny_model_folder) -> Iterator[ScriptedVllm]:
    served = ScriptedVllm(tiny_model_folder)
    yield served
    served.stop()


@pytest.fixture
def sampler(server, tiny_policy, tmp_path) -> Iterator[RemoteSampler]:
    pool = ServerPool([VllmServer(server.url, seconds=20)], tmp_path / "adapters", patience=1)
    made = RemoteSampler(tiny_policy, pool)
    yield made
    server.fault = None
    made.close()


def test_every_planted_fault_has_its_sentence():
    assert set(SAYS) == set(FAULTS)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_refused_by_name(fault, server, sampler, tiny_policy):
    server.fault = fault
    with pytest.raises(BadInput, match=SAYS[fault]):
        probe(tiny_policy, sampler, tiny_policy.encode("What is kept?"), limit=2e-3)
    assert server.loaded == []  # nothing of the probe stays


def test_a_server_that_is_right_passes(server, sampler, tiny_policy):
    before = [weight.detach().clone() for weight in tiny_policy.parameters()]
    assert probe(tiny_policy, sampler, tiny_policy.encode("What is kept?"), limit=2e-3) < 1e-4
    assert server.loaded == []
    for was, weight in zip(before, tiny_policy.parameters(), strict=True):
        assert (was == weight).all()


def test_a_server_of_a_model_with_more_tokens_is_refused(tiny_policy, tiny_model_folder, tmp_path):
    config = LlamaConfig.from_pretrained(tiny_model_folder)
    own = config.vocab_size
    config.vocab_size = 8 * own
    shutil.copytree(tiny_model_folder, tmp_path / "larger")
    LlamaForCausalLM(config).save_pretrained(tmp_path / "larger")
    other = ScriptedVllm(tmp_path / "larger")
    pool = ServerPool([VllmServer(other.url)], tmp_path / "adapters", patience=1)
    sampler = RemoteSampler(tiny_policy, pool)
    try:
        with pytest.raises(SamplingFailed, match=rf"has only {own}: let it serve the run's model"):
            probe(tiny_policy, sampler, tiny_policy.encode("What is kept?"), limit=2e-3)
    finally:
        sampler.close()
        other.stop()


@pytest.mark.slow
def test_two_hundred_steps_of_a_server_that_is_right_raise_no_alarm(server, sampler, tiny_policy):
    """Weights move every step, prompts begin alike, and no token is weighed or dropped."""
    limits = GapLimits.of(SamplerConfig(engine="vllm", url=[server.url]), torch.float32)
    tiny_policy.remote = sampler
    draws = torch.Generator().manual_seed(0)
    moves = torch.Generator().manual_seed(1)
    prompt = tiny_policy.encode("What is kept?")
    widest = 0.0
    for step in range(200):
        tiny_policy.publish(step)
        [group] = tiny_policy.sample(
            [prompt[: 12 + step % 7]],
            num_generations=2,
            temperature=0.5 + step % 3 / 4,
            max_completion_length=5,
            generator=draws,
        )
        with torch.no_grad():
            scores = tiny_policy.logprobs([group.tree], temperature=0.5 + step % 3 / 4)
            rungs = climb(
                scores.logprobs_RT,
                padded := torch.nn.utils.rnn.pad_sequence(
                    [torch.from_numpy(row).float() for row in group.logprobs], batch_first=True
                ),
                scores.mask_RT,
                limits,
            )
            widest = max(widest, float((scores.logprobs_RT - padded).abs().max()))
            assert rungs.importance_RT.eq(1).all()
            assert not rungs.masked_R.any()
            for weight in tiny_policy.parameters():
                weight += 0.005 * torch.randn(weight.shape, generator=moves)
    assert widest < 5e-4  # fp32 rounding of the sharpest tokens; a rung begins at 1e-3
    assert len(server.loaded) <= 2  # older versions are gone
