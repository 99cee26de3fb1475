"""Schedules and trackers with two real processes: one state on both, and nobody left waiting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ranks import on_ranks
from small_runs import begun
from test_distributed import SCENARIOS, check_equal_runs, config_of, low_bytes, rows
from test_distributed import run as run_noisy
from test_tracking import Recorder

from memograd.grpo.distributed import World
from memograd.grpo.trainer import Trainer
from memograd.rewards import WeightedReward

SCHEDULES = {
    "curriculum": "pass_rate",
    "group_sizes": "difficulty",
    "pass_reward": 0.4,
    "replay_groups": 2,
    "replay_capacity": 4,
}


def trainer_of(world: World, folder: Path, config, trackers=()) -> Trainer:
    rewards = [WeightedReward("low", low_bytes)]
    return begun(folder, config, world).trainer(SCENARIOS, rewards, trackers=trackers)


def scheduled(world: World, folder: Path, config) -> tuple[Any, list[str], list[np.ndarray]]:
    trainer = trainer_of(world, folder, config)
    trainer.train()
    state = trainer._state._small()
    replay = [f"{one.step}: {one.experience.rollouts[0].id}" for one in state["replay"]]
    return state["pass_rates"], replay, [p.detach().numpy() for p in trainer.policy.parameters()]


def test_ranks_have_the_same_rates_the_same_replay_and_the_same_weights(
    tmp_path: Path, tiny_model_folder: Path
) -> None:
    config = config_of(str(tiny_model_folder), steps=5, schedules=SCHEDULES)
    zero, one = on_ranks(2, scheduled, tmp_path / "run", config)
    assert zero[0] == one[0] and set(zero[0]) == {scenario.id for scenario in SCENARIOS}
    assert zero[1] == one[1] and len(zero[1]) >= 2
    for mine, theirs in zip(zero[2], one[2], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    told = rows(tmp_path / "run")
    assert {row["groups_replayed"] for row in told[1:]} == {2}
    assert any(row["group_size_min"] < row["group_size_max"] for row in told)


@pytest.mark.slow
def test_a_run_of_two_that_was_cut_goes_on_to_the_bit(
    tmp_path: Path, tiny_model_folder: Path
) -> None:
    config = config_of(str(tiny_model_folder), steps=5, schedules=SCHEDULES)
    on_ranks(2, run_noisy, tmp_path / "whole", config)
    errors = on_ranks(2, run_noisy, tmp_path / "cut", config, (1, 4))
    assert {error.kind for error in errors} == {"RewardError"}
    on_ranks(2, run_noisy, tmp_path / "cut", config)
    check_equal_runs(tmp_path / "cut", tmp_path / "whole")


class Failing(Recorder):
    """Fails when the run begins, or when it ends."""

    def __init__(self, on: str) -> None:
        super().__init__([], fails=on == "start")
        self.on = on

    def finish(self) -> None:
        if self.on == "finish":
            raise ConnectionError("the server is gone")


def tracked_run(world: World, folder: Path, config, on: str) -> None:
    trainer_of(world, folder, config, [Failing(on)]).train()


@pytest.mark.parametrize(
    ("on", "sentence"), [("start", "no such server"), ("finish", "the server is gone")]
)
def test_a_tracker_that_fails_on_the_first_rank_fails_on_both(
    tmp_path: Path, tiny_model_folder: Path, on: str, sentence: str
) -> None:
    """The other rank hears why, instead of waiting for one that has left."""
    config = config_of(str(tiny_model_folder), steps=1)
    zero, one = on_ranks(2, tracked_run, tmp_path / "run", config, on)
    assert (zero.kind, zero.message) == ("ConnectionError", sentence)
    assert one.kind == "MemogradError"
    assert one.message == f"process 0 failed with ConnectionError: {sentence}"
