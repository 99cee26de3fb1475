"""Two real processes that hold half of the layers each train as two that hold everything."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from ranks import on_ranks
from test_ppo import OBJECTIVE, SCENARIOS, check_equal, gradient, low_bytes, played, ppo_policy
from torch.distributed.tensor import DTensor

from memograd.config import TrainConfig
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.distributed import ALONE, World
from memograd.grpo.experience import Experience
from memograd.grpo.follower_folder import FollowerFolder
from memograd.grpo.learner import Update
from memograd.grpo.trainer import Trainer
from memograd.policy.language_model import LanguageModel
from memograd.recipes.policy import load_policy
from memograd.recipes.ranks import share_weights
from memograd.rewards import WeightedReward


def held_numbers(policy: LanguageModel) -> tuple[int, ...]:
    """How many numbers of each layer this rank holds, adapters aside."""
    return tuple(
        sum(
            (weight.to_local() if isinstance(weight, DTensor) else weight).numel()
            for name, weight in layer.named_parameters()
            if "lora_" not in name
        )
        for layer in policy.model.get_decoder().layers
    )


def learned(
    world: World, model: str, batches: list[Experience], again: bool
) -> list[tuple[np.ndarray, Update, tuple[int, ...]]]:
    """Gradients on a sharded model, one tree a micro-batch."""
    policy = ppo_policy(model)
    if again:
        policy.checkpoint_activations()
    world.catch_up = policy.shard()
    policy.microbatches = lambda trees: [[tree] for tree in range(len(trees))]  # type: ignore[method-assign]
    found = []
    for batch in batches:
        state = torch.get_rng_state()
        gradients, update = gradient(policy, batch, OBJECTIVE, world)
        assert torch.equal(torch.get_rng_state(), state)
        found.append((gradients.numpy(), update, held_numbers(policy)))
    return found


@pytest.mark.parametrize("again", [False, True])
def test_the_gradient_is_that_of_the_whole_model(tiny_model_folder: Path, again: bool) -> None:
    """Two micro-batches on one rank and one on the other; then all on one of them."""
    model = str(tiny_model_folder)
    policy = ppo_policy(model)
    batch = played(policy, cut=True)
    batches = [batch, batch.single(0, "gae")]
    whole = [gradient(policy, one) for one in batches]
    numbers = held_numbers(policy)
    for rank in on_ranks(2, learned, model, batches, again):
        for (found, update, held), expected in zip(rank, whole, strict=True):
            check_equal((torch.from_numpy(found), update), expected)
            assert held == (numbers[0] // 2, numbers[1])


def run(world: World, folder: Path, config: TrainConfig) -> list[np.ndarray]:
    """Train in `folder`, or go on with the run in it; returns the trained weights."""
    there = world.led((folder / "config.json").exists)
    made = world.led(
        lambda: RunFolder(folder) if there else RunFolder.create(folder, config.model_dump_json())
    )
    checkpoint = world.led(made.latest_checkpoint)
    policy = load_policy(config, checkpoint)
    share_weights(policy, config, world)
    # Rank 0 alone has something to ask the model, as in evaluation.
    world.led(
        lambda: policy.sample(
            [[5, 6, 7], [8]],
            num_generations=2,
            temperature=0.0,
            max_completion_length=5,
            generator=None,
        )
    )
    trainer = Trainer(
        policy,
        SCENARIOS,
        [WeightedReward("low", low_bytes)],
        config,
        made if world.leads else FollowerFolder(folder),
        world=world,
    )
    if checkpoint is not None:
        trainer.restore(checkpoint)
        if world.leads:
            made.truncate_metrics(trainer.step)
    trainer.train()
    return [parameter.detach().numpy() for parameter in policy.parameters()]


def rows(folder: Path) -> list[dict]:
    found = RunFolder.open(folder).read_metrics()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in found]


@pytest.mark.parametrize("algorithm", [pytest.param("grpo", marks=pytest.mark.slow), "ppo"])
def test_a_sharded_run_is_the_run_of_whole_models_and_goes_on(
    tmp_path: Path, tiny_config: TrainConfig, algorithm: str
) -> None:
    """Three groups for two processes: unequal work in sampling and in the loss."""
    given = tiny_config.model_dump(exclude_defaults=True)
    given |= {"algorithm": algorithm, "steps": 4, "prompts_per_step": 3, "save_steps": 2}
    whole = TrainConfig.model_validate(given)
    sharded = TrainConfig.model_validate(given | {"shard": "fsdp2"})
    weights = on_ranks(2, run, tmp_path / "whole", whole)
    half = on_ranks(2, run, tmp_path / "cut", sharded.model_copy(update={"steps": 3}))
    assert all(isinstance(rank, list) for rank in half), half
    shutil.rmtree(tmp_path / "cut" / "final")  # as if it had stopped in the last step
    found = on_ranks(2, run, tmp_path / "cut", sharded)
    for rank in found:
        for ours, theirs in zip(rank, weights[0], strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-6)
    for ours, theirs in zip(rows(tmp_path / "cut"), rows(tmp_path / "whole"), strict=True):
        assert ours["reward_mean"] == theirs["reward_mean"]
        assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-5)
    names = {path.name for path in (tmp_path / "cut" / "final").iterdir()}
    assert names == {path.name for path in (tmp_path / "whole" / "final").iterdir()}


def test_what_cannot_be_sharded_is_refused(tiny_config: TrainConfig) -> None:
    sharded = tiny_config.model_copy(update={"shard": "fsdp2"})
    policy = load_policy(tiny_config, None)
    with pytest.raises(BadInput, match="this is one by itself"):
        share_weights(policy, sharded, ALONE)
    with pytest.raises(ValueError, match="shard=fsdp2 computes over token trees"):
        TrainConfig.model_validate({"shard": "fsdp2", "forward": "rows"})
    policy.forward = "rows"
    with pytest.raises(BadInput, match="computed row by row here, which shard=fsdp2 cannot do"):
        policy.shard()
