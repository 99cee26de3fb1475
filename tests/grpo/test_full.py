"""Training all weights: alone, in half precision, and cut among processes by FSDP2."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from ranks import on_ranks
from small_runs import begun
from test_distributed import SCENARIOS, experience_of, low_bytes, objective_of, rows
from torch.distributed.tensor import DTensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from memograd.config import LoraConfig, TrainConfig
from memograd.errors import BadInput, MemogradError
from memograd.grpo import RunFolder
from memograd.grpo.distributed import ALONE, World
from memograd.grpo.experience import Experience
from memograd.grpo.learner import Update, learn
from memograd.grpo.optimizer import PartedAdamW
from memograd.grpo.trainer import Stage, Trainer
from memograd.grpo.trainer_state import STATE_FILE
from memograd.policy import loading
from memograd.policy.full_model import FullModel
from memograd.policy.language_model import LanguageModel
from memograd.rewards import WeightedReward
from memograd.rollout import TokenTree
from memograd.tasks.base.policy import adapter_of, load_policy, share_weights

TREES = [
    TokenTree.from_branches([5, 6, 7], [[9, 10, 11], [9, 12]]),
    TokenTree.from_branches([8, 3], [[4], [9, 12, 33, 2]]),
]
OBJECTIVE = objective_of("grpo", beta=0.1)


def full(config: TrainConfig, **changes: object) -> TrainConfig:
    given = config.model_dump(exclude_defaults=True, exclude={"lora"})
    given |= {"tuning": "full", "learning_rate": 1e-3, "steps": 4, "save_steps": 1, **changes}
    return TrainConfig.model_validate(given)


def scores(policy: LanguageModel) -> np.ndarray:
    with torch.no_grad():
        return policy.logprobs(TREES, temperature=1.0).logprobs_RT.float().numpy()


def run(world: World, folder: Path, config: TrainConfig) -> dict[str, np.ndarray]:
    """Train in `folder`, or go on with the run in it; returns the weights by name."""
    start = begun(folder, config, world)
    start.trainer(SCENARIOS, [WeightedReward("low", low_bytes)]).train()
    return weights_of(start.policy)


def weights_of(policy: LanguageModel) -> dict[str, np.ndarray]:
    """Put together from all ranks."""
    return {name: together(weight) for name, weight in policy.model.named_parameters()}


def together(cut: torch.Tensor) -> np.ndarray:
    full_tensor = cut.full_tensor() if isinstance(cut, DTensor) else cut
    return full_tensor.detach().float().numpy().copy()


def check_weights(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], atol: float):
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=atol, err_msg=name)


# One process


@pytest.mark.slow
def test_the_policy_learns_and_its_reference_stays(tmp_path, tiny_config) -> None:
    config = full(tiny_config, steps=12, learning_rate=3e-3, prompts_per_step=4, beta=0.01)
    policy = load_policy(config, None)
    assert isinstance(policy, FullModel)
    begun = scores(policy)
    made = RunFolder.create(tmp_path / "run", config.model_dump_json())
    with policy.at_start():
        np.testing.assert_array_equal(scores(policy), begun)
    Trainer(policy, SCENARIOS, [WeightedReward("low", low_bytes)], config, Stage(made)).train()
    rewards = [row["reward_mean"] for row in made.read_metrics()]
    assert np.mean(rewards[-3:]) > np.mean(rewards[:3]) + 0.05
    assert made.read_metrics()[-1]["kl"] > 0
    assert np.abs(scores(policy) - begun).max() > 0.05
    kept = policy.reference_logprobs(TREES, temperature=1.0).logprobs_RT.numpy()
    np.testing.assert_allclose(kept, begun, atol=1e-5)
    for context in (policy.at_start, policy.untrained):
        with context():
            np.testing.assert_allclose(scores(policy), begun, atol=1e-5)


def test_the_loss_of_what_is_taught_falls(tiny_model_folder) -> None:
    policy = FullModel.open(str(tiny_model_folder), reference=False, device="cpu")
    optimizer = PartedAdamW(policy.parameters(), learning_rate=1e-2, weight_decay=0.0)
    losses = []
    for _ in range(10):
        loss = -policy.logprobs(TREES, temperature=1.0).logprobs_RT.mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.2 * losses[0]
    assert losses == sorted(losses, reverse=True)


def test_without_a_kl_term_there_is_no_copy(tmp_path, tiny_config) -> None:
    config = full(tiny_config, beta=0.0, steps=2)
    policy = load_policy(config, None)
    assert not policy.has_reference
    with pytest.raises(MemogradError, match="without a copy of what it began with"):
        policy.reference_logprobs(TREES, temperature=1.0)
    begun = scores(policy)
    made = RunFolder.create(tmp_path / "run", config.model_dump_json())
    Trainer(policy, SCENARIOS, [WeightedReward("low", low_bytes)], config, Stage(made)).train()
    assert {row["kl"] for row in made.read_metrics()} == {None}
    with policy.at_start():  # asked for all the same, it is loaded
        np.testing.assert_allclose(scores(policy), begun, atol=1e-5)
    assert np.abs(scores(policy) - begun).max() > 1e-3


@pytest.mark.parametrize("algorithm", ["grpo", "ppo"])
def test_a_resumed_run_equals_the_one_that_never_stopped(
    tmp_path, tiny_config, algorithm: str
) -> None:
    config = full(tiny_config, algorithm=algorithm)
    whole = run(ALONE, tmp_path / "whole", config)
    run(ALONE, tmp_path / "cut", config.model_copy(update={"steps": 2}))
    shutil.rmtree(tmp_path / "cut" / "final")
    check_weights(run(ALONE, tmp_path / "cut", config), whole, atol=0.0)
    assert rows(tmp_path / "cut") == rows(tmp_path / "whole")
    name = "final/model.safetensors"
    assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_what_is_written_is_a_plain_model(tmp_path, tiny_config, tiny_model_folder) -> None:
    config = full(tiny_config, steps=2)
    policy = load_policy(config, None)
    made = RunFolder.create(tmp_path / "run", config.model_dump_json())
    final = Trainer(
        policy, SCENARIOS, [WeightedReward("low", low_bytes)], config, Stage(made)
    ).train()
    plain = AutoModelForCausalLM.from_pretrained(final)
    assert type(plain).__name__ == "LlamaForCausalLM"
    ids = torch.tensor([[5, 6, 7, 9, 10]])
    with torch.no_grad():
        expected = policy.model(input_ids=ids).logits
        assert (plain(input_ids=ids).logits - expected).abs().max() < 1e-5
    assert AutoTokenizer.from_pretrained(final).chat_template == policy.tokenizer.chat_template
    # As any model: under a fresh adapter, and as the beginning of another full run.
    adapted = LanguageModel.load(str(final), lora=LoraConfig(r=4), device="cpu")
    np.testing.assert_allclose(scores(adapted), scores(policy), atol=1e-5)
    again = load_policy(full(tiny_config, model=str(final)), None)
    np.testing.assert_allclose(scores(again), scores(policy), atol=1e-6)
    for place in (final, made.path):
        with pytest.raises(BadInput, match=f"has no adapter: give the whole model .*{final}"):
            adapter_of(place)


# Half precision


@pytest.fixture
def half(monkeypatch) -> None:
    """A CPU that computes in bf16, as CUDA does."""
    monkeypatch.setattr(loading, "choose_dtype", lambda device: torch.bfloat16)


def test_steps_that_bf16_would_round_away_add_up_in_the_masters(half, tiny_model_folder) -> None:
    policy = FullModel.open(str(tiny_model_folder), reference=False, device="cpu")
    weight = policy.model.model.norm.weight  # ones: 0.002 is below half of what bf16 can tell
    optimizer = PartedAdamW(policy.parameters(), learning_rate=1e-4, weight_decay=0.0, rounded=True)
    seen = []
    for _ in range(60):
        policy.logprobs(TREES, temperature=1.0).logprobs_RT.sum().backward()
        assert weight.grad is not None
        assert weight.grad.dtype == torch.float32
        optimizer.step()
        optimizer.zero_grad()
        seen.append(weight.detach().clone())
    assert torch.equal(seen[0], torch.ones_like(weight))
    assert not torch.equal(seen[-1], torch.ones_like(weight))
    places = [id(one) for one in policy.parameters()]
    master = optimizer.whole_state()["state"][places.index(id(weight))]["master"]
    assert torch.equal(master.bfloat16(), weight)
    assert not torch.equal(master.bfloat16().float(), master)


def test_in_half_precision_a_run_goes_on_to_the_bit(half, tmp_path, tiny_config) -> None:
    config = full(tiny_config, beta=0.0)
    whole = run(ALONE, tmp_path / "whole", config)
    run(ALONE, tmp_path / "cut", config.model_copy(update={"steps": 2}))
    shutil.rmtree(tmp_path / "cut" / "final")
    check_weights(run(ALONE, tmp_path / "cut", config), whole, atol=0.0)
    states = [
        torch.load(tmp_path / name / "final" / STATE_FILE, weights_only=True)["optimizer"]["state"]
        for name in ("whole", "cut")
    ]
    for place, state in states[0].items():
        for name, values in state.items():
            assert torch.equal(values, states[1][place][name]), (place, name)
    assert plain_dtype(tmp_path / "whole" / "final") == torch.bfloat16


def plain_dtype(folder: Path) -> torch.dtype:
    return AutoModelForCausalLM.from_pretrained(folder, dtype="auto").dtype


# Several processes


def gradient(world: World, config: TrainConfig, batches: list[Experience]) -> list:
    """The gradients that the optimiser gets of each batch, what was measured, and what is held."""
    policy = load_policy(config, None)
    share_weights(policy, config, world)
    policy.microbatches = lambda trees: [[tree] for tree in range(len(trees))]  # type: ignore[method-assign]
    found = []

    class Spy:
        def step(self) -> None:
            found.append(
                {name: together(weight.grad) for name, weight in policy.model.named_parameters()}
            )

        def zero_grad(self, set_to_none: bool = True) -> None:
            for weight in policy.parameters():
                weight.grad = None

    updates = []
    for batch in batches:
        state = torch.get_rng_state()
        updates.append(learn(policy, Spy(), batch, OBJECTIVE, world))
        assert torch.equal(torch.get_rng_state(), state)
    held = sum(
        (one.to_local() if isinstance(one, DTensor) else one).numel() for one in policy.parameters()
    )
    return [found, updates, held]


def check_gradients(found: list, expected: list, atol: float) -> None:
    for gradients, whole in zip(found[0], expected[0], strict=True):
        assert max(np.abs(values).max() for values in whole.values()) > 1e-3
        check_weights(gradients, whole, atol=atol)
    for update, whole in zip(found[1], expected[1], strict=True):
        assert isinstance(update, Update)
        for name in ("loss", "kl", "grad_norm", "entropy"):
            expected_number = pytest.approx(getattr(whole, name), rel=max(1e-4, atol), abs=atol)
            assert getattr(update, name) == expected_number, name


@pytest.mark.parametrize(
    ("size", "changes"),
    [
        (2, {"forward": "packed"}),
        (2, {"forward": "tree", "activation_checkpointing": True}),
        (2, {"shard": "off"}),
        pytest.param(4, {}, marks=pytest.mark.slow),
    ],
)
def test_the_gradient_of_several_ranks_is_that_of_one(tiny_config, size, changes) -> None:
    """Three groups, of which a rank may have two, one or none, and a batch of one group."""
    config = full(tiny_config, beta=0.1)
    policy = load_policy(config, None)
    batches = [experience_of(policy, count, OBJECTIVE) for count in (3, 1)]
    shared = full(tiny_config, **{"shard": "fsdp2", "beta": 0.1, **changes})
    expected = gradient(
        ALONE, full(tiny_config, **{"beta": 0.1, **changes, "shard": "off"}), batches
    )
    answers = on_ranks(size, gradient, shared, batches)
    for rank in answers:
        assert isinstance(rank, list), rank
        check_gradients(rank, expected, atol=2e-5)
        assert (rank[2] < expected[2]) == (shared.shard == "fsdp2")


def half_run(world: World, folder: Path, config: TrainConfig) -> dict[str, np.ndarray]:
    loading.choose_dtype = lambda device: torch.bfloat16
    return run(world, folder, config)


@pytest.mark.slow
def test_a_cut_run_goes_on_to_the_bit_and_with_other_numbers_of_processes(
    tmp_path, tiny_config
) -> None:
    config = full(tiny_config, shard="fsdp2", prompts_per_step=3)
    whole = on_ranks(2, run, tmp_path / "whole", config)
    assert isinstance(whole[0], dict), whole
    check_weights(whole[1], whole[0], atol=0.0)
    for name, size, shard in (("same", 2, "fsdp2"), ("one", 1, "off"), ("three", 3, "fsdp2")):
        folder = tmp_path / name
        shutil.copytree(tmp_path / "whole", folder)
        for later in ("final", "checkpoint-3"):
            shutil.rmtree(folder / later)
        found = on_ranks(size, run, folder, config.model_copy(update={"shard": shard}))
        assert isinstance(found[0], dict), found
        assert rows(folder)[:2] == rows(tmp_path / "whole")[:2]
        assert [row["step"] for row in rows(folder)] == [1, 2, 3, 4]
        if size == 2:
            check_weights(found[0], whole[0], atol=0.0)
            assert rows(folder) == rows(tmp_path / "whole")
        # Whoever wrote it, it holds everything: what one process loads is what all ended with.
        policy = load_policy(config, folder / "final")
        check_weights(weights_of(policy), found[0], atol=0.0)


@pytest.mark.slow
def test_cut_in_half_precision_a_run_goes_on_to_the_bit(tmp_path, tiny_config) -> None:
    config = full(tiny_config, shard="fsdp2", beta=0.0)
    whole = on_ranks(2, half_run, tmp_path / "whole", config)
    assert isinstance(whole[0], dict), whole
    folder = tmp_path / "cut"
    shutil.copytree(tmp_path / "whole", folder)
    for later in ("final", "checkpoint-3"):
        shutil.rmtree(folder / later)
    check_weights(on_ranks(2, half_run, folder, config)[0], whole[0], atol=0.0)
    assert plain_dtype(folder / "final") == torch.bfloat16
    # One process goes on from the same fp32 masters.
    state = torch.load(folder / "final" / STATE_FILE, weights_only=True)["optimizer"]["state"]
    assert all(one["master"].dtype == torch.float32 for one in state.values())
    shutil.rmtree(folder / "final")
    alone = on_ranks(1, half_run, folder, config.model_copy(update={"shard": "off"}))
    check_weights(alone[0], whole[0], atol=2e-2)


# What does not go together


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"lora": {"r": 4}}, "tuning=full trains none: leave them out"),
        ({"adapter": "runs/sft"}, "merge the adapter into one .memograd merge RUN --out FOLDER."),
        (
            {
                "sampler": {"engine": "vllm", "url": ["http://a:1"], "max_staleness": 1},
                "shard": "fsdp2",
            },
            "tuning=full shard=fsdp2 no process has them: use max_staleness=0",
        ),
        ({"quantization": "nf4"}, "use it with tuning=lora and shard=off"),
    ],
)
def test_what_does_not_go_with_it_is_refused(given, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        TrainConfig.model_validate({"tuning": "full", **given})


def test_its_learning_rate_is_its_own_unless_given() -> None:
    assert TrainConfig.model_validate({"tuning": "full"}).learning_rate == 1e-5
    given = {"tuning": "full", "learning_rate": 3e-4}
    config = TrainConfig.model_validate(given)
    assert config.learning_rate == 3e-4
    assert TrainConfig.model_validate_json(config.model_dump_json()) == config


def test_four_bits_need_cuda_and_their_package(tiny_config, monkeypatch) -> None:
    config = tiny_config.model_copy(update={"quantization": "nf4"})
    with pytest.raises(BadInput, match="nf4 needs a CUDA device, and this computes on cpu"):
        load_policy(config, None)
    monkeypatch.setattr(loading.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match="pip install bitsandbytes"):
        loading.load_causal_lm(config.model, torch.device("cuda"), quantization="nf4")
    with pytest.raises(ValueError, match="use it with tuning=lora and shard=off"):
        TrainConfig.model_validate({"quantization": "nf4", "shard": "fsdp2"})
