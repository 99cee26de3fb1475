"""A real vLLM on a CPU (slow; `real_vllm.py` says how): what the scripted one only plays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from tests.policy.real_vllm import ENVIRONMENT, Between, LoadsInPlace, needs_vllm, real_server
from transformers import AutoModelForCausalLM, AutoTokenizer

from memograd.config import LoraConfig
from memograd.errors import BadInput
from memograd.policy.full_model import FullModel
from memograd.policy.language_model import LanguageModel
from memograd.policy.loading import PACKAGED_MODEL, resolve_model
from memograd.policy.model_policy import ModelPolicy
from memograd.policy.remote.pool import ServerPool
from memograd.policy.remote.probe import probe
from memograd.policy.remote.sampler import RemoteSampler
from memograd.policy.remote.server import VllmServer
from memograd.policy.remote.weights_server import WeightsServer

pytestmark = [pytest.mark.slow, needs_vllm]

TEXT = "The quick brown fox jumps over the lazy dog. 敏捷的狐狸跳过懒狗。 0 1 2 3 4 5 6 7 8 9"
LIMIT = 2e-3
TEMPERATURE = 0.7


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def smollm2_folder() -> Path:
    return Path(resolve_model(PACKAGED_MODEL))


@pytest.fixture(scope="module")
def untied(smollm2_folder, tmp_path_factory) -> Path:
    """SmolLM2 with an output layer of its own: vLLM's build for CPUs keeps a tied one as it was."""
    folder = tmp_path_factory.mktemp("untied")
    model = AutoModelForCausalLM.from_pretrained(smollm2_folder, dtype=torch.float32)
    model.config.tie_word_embeddings = False
    model.lm_head.weight = torch.nn.Parameter(model.model.embed_tokens.weight.detach().clone())
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(smollm2_folder).save_pretrained(folder)
    return folder


def remote_of(policy: ModelPolicy, server: VllmServer, folder: Path, **settings: Any):
    pool = ServerPool([server], folder / "versions", patience=2)
    return RemoteSampler(policy, pool, **settings)


def move(policy: ModelPolicy, seed: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator) * scale)


def drawn_gap(policy: ModelPolicy, version: int) -> float:
    """The largest difference of what the server says of its tokens to what the learner does."""
    groups = policy.sample(
        [policy.encode(TEXT[: 60 + version]), policy.encode("What is kept?")],
        num_generations=3,
        temperature=TEMPERATURE,
        max_completion_length=16,
        generator=torch.Generator().manual_seed(version),
    )
    assert {s.version for g in groups for spans in g.versions for s in spans} == {version}
    with torch.no_grad():
        scores = policy.logprobs([group.tree for group in groups], temperature=TEMPERATURE)
    rows = [row for group in groups for row in group.logprobs]
    return max(
        float((scores.logprobs_RT[place, : len(row)] - torch.from_numpy(row)).abs().max())
        for place, row in enumerate(rows)
    )


class KeepsPrefixes(WeightsServer):
    """Exchanges weights, and leaves the keys and values of those before."""

    def _told(self, path: str, body: Any = None) -> None:
        super()._told(path + "&clear_cache=false" if path.startswith("/pause") else path, body)

    def _asked(self, method: str, path: str, body: Any, seconds: float) -> dict[str, Any]:
        if path.startswith("/reset_prefix_cache"):
            return {"success": True}
        return super()._asked(method, path, body, seconds)


def test_whole_weights_of_every_version_are_what_the_learner_scores(untied, tmp_path):
    policy = FullModel.open(str(untied), reference=False, device="cpu")
    with real_server(untied, tmp_path, rank=None) as url:
        stale = remote_of(policy, KeepsPrefixes(url), tmp_path / "stale")
        with pytest.raises(BadInput, match="stale prefix cache"):
            probe(policy, stale, policy.encode(TEXT), limit=LIMIT)
        stale.close()
        policy.remote = remote_of(policy, WeightsServer(url), tmp_path)
        try:
            assert probe(policy, policy.remote, policy.encode(TEXT), limit=LIMIT) < 1e-4
            for version in range(4):
                began = time.monotonic()
                policy.publish(version)
                seconds = time.monotonic() - began
                gap = drawn_gap(policy, version)
                print(f"version {version}: gap {gap:.2g} nats, transfer {seconds:.2f} s")
                assert gap < 2e-4
                move(policy, version, 0.003)
            # Another run tells the server to load something: it is found, and told again.
            other = WeightsServer(url)
            other.load("mg-another-0", str(untied))
            assert drawn_gap(policy, 3) > 1e-2  # the weights moved, and the server has version 3
            policy.publish(4)
            assert drawn_gap(policy, 4) < 2e-4
        finally:
            policy.remote.close()
        assert httpx.get(f"{url}/weight_info").json() == {"weight_version": "default"}


def test_a_tied_output_layer_is_refused_on_a_cpu(smollm2_folder, tmp_path):
    policy = FullModel.open(str(smollm2_folder), reference=False, device="cpu")
    with real_server(smollm2_folder, tmp_path, rank=None) as url:
        remote = remote_of(policy, WeightsServer(url), tmp_path)
        try:
            with pytest.raises(
                BadInput, match="keeps the old output layer where it is the embedding"
            ):
                probe(policy, remote, policy.encode(TEXT), limit=LIMIT)
        finally:
            remote.close()


@pytest.fixture(scope="module")
def adapters(smollm2_folder, tmp_path_factory) -> Iterator[str]:
    """Takes adapters; in development mode, where it also goes to sleep."""
    folder = tmp_path_factory.mktemp("server")
    taking = ("--enable-lora", "--max-lora-rank=8", "--max-loras=2")
    with real_server(smollm2_folder, folder, *taking, rank=None) as url:
        yield url


@pytest.fixture
def policy(smollm2_folder) -> LanguageModel:
    made = LanguageModel.load(str(smollm2_folder), lora=LoraConfig(r=8), device="cpu")
    move(made, 1, 0.02)
    return made


def hotter(path: str, body: dict[str, Any]) -> None:
    if path == "/v1/completions":
        body["temperature"] = 0.6 + 0.5 * body["temperature"]


def no_first_token(path: str, body: dict[str, Any]) -> None:
    if path == "/v1/completions":
        body["prompt"] = body["prompt"][1:]


def with_template(path: str, body: dict[str, Any]) -> None:
    if path == "/v1/completions":
        system = [1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 30, 2, 198]
        body["prompt"] = [*system, *body["prompt"]]


def without_adapter(path: str, body: dict[str, Any]) -> None:
    if path == "/v1/completions" and body["model"].startswith("mg-"):
        body["model"] = resolve_model(PACKAGED_MODEL)


FAULTS = {
    "temperature": (hotter, "another temperature, about 0.85"),
    "BOS": (no_first_token, "dropped the first token"),
    "template": (with_template, "another prompt than was sent"),
    "adapter": (without_adapter, "answers from the model alone"),
    "stale prefix": (LoadsInPlace(), "stale prefix cache"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_refused_by_name(fault, adapters, policy, tmp_path):
    between = Between(adapters)
    between.rewrite, says = FAULTS[fault]
    remote = remote_of(policy, VllmServer(between.url), tmp_path)
    try:
        with pytest.raises(BadInput, match=says) as raised:
            probe(policy, remote, policy.encode(TEXT), limit=LIMIT)
        print(raised.value)
    finally:
        between.rewrite = lambda path, body: None
        remote.close()
        between.stop()


def test_raw_log_probabilities_are_refused_by_name(smollm2_folder, policy, tmp_path):
    raw = "--logprobs-mode=raw_logprobs"
    with real_server(smollm2_folder, tmp_path, raw, rank=8) as url:
        remote = remote_of(policy, VllmServer(url), tmp_path)
        try:
            with pytest.raises(BadInput, match="--logprobs-mode processed_logprobs"):
                probe(policy, remote, policy.encode(TEXT), limit=LIMIT)
        finally:
            remote.close()


def test_a_server_that_sleeps_between_steps_is_right_when_it_wakes(adapters, policy, tmp_path):
    """On a CPU it gives no memory back (and refuses --enable-sleep-mode), but stops working."""
    policy.remote = remote_of(policy, VllmServer(adapters), tmp_path, sleeps=True)
    try:
        assert probe(policy, policy.remote, policy.encode(TEXT), limit=LIMIT) < 1e-4
        for version in range(3):
            policy.publish(version)
            gap = drawn_gap(policy, version)
            print(f"version {version}: gap {gap:.2g} nats")
            assert gap < 1e-4
            policy.rest()
            move(policy, version, 0.01)
    finally:
        policy.remote.close()
