"""Small runs as the trainer's tests begin them and go on with them, on one rank or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from memograd.config import TrainConfig
from memograd.grpo import RunFolder
from memograd.grpo.distributed import ALONE, World
from memograd.grpo.drawing import Drawing
from memograd.grpo.run_folder import FollowerFolder
from memograd.grpo.trainer import Stage, Trainer
from memograd.policy.model_policy import ModelPolicy
from memograd.rewards import WeightedReward
from memograd.rollout import Scenario
from memograd.tasks.base.policy import load_policy, plan_memory, share_weights


class Begun(NamedTuple):
    """A run's folder, the checkpoint that it goes on from, if any, and the policy of that."""

    run: RunFolder
    checkpoint: Path | None
    policy: ModelPolicy
    config: TrainConfig
    world: World = ALONE

    def trainer(
        self,
        scenarios: Sequence[Scenario],
        rewards: Sequence[WeightedReward],
        *,
        drawing: Drawing | None = None,
        evaluate: Callable[[str], float] | None = None,
        **heard: Any,
    ) -> Trainer:
        """The trainer of the run, gone on with where there is a checkpoint."""
        run = self.run if self.world.leads else FollowerFolder(self.run.path)
        made = Trainer(
            self.policy,
            scenarios,
            rewards,
            self.config,
            Stage(run, self.world, **heard),
            drawing=drawing,
            evaluate=evaluate,
        )
        if self.checkpoint is not None:
            made.restore(self.checkpoint)
        run.truncate_metrics(made.step)
        return made


def begun(folder: Path, config: TrainConfig, world: World = ALONE) -> Begun:
    """The run in the folder, a new one where there is none."""
    run = world.led(
        lambda: (
            RunFolder.open(folder)
            if (folder / "config.json").exists()
            else RunFolder.create(folder, config.model_dump_json())
        )
    )
    checkpoint = world.led(run.latest_checkpoint)
    policy = load_policy(config, checkpoint)
    assert plan_memory(policy, config, world)
    share_weights(policy, config, world)
    return Begun(run, checkpoint, policy, config, world)
