"""Six ways in which a server poisons training: each is refused before the first step by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.policy.scripted_vllm import FAULTS, ScriptedVllm

from memograd.errors import BadInput
from memograd.policy.remote.pool import ServerPool
from memograd.policy.remote.probe import probe
from memograd.policy.remote.sampler import RemoteSampler
from memograd.policy.remote.server import VllmServer

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
