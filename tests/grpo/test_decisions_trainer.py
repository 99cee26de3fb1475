"""Trainers of decision policies: every algorithm solves a game, resumes to the bit, is exact."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from decision_games import DIMENSION, Game, observation
from tests.quick import quick
from torch.nn import functional

from memograd.errors import BadInput, MemogradError
from memograd.memory.manager.trained.network import Batch, Shape
from memograd.tasks.memory_ops.learning.algorithms import (
    DQNMemoryTrainer,
    PPOMemoryTrainer,
    ReinforceMemoryTrainer,
    SupervisedMemoryTrainer,
    TrajectoryMemoryTrainer,
)
from memograd.tasks.memory_ops.learning.head import OperationHead
from memograd.tasks.memory_ops.learning.trainer import (
    Decisions,
    GRPOMemoryTrainer,
    clipped_loss,
    collect,
)
from memograd.tasks.memory_ops.settings import OperationsConfig

TRAINERS = [
    GRPOMemoryTrainer,
    ReinforceMemoryTrainer,
    PPOMemoryTrainer,
    DQNMemoryTrainer,
    SupervisedMemoryTrainer,
    TrajectoryMemoryTrainer,
]
CONFIG = OperationsConfig(
    steps=40,
    num_generations=8,
    minibatch=64,
    learning_rate=5e-3,
    entropy_coef=0.0,
    epsilon_decay=0.8,
)


def trainer_of(kind: type[GRPOMemoryTrainer], config: OperationsConfig = CONFIG):
    return kind(OperationHead(Shape(DIMENSION, width=16, layers=1, heads=2), seed=1), config)


def play(trainer: GRPOMemoryTrainer, step: int, games: int = 16) -> Decisions:
    by_outcome = isinstance(trainer, TrajectoryMemoryTrainer)
    if by_outcome:  # eight walks through each of a few games
        seeds = [100 * step + number // 8 for number in range(64)]
    else:
        seeds = [100 * step + number for number in range(games)]
    return collect(trainer, [Game(seed) for seed in seeds], by_outcome=by_outcome)


def success(trainer: GRPOMemoryTrainer) -> float:
    right = total = 0
    for seed in range(20):
        game = Game(10_000 + seed)
        while not game.over:
            right += trainer.best_action(game.observe()) == game.best
            total += 1
            game.take(game.best)
    return right / total


@pytest.mark.parametrize("kind", TRAINERS)
def test_every_algorithm_solves_the_game(kind: type[GRPOMemoryTrainer]) -> None:
    trainer = trainer_of(kind)
    assert success(trainer) < 0.7
    for step in range(40):
        measured = trainer.learn(play(trainer, step))
        if step % 5 == 4 and (solved := success(trainer) > 0.95):
            break
    assert solved
    assert np.isfinite(list(measured.values())).all()


@pytest.mark.parametrize("kind", quick(TRAINERS, (2, 3, 5)))
def test_resumes_to_the_bit(kind: type[GRPOMemoryTrainer], tmp_path) -> None:
    config = CONFIG.model_copy(update={"gamma": 0.5})
    whole, begun = trainer_of(kind, config), trainer_of(kind, config)
    for step in range(4):
        whole.learn(play(whole, step))
    for step in range(2):
        begun.learn(play(begun, step))
    torch.save(begun.state_dict(), tmp_path / "state.pt")
    resumed = trainer_of(kind, config)
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for step in range(2, 4):
        resumed.learn(play(resumed, step))
    pairs = zip(whole.network.parameters(), resumed.network.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    assert torch.equal(whole.generator.get_state(), resumed.generator.get_state())


def test_collect_writes_down_the_probabilities_it_drew_from() -> None:
    trainer = trainer_of(GRPOMemoryTrainer)
    trainer.learn(play(trainer, 0))
    decisions = play(trainer, 1, games=3)
    with torch.no_grad():
        logprobs = functional.log_softmax(trainer.network(decisions.states)[0], dim=1).numpy()
    expected = np.take_along_axis(logprobs, decisions.actions_NG, axis=1)
    assert np.allclose(decisions.logprobs_NG, expected, atol=1e-6)
    assert decisions.walk_N.tolist() == [0] * 6 + [1] * 6 + [2] * 6
    assert decisions.following_N.tolist() == [
        *range(1, 6),
        -1,
        *range(7, 12),
        -1,
        *range(13, 18),
        -1,
    ]
    assert decisions.rewards_NG.shape == (18, 8)


def test_update_policy_makes_the_better_action_more_probable() -> None:
    """The interface of the guide: rewards, states, actions."""
    trainer = trainer_of(GRPOMemoryTrainer)
    states = Batch.of([observation(1.0, 0)] * 32)
    actions, _ = trainer.choose_group(states)
    rewards = (actions == 2).astype(float)
    for _ in range(10):
        trainer.update_policy(rewards, states, actions)
    assert trainer.best_action(observation(1.0, 0)) == 2
    draws = [trainer.choose_action(observation(1.0, 0)) for _ in range(50)]
    assert draws.count(2) > 40


@pytest.mark.parametrize("size", [2, 4, 12])
def test_update_policy_takes_groups_of_any_size(size: int) -> None:
    """Whatever `num_generations` and `explore` say: all G are compared, none counts as explored."""
    trainer = trainer_of(GRPOMemoryTrainer, CONFIG.model_copy(update={"explore": 0.5}))
    found: list[np.ndarray] = []
    whole = trainer.targets

    def noted(decisions: Decisions) -> np.ndarray:
        found.append(whole(decisions))
        return found[-1]

    trainer.targets = noted  # type: ignore[method-assign]
    states = Batch.of([observation(1.0, 0)] * 3)
    rewards = np.random.default_rng(0).normal(size=(3, size))
    actions = np.tile(np.arange(size) % 4, (3, 1))
    trainer.update_policy(rewards, states, actions)
    assert np.allclose(found[0], rewards - rewards.mean(axis=1, keepdims=True))


def test_what_was_explored_teaches_only_where_it_is_better() -> None:
    trainer = trainer_of(GRPOMemoryTrainer)
    assert trainer.explored == 2
    decisions = play(trainer, 0, games=1)
    assert decisions.explored == 2
    decisions.rewards_NG[:] = [[0, 1, 0, 1, 0, 1, 5, -5]]
    expected = [-0.5, 0.5, -0.5, 0.5, -0.5, 0.5, 4.5, 0.0]
    assert np.allclose(trainer.targets(decisions), [expected] * len(decisions))
    of_others = Decisions(**{**vars(decisions), "explored": 0})
    assert np.allclose(trainer.targets(of_others)[:, -1], -5.375)


@pytest.mark.parametrize(
    ("kind", "shape", "sentence"),
    [
        (GRPOMemoryTrainer, (2, 1), "compares at least two actions"),
        (PPOMemoryTrainer, (2, 3), "ppo learns from one action a state, not 3"),
        (DQNMemoryTrainer, (2, 3), "dqn learns from one action a state, not 3"),
        (GRPOMemoryTrainer, (3, 4), "must both have the shape"),
        (TrajectoryMemoryTrainer, (2, 1), "0 rewards of walks"),
    ],
)
def test_groups_that_an_algorithm_cannot_use_are_refused(
    kind: type[GRPOMemoryTrainer], shape: tuple[int, int], sentence: str
) -> None:
    trainer = trainer_of(kind)
    states = Batch.of([observation(1.0, 0)] * 2)
    with pytest.raises(BadInput, match=sentence):
        trainer.update_policy(np.ones(shape), states, np.ones(shape, int))


def test_the_gradient_is_that_of_the_formula() -> None:
    """On policy the surrogate's gradient is the mean of advantage x gradient of log-probability."""
    trainer = trainer_of(GRPOMemoryTrainer)
    decisions = play(trainer, 0, games=4)
    rows = np.arange(len(decisions))
    advantages = trainer.targets(decisions)
    logits, _ = trainer.network(decisions.states)
    loss, _ = clipped_loss(logits, decisions, advantages, rows, CONFIG)
    loss.backward()
    found = trainer.network.whole.weight.grad.clone()
    trainer.network.zero_grad()
    logprobs = functional.log_softmax(trainer.network(decisions.states)[0], dim=1)
    chosen = logprobs.gather(1, torch.from_numpy(decisions.actions_NG))
    (-(torch.from_numpy(advantages).float() * chosen).mean()).backward()
    assert torch.allclose(found, trainer.network.whole.weight.grad, atol=1e-6)


def test_dqn_explores_less_and_less_and_only_what_is_allowed() -> None:
    config = CONFIG.model_copy(update={"epsilon": 1.0, "epsilon_decay": 0.5, "epsilon_min": 0.1})
    trainer = trainer_of(DQNMemoryTrainer, config)
    seen = []
    for step in range(5):
        seen.append(trainer.epsilon)
        decisions = play(trainer, step)
        taken = decisions.actions_NG[:, 0]
        assert decisions.states.allowed_BA[np.arange(len(taken)), taken].all()
        trainer.learn(decisions)
    assert seen == [1.0, 0.5, 0.25, 0.125, 0.1]


def test_walks_weigh_the_same_whatever_their_length() -> None:
    config = CONFIG.model_copy(update={"num_generations": 2})
    trainer = trainer_of(TrajectoryMemoryTrainer, config)
    walks = [Game(1, length=2), Game(1, length=8)]
    decisions = collect(trainer, walks, by_outcome=True)
    decisions = Decisions(
        **{**vars(decisions), "outcomes_W": np.array([1.0, 0.0])}  # the short one was better
    )
    targets = trainer.targets(decisions)[:, 0]
    assert targets[:2].sum() == pytest.approx(-targets[2:].sum())


def test_nothing_to_copy_is_bad_input() -> None:
    trainer = trainer_of(SupervisedMemoryTrainer)
    decisions = play(trainer, 0)
    without = Decisions(**{**vars(decisions), "gold_N": np.full(len(decisions), -1)})
    with pytest.raises(BadInput, match="gold operations"):
        trainer.learn(without)


def test_a_reward_that_is_not_finite_stops_training() -> None:
    trainer = trainer_of(GRPOMemoryTrainer)
    decisions = play(trainer, 0)
    decisions.rewards_NG[0, 0] = np.nan
    with pytest.raises(MemogradError, match="not finite"):
        trainer.learn(decisions)


def test_any_network_with_logits_and_values_can_be_trained() -> None:
    class Flat(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(DIMENSION, 26)

        def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
            logits = self.linear(torch.from_numpy(batch.fact_BD))
            allowed = torch.from_numpy(batch.allowed_BA)
            return logits.masked_fill(~allowed, -torch.inf), logits[:, 0]

    trainer = GRPOMemoryTrainer(Flat(), CONFIG.model_copy(update={"learning_rate": 0.05}))
    for step in range(30):
        trainer.learn(play(trainer, step))
    assert success(trainer) > 0.95
