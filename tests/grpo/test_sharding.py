"""Two real processes that hold half of the layers each train as two that hold everything."""

from __future__ import annotations

import gc
import shutil
import weakref
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from ranks import on_ranks
from small_runs import begun
from test_drawing import EchoTask, drawing
from test_ppo import OBJECTIVE, SCENARIOS, check_equal, gradient, low_bytes, played, ppo_policy
from torch.distributed.tensor import DTensor

from memograd.config import LoraConfig, TrainConfig
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.batch import Draw
from memograd.grpo.distributed import ALONE, World
from memograd.grpo.experience import Experience
from memograd.grpo.learner import Update
from memograd.policy import sharding
from memograd.policy.language_model import LanguageModel
from memograd.rewards import WeightedReward
from memograd.rollout import Message, Rollout, Scenario
from memograd.tasks.base.policy import load_policy, share_weights


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
    world: World, model: str, batches: list[Experience], again: bool, forward: str
) -> list[tuple[np.ndarray, Update, tuple[int, ...]]]:
    """Gradients on a sharded model, one tree a micro-batch."""
    policy = ppo_policy(model)
    policy.forward = forward
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


@pytest.mark.parametrize(("again", "forward"), [(False, "auto"), (True, "auto"), (False, "tree")])
def test_the_gradient_is_that_of_the_whole_model(
    tiny_model_folder: Path, again: bool, forward: str
) -> None:
    """Two micro-batches on one rank and one on the other; then all on one of them."""
    model = str(tiny_model_folder)
    policy = ppo_policy(model)
    batch = played(policy, cut=True)
    batches = [batch, batch.single(0, "gae")]
    whole = [gradient(policy, one) for one in batches]
    numbers = held_numbers(policy)
    for rank in on_ranks(2, learned, model, batches, again, forward):
        for (found, update, held), expected in zip(rank, whole, strict=True):
            check_equal((torch.from_numpy(found), update), expected)
            # In two passes nothing comes back to the last layer of a prompt.
            assert held == (numbers[0] // 2, numbers[1] if forward == "tree" else numbers[1] // 2)


def run(world: World, folder: Path, config: TrainConfig) -> list[np.ndarray]:
    """Train in `folder`, or go on with the run in it; returns the trained weights."""
    start = begun(folder, config, world)
    # Rank 0 alone has something to ask the model, as in evaluation.
    world.led(
        lambda: start.policy.sample(
            [[5, 6, 7], [8]],
            num_generations=2,
            temperature=0.0,
            max_completion_length=5,
            generator=None,
        )
    )
    start.trainer(SCENARIOS, [WeightedReward("low", low_bytes)]).train()
    return [parameter.detach().numpy() for parameter in start.policy.parameters()]


def rows(folder: Path) -> list[dict]:
    found = RunFolder.open(folder).read_metrics()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in found]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", [pytest.param("grpo", marks=pytest.mark.slow), "ppo"])
def test_a_sharded_run_is_the_run_of_whole_models_and_goes_on(
    tmp_path: Path, tiny_config: TrainConfig, algorithm: str
) -> None:
    """Three groups for two processes: unequal work in sampling and in the loss."""
    given = tiny_config.model_dump(exclude_defaults=True)
    given |= {"algorithm": algorithm, "steps": 3, "prompts_per_step": 3, "save_steps": 1}
    whole = TrainConfig.model_validate(given)
    sharded = TrainConfig.model_validate(given | {"shard": "fsdp2"})
    weights = on_ranks(2, run, tmp_path / "whole", whole)
    half = on_ranks(2, run, tmp_path / "cut", sharded.model_copy(update={"steps": 2}))
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


def cut_one_by_one(world: World, model: str) -> list[tuple[int, ...]]:
    """What is held of each layer as one after the other is cut, and when all are."""
    policy = LanguageModel.load(model, lora=LoraConfig(r=4), device="cpu", to_cut=True)
    layers = policy.model.get_decoder().layers
    cut = [
        weakref.ref(weight)
        for layer in layers
        for name, weight in layer.named_parameters()
        if "lora_" not in name
    ]
    found = []
    shard = sharding.fully_shard

    def watched(layer, **settings):
        found.append(held_numbers(policy))
        shard(layer, **settings)
        gc.collect()

    sharding.fully_shard = watched
    try:
        policy.shard()
    finally:
        sharding.fully_shard = shard
    assert all(weight() is None for weight in cut)  # whole ones are not kept beside the shares
    return [*found, held_numbers(policy)]


def test_layers_are_cut_one_by_one_and_only_shares_stay(deeper_model_folder: Path) -> None:
    for found in on_ranks(2, cut_one_by_one, str(deeper_model_folder)):
        whole = found[0][0]
        half = whole // 2
        assert found == [
            (whole, whole, whole, whole),
            (half, whole, whole, whole),
            (half, half, whole, whole),
            (half, half, half, whole),
            (half, half, half, half),
        ]


def play(world: World, config: TrainConfig, scenarios: list[Scenario]) -> list[list[Rollout]]:
    """Episodes of two and three turns on this rank's model: more of them on rank 0."""
    LanguageModel.end_ids = property(lambda self: frozenset(range(60, 258)))  # type: ignore[assignment]
    policy = load_policy(config, None)
    share_weights(policy, config, world)
    mine = scenarios if world.leads else scenarios[:1]
    played = drawing(policy, config, EchoTask())
    groups = world.together(
        lambda: played(mine, Draw(1, generator=torch.Generator().manual_seed(world.rank))).groups
    )
    return [[rollout for group in of_rank for rollout in group.rollouts] for of_rank in groups]


@pytest.mark.slow
def test_turns_that_are_kept_go_with_shared_weights(tiny_config: TrainConfig) -> None:
    """Ranks with different numbers of episodes, turns and passes play what whole models do."""
    scenarios = [
        Scenario(id="q" * number, messages=(Message(role="user", content="say"),))
        for number in (1, 2, 3)
    ]
    whole, cut = (
        on_ranks(2, play, tiny_config.model_copy(update={"shard": shard}), scenarios)
        for shard in ("off", "fsdp2")
    )
    assert [len(rollouts) for rollouts in whole[0]] == [12, 4]
    kept = 0
    for rank, expected in zip(cut, whole, strict=True):
        for ours, theirs in zip(chain(*rank), chain(*expected), strict=True):
            assert ours.messages == theirs.messages
            for turn, other in zip(ours.turns, theirs.turns, strict=True):
                assert turn.action_ids == other.action_ids
                assert turn.reused_tokens == other.reused_tokens
                np.testing.assert_allclose(turn.logprobs, other.logprobs, atol=1e-4)
            kept += sum(turn.reused_tokens > 0 for turn in ours.turns[1:])
    assert kept > 0


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
