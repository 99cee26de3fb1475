"""What each algorithm promises: baseline, values, replay and target network, gold operations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from decision_games import DIMENSION, Game
from torch.nn import functional

from memograd.memory.manager.trained.network import Shape
from memograd.tasks.memory_ops.learning.algorithms import (
    DQNMemoryTrainer,
    PPOMemoryTrainer,
    ReinforceMemoryTrainer,
    SupervisedMemoryTrainer,
    _joined,
    _last,
    _take,
)
from memograd.tasks.memory_ops.learning.head import OperationHead
from memograd.tasks.memory_ops.learning.trainer import Decisions, GRPOMemoryTrainer, collect
from memograd.tasks.memory_ops.settings import OperationsConfig

CONFIG = OperationsConfig(steps=10, num_generations=4, learning_rate=5e-3, gamma=0.5)


def trained(kind: type[GRPOMemoryTrainer], steps: int = 3) -> GRPOMemoryTrainer:
    """A trainer that is not at its beginning, so that values and logits are not all zero."""
    trainer = kind(OperationHead(Shape(DIMENSION, width=16, layers=1, heads=2), seed=2), CONFIG)
    for step in range(steps):
        trainer.learn(play(trainer, step))
    return trainer


def play(trainer: GRPOMemoryTrainer, step: int, games: int = 4, length: int = 6) -> Decisions:
    return collect(trainer, [Game(10 * step + number, length) for number in range(games)])


def gradients(trainer: GRPOMemoryTrainer, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    trainer.network.zero_grad()
    loss.backward()
    return {
        name: parameter.grad.clone()
        for name, parameter in trainer.network.named_parameters()
        if parameter.grad is not None
    }


def test_a_constant_added_to_all_returns_changes_nothing() -> None:
    trainer = trained(ReinforceMemoryTrainer)
    decisions = play(trainer, 9, games=40, length=1)  # returns are rewards
    moved = Decisions(**{**vars(decisions), "rewards_NG": decisions.rewards_NG + 7.0})
    assert trainer.targets(decisions).std() > 0.5
    assert np.allclose(trainer.targets(decisions), trainer.targets(moved))


def test_values_and_policy_are_learnt_by_their_own_losses() -> None:
    """The value's weights get the squared error's gradient alone, and advantages are numbers."""
    trainer = trained(PPOMemoryTrainer)
    decisions = play(trainer, 9)
    targets, rows = trainer.targets(decisions), np.arange(len(decisions))
    found = gradients(trainer, trainer.loss(decisions, targets, rows)[0])
    values = trainer.network(decisions.states)[1]
    wanted = torch.from_numpy(targets[:, 1]).float()
    alone = gradients(trainer, 0.5 * functional.mse_loss(values, wanted))
    for name in ("value.weight", "value.bias"):
        assert alone[name].abs().max() > 0
        assert torch.allclose(found[name], alone[name], atol=1e-6)


def test_decisions_without_gold_have_no_gradient() -> None:
    trainer = trained(SupervisedMemoryTrainer)
    decisions = play(trainer, 9)
    rows = np.arange(len(decisions))
    half = np.where(rows % 2, decisions.gold_N, -1)
    partly = Decisions(**{**vars(decisions), "gold_N": half})
    found = gradients(trainer, trainer.loss(partly, trainer.targets(partly), rows)[0])
    told = rows[rows % 2 == 1]
    alone = gradients(trainer, trainer.loss(decisions, trainer.targets(decisions), told)[0])
    assert found["whole.weight"].abs().max() > 0
    assert all(torch.allclose(found[name], alone[name], atol=1e-6) for name in alone)
    silent = trainer.loss(partly, trainer.targets(partly), rows[rows % 2 == 0])[0]
    assert all(not grad.any() for grad in gradients(trainer, silent).values())


def test_replayed_decisions_keep_their_followers() -> None:
    """Joined, cut at the front and drawn from: each follower is the next decision of that walk."""
    trainer = trained(DQNMemoryTrainer, 0)
    replay = play(trainer, 0)
    for step in range(1, 4):
        replay = _last(_joined(replay, play(trainer, step)), 50)
    assert len(replay) == 50
    drawn = _take(replay, np.array([49, 0, 7, 7, 20, 5]))
    checked = 0
    for place in range(len(drawn)):
        after = drawn.following_N[place]
        time = drawn.states.fact_BD[place, 1] * 4
        assert (after < 0) == (time == 5)  # the last of six decisions
        if after >= 0:
            assert replay.states.fact_BD[after, 1] * 4 == time + 1
            checked += 1
    assert checked > 2


def test_q_learning_looks_one_step_ahead_with_the_target_network() -> None:
    trainer = trained(DQNMemoryTrainer)
    assert isinstance(trainer, DQNMemoryTrainer) and trainer._replay is not None
    replay, rows = trainer._replay, np.arange(len(trainer._replay))
    with torch.no_grad():
        values = trainer.network(replay.states)[0].numpy()
        ahead = trainer._target(replay.states)[0].numpy().max(axis=1)
    wanted = [
        replay.rewards_NG[row, 0] + (CONFIG.gamma * ahead[after] if after >= 0 else 0.0)
        for row, after in enumerate(replay.following_N)
    ]
    error = np.abs(values[rows, replay.actions_NG[:, 0]] - np.array(wanted))
    huber = np.where(error < 1, error**2 / 2, error - 0.5).mean()
    loss, _ = trainer.loss(replay, trainer.targets(replay), rows)
    assert float(loss.detach()) == pytest.approx(huber, rel=1e-4)


def test_the_target_network_follows_slowly_and_has_the_features_scales_at_once() -> None:
    trainer = trained(DQNMemoryTrainer, 0)
    assert isinstance(trainer, DQNMemoryTrainer)
    decisions = play(trainer, 0)
    network = trainer.network
    assert isinstance(network, OperationHead)
    network.pair_mean.fill_(3.0)
    before = trainer._target.whole.weight.clone()
    trainer.learn(decisions)
    moved = (trainer._target.whole.weight - before).abs().max()
    assert 0 < moved < (network.whole.weight - before).abs().max()
    assert torch.equal(trainer._target.pair_mean, network.pair_mean)


@pytest.mark.parametrize("kind", [ReinforceMemoryTrainer, PPOMemoryTrainer, DQNMemoryTrainer])
def test_several_trials_on_a_state_are_as_many_states_with_one(
    kind: type[GRPOMemoryTrainer],
) -> None:
    """So an algorithm may have GRPO's feedback, and what is left is the comparison on one state."""
    config = CONFIG.model_copy(update={"trials": 3, "gamma": 0.0})
    trainer = kind(OperationHead(Shape(DIMENSION, width=16, layers=1, heads=2), seed=2), config)
    for step in range(2):
        trainer.learn(play(trainer, step))
    decisions = play(trainer, 9)
    assert decisions.actions_NG.shape == (24, 3) and trainer.explored == 0
    rows = np.arange(len(decisions))
    together = gradients(trainer, trainer.loss(decisions, trainer.targets(decisions), rows)[0])
    each = np.repeat(rows, 3)
    alone = Decisions(
        **{
            **vars(_take(decisions, each)),
            "actions_NG": decisions.actions_NG.reshape(-1, 1),
            "logprobs_NG": decisions.logprobs_NG.reshape(-1, 1),
            "rewards_NG": decisions.rewards_NG.reshape(-1, 1),
        }
    )
    apart = gradients(
        trainer, trainer.loss(alone, trainer.targets(alone), np.arange(len(alone)))[0]
    )
    assert together["whole.weight"].abs().max() > 1e-4
    for name in apart:
        torch.testing.assert_close(together[name], apart[name], atol=1e-6, rtol=1e-4)


def test_trials_beyond_one_are_refused_where_later_rewards_count() -> None:
    with pytest.raises(ValueError, match=r"trials=2 tries operations .* set trials=1 or gamma=0"):
        OperationsConfig(trials=2, gamma=0.5)
