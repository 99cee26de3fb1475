"""What outlives a step of training, written into checkpoints and taken back.

Invariant (house contract 5): besides the policy's weights it is the step, the optimiser, the random
generators of every process, and what schedules remember (pass rates, groups for replay, the share
of groups that taught nothing). So a run that takes it back gives the numbers of the run that never
stopped, if as many processes go on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from memograd.errors import BadInput
from memograd.grpo.asking import ScenarioChooser
from memograd.grpo.distributed import World
from memograd.grpo.optimizer import PartedAdamW
from memograd.grpo.replay import Replay, kept_groups, plain_groups
from memograd.grpo.run_folder import RunFolder
from memograd.grpo.run_state import (
    capture_random_states,
    restore_random_states,
    seed_everything,
)
from memograd.policy.protocol import Policy
from memograd.rollout.types import Scenario

logger = logging.getLogger(__name__)

STATE_FILE = "trainer_state.pt"
STATE_KEYS = {
    *("step", "optimizer", "ranks", "device"),
    *("zero_variance_fraction", "pass_rates", "replay"),
}
"""What the file holds; `ranks` has what differs between processes, by rank."""


class TrainerState:
    """The state of a trainer on this rank; all ranks must call `restore` and `save` together.

    `step` steps are done; of the last one, `zero_variance_fraction` of the groups taught nothing.
    """

    def __init__(
        self,
        policy: Policy,
        optimizer: PartedAdamW,
        *,
        asking: ScenarioChooser,
        replay: Replay,
        run: RunFolder,
        world: World,
        seed: int,
    ) -> None:
        self.step = 0
        self.zero_variance_fraction = 0.0
        self._policy = policy
        self._optimizer = optimizer
        self._asking = asking
        self._replay = replay
        self._run = run
        self._world = world
        self._seed = seed
        own = world.seed(seed)
        self.generator = torch.Generator(policy.device).manual_seed(own)
        """What the policy draws by."""
        seed_everything(own)
        self._step_began = self._small()

    def restore(self, checkpoint: Path, scenarios: Sequence[Scenario]) -> None:
        """Take over everything but the weights, which the policy was loaded with.

        Made by another number of processes, it goes on with fresh random states: what is drawn is
        not what those processes would have drawn.

        Raises `BadInput` if it was made on another kind of device or by another version.
        """
        # Every rank reads it, and a rank's part of the optimiser may be small: mapped, not copied.
        state = torch.load(
            checkpoint / STATE_FILE, map_location="cpu", weights_only=True, mmap=True
        )
        if set(state) != STATE_KEYS:
            raise BadInput(
                f"{checkpoint} was made by another version of memograd (it holds "
                f"{', '.join(sorted(state))}); resume it with that version, or begin a new run"
            )
        if state["device"] != self._policy.device.type:
            raise BadInput(
                f"{checkpoint} was made on {state['device']} and cannot be continued on "
                f"{self._policy.device.type}; resume where {state['device']} is available"
            )
        self.step = state["step"]
        self._optimizer.load_whole_state(state["optimizer"])
        if (processes := len(state["ranks"])) == self._world.size:
            own = state["ranks"][self._world.rank]
            restore_random_states(own["random"], self.generator)
        else:
            logger.warning(
                "%s was made by %d processes and goes on with %d: it draws other answers than it "
                "would have",
                checkpoint.name,
                processes,
                self._world.size,
            )
            own = state["ranks"][0]
            seed = self._world.seed(self._seed, step=self.step)
            seed_everything(seed)
            self.generator.manual_seed(seed)
        self._policy.forward = own["forward"]
        self._policy.token_bytes = own.get("token_bytes", 0.0)
        self.zero_variance_fraction = state["zero_variance_fraction"]
        self._asking.restore(state["pass_rates"])
        self._replay.restore(kept_groups(state["replay"], scenarios))
        self.begin_step()

    def begin_step(self) -> None:
        """Remember the state as it is between two steps."""
        self._step_began = self._small()

    def save(self, name: str) -> Path:
        """Write a checkpoint of that name."""
        return self._write(name, self._small())

    def save_before_step(self) -> None:
        """Keep the steps before one that failed before it moved the weights."""
        state = self._step_began
        name = f"checkpoint-{state['step']}"
        if state["step"] > 0 and not (self._run.path / name).exists():
            self._write(name, state)

    def _small(self) -> dict[str, Any]:
        """What a step changes besides weights and optimiser; cheap enough to keep every step."""
        return {
            "step": self.step,
            "zero_variance_fraction": self.zero_variance_fraction,
            "pass_rates": self._asking.state(),
            "replay": self._replay.state(),
            "own": {
                "random": capture_random_states(self.generator),
                "forward": self._policy.forward,
                "token_bytes": self._policy.token_bytes,
            },
        }

    def _write(self, name: str, small: dict[str, Any]) -> Path:
        """Let rank 0 write a checkpoint of weights, optimiser and every rank's own state."""
        self._world.check_equal_weights(self._policy.parameters())
        state = {
            **{key: value for key, value in small.items() if key != "own"},
            "ranks": self._world.together(lambda: small["own"]),
            "replay": plain_groups(small["replay"]),
            "device": self._policy.device.type,
            # What is cut among the ranks is put together by all of them, and written by one.
            "optimizer": self._optimizer.whole_state(),
        }
        save = self._policy.saver()

        def write(folder: Path) -> None:
            save(folder)
            torch.save(state, folder / STATE_FILE)

        return self._world.guarded(
            lambda: self._run.save_checkpoint(name, write, step=state["step"])
        )
