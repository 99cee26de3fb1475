"""The GRPO loop, readable top to bottom: ask, answer, reward, compare, move.

    for each step:
        scenarios  -> G rollouts each                (policy.sample: every prompt computed once)
        rollouts   -> rewards -> advantages          (relative to the group)
        trees      -> log-probabilities -> loss      (policy.logprobs: every shared token once)
        loss       -> gradient -> weights

It knows no task and no model: scenarios carry the chat and the columns that rewards read, the
policy is a protocol. Invariant (house contract 5): all state that outlives a step is the policy's
weights, the optimiser and two random generators, and a checkpoint holds them all, so a resumed run
gives the numbers of the run that never stopped. Proved in `tests/grpo/test_trainer.py`. May import
torch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from memograd.config import TrainConfig
from memograd.errors import BadInput
from memograd.grpo.batch import Experience, sample_groups, scenarios_of_step, score_groups
from memograd.grpo.learner import Objective, Update, learn
from memograd.grpo.rollout_log import render_experience
from memograd.grpo.run_folder import RunFolder
from memograd.policy.protocol import Policy
from memograd.rewards import WeightedReward
from memograd.rollout.types import Scenario

STATE_FILE = "trainer_state.pt"


class Trainer:
    """Trains `policy` on `scenarios` and writes metrics, rollouts and checkpoints into `run`."""

    def __init__(
        self,
        policy: Policy,
        scenarios: Sequence[Scenario],
        rewards: Sequence[WeightedReward],
        config: TrainConfig,
        run: RunFolder,
        *,
        on_step: Callable[[dict[str, Any]], None] = lambda metrics: None,
    ) -> None:
        if not scenarios:
            raise BadInput(
                "there is nothing to train on: the chosen conversations have no questions"
            )
        self.policy = policy
        self.step = 0
        self._verified = False
        self._scenarios = scenarios
        self._rewards = rewards
        self._config = config
        self._run = run
        self._on_step = on_step
        self._objective = Objective(
            epsilon=config.epsilon,
            beta=config.beta,
            entropy_coef=config.entropy_coef,
            temperature=config.temperature,
            num_iterations=config.num_iterations,
            max_grad_norm=config.max_grad_norm,
        )
        self._optimizer = torch.optim.AdamW(
            policy.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        self._generator = torch.Generator(policy.device).manual_seed(config.seed)
        torch.manual_seed(config.seed)

    def restore(self, checkpoint: Path) -> None:
        """Take over step, optimiser and random states; the policy is loaded from there before.

        Raises `BadInput` if it was made on another kind of device.
        """
        state = torch.load(checkpoint / STATE_FILE, map_location="cpu", weights_only=True)
        if state["device"] != self.policy.device.type:
            raise BadInput(
                f"{checkpoint} was made on {state['device']} and cannot be continued on "
                f"{self.policy.device.type}; resume where {state['device']} is available"
            )
        self.step = state["step"]
        self._optimizer.load_state_dict(state["optimizer"])
        self._generator.set_state(state["generator"])
        torch.set_rng_state(state["torch_rng"])
        if self.policy.device.type == "cuda":
            torch.cuda.set_rng_state(state["cuda_rng"], self.policy.device)
        self.policy.forward = state["forward"]

    def train(self) -> Path:
        """Run up to `config.steps`; returns the folder of the final checkpoint."""
        while self.step < self._config.steps:
            self.step += 1
            self._on_step(self._one_step())
            if self.step % self._config.save_steps == 0 and self.step < self._config.steps:
                self._run.save_checkpoint(f"checkpoint-{self.step}", self._write_checkpoint)
        return self._run.save_checkpoint("final", self._write_checkpoint, step=self.step)

    def _one_step(self) -> dict[str, Any]:
        config, clock = self._config, _Clock()
        scenarios = scenarios_of_step(
            self._scenarios, step=self.step, count=config.prompts_per_step, seed=config.seed
        )
        with clock.phase("sample"):
            groups, sampled = sample_groups(
                self.policy,
                scenarios,
                step=self.step,
                num_generations=config.num_generations,
                temperature=config.temperature,
                max_completion_length=config.max_completion_length,
                generator=self._generator,
            )
        with clock.phase("reward"):
            experience = score_groups(groups, sampled, self._rewards)
        agreement = None
        if not self._verified:
            with clock.phase("verify"):
                trees = [group.tree for group in sampled]
                agreement = self.policy.verify(trees, temperature=config.temperature)
            self._verified = True
        learning_rate = self._set_learning_rate()
        with clock.phase("learn"):
            update = learn(self.policy, self._optimizer, experience, self._objective)
        metrics = step_metrics(self.step, experience, update)
        metrics |= {"learning_rate": learning_rate, "seconds": clock.seconds}
        if agreement is not None and self.step == 1:
            metrics["tree_logprob_error"] = agreement.logprob_error
            metrics["tree_gradient_error"] = agreement.gradient_error
        self._run.append_metrics(metrics)
        if self.step == 1 or self.step % config.rollout_log_steps == 0:
            self._run.write_rollouts(self.step, render_experience(self.step, experience))
        return metrics

    def _set_learning_rate(self) -> float:
        warmup = self._config.warmup_steps
        rate = self._config.learning_rate * min(1.0, self.step / (warmup + 1))
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        return rate

    def _write_checkpoint(self, folder: Path) -> None:
        self.policy.save(folder)
        state: dict[str, Any] = {
            "step": self.step,
            "optimizer": self._optimizer.state_dict(),
            "generator": self._generator.get_state(),
            "torch_rng": torch.get_rng_state(),
            "device": self.policy.device.type,
            "forward": self.policy.forward,
        }
        if self.policy.device.type == "cuda":
            state["cuda_rng"] = torch.cuda.get_rng_state(self.policy.device)
        torch.save(state, folder / STATE_FILE)


def step_metrics(step: int, experience: Experience, update: Update) -> dict[str, Any]:
    """One line of `metrics.jsonl`, timing aside; keys are explained in `docs/architecture.md`."""
    rewards_BG = experience.rewards_BG
    advantages = experience.advantages
    rollouts = experience.rollouts
    trees = [group.tree for group in experience.sampled]
    cut = [rollout.turns[-1].stop_reason == "length" for rollout in rollouts]
    return {
        "step": step,
        "reward_mean": float(rewards_BG.mean()),
        "reward_std": float(rewards_BG.std()),
        "reward_normalised_mean": float(advantages.advantages_BG.mean()),
        "reward_normalised_std": float(advantages.advantages_BG.std()),
        "rewards": {
            name: float(np.mean(values)) for name, values in experience.rewards.by_name.items()
        },
        "zero_variance_fraction": float(1 - advantages.informative_B.mean()),
        "loss": update.loss,
        "kl": update.kl,
        "entropy": update.entropy,
        "grad_norm": update.grad_norm,
        "clip_fraction": update.clip_fraction,
        "sampler_gap": update.sampler_gap,
        "tokens": sum(rollout.tokens for rollout in rollouts),
        "tokens_as_rows": sum(tree.rows_tokens for tree in trees),
        "tokens_as_tree": sum(tree.tree_tokens for tree in trees),
        "cut_fraction": float(np.mean(cut)),
    }


class _Clock:
    """Seconds by phase of one step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - start, 4)
