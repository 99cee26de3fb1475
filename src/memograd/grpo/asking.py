"""What a step asks: which scenarios, and in groups of which sizes.

Without schedules that is every scenario once an epoch, in groups of one size. `Asking` holds the
pass rates that a curriculum and unequal groups go by: it hears the rewards of every group that was
sampled, also of those that dynamic sampling threw away, before it is asked again.

Invariants: what is asked is a pure function of (seed, step, attempt, sizes, pass rates), and the
rates of the groups before it, which every rank has whole: so all ranks ask the same, and a resumed
run asks what the uninterrupted one would have asked; a draw has exactly the rollouts that it is
given. Proved in `tests/grpo/test_schedules_in_runs.py`. May import config, experience, batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memograd.config import TrainConfig
from memograd.grpo.advantage import by_group
from memograd.grpo.batch import replacement_scenarios, scenarios_of_step
from memograd.grpo.curriculum import scenarios_by_pass_rate
from memograd.grpo.experience import Experience
from memograd.grpo.group_sizes import sizes_by_promise
from memograd.grpo.pass_rates import PassRates
from memograd.rollout.types import Scenario


class Asking:
    """Chooses scenarios and group sizes as the settings say."""

    def __init__(self, scenarios: Sequence[Scenario], config: TrainConfig) -> None:
        schedules = config.schedules
        self._scenarios = scenarios
        self._config = config
        self._by_rate = schedules.curriculum == "pass_rate"
        self._unequal = schedules.group_sizes == "difficulty"
        self._rates = PassRates(
            passes_from=schedules.pass_reward, memory=schedules.pass_rate_memory
        )

    def ask(
        self, *, step: int, attempt: int, sizes: Sequence[int]
    ) -> tuple[list[Scenario], list[int]]:
        """The scenarios of a draw and their groups' sizes, which sum to those of `sizes`.

        Attempt 0 is the step's own draw, later ones replace groups.
        """
        scenarios = self._choose(step=step, attempt=attempt, count=len(sizes))
        if not self._unequal:
            return scenarios, list(sizes)
        schedules = self._config.schedules
        shared_out = sizes_by_promise(
            [self._rates.promise(scenario.id) for scenario in scenarios],
            budget=sum(sizes),
            smallest=schedules.min_generations,
            largest=schedules.largest_group(self._config.num_generations),
        )
        return scenarios, shared_out

    def _choose(self, *, step: int, attempt: int, count: int) -> list[Scenario]:
        seed = self._config.seed
        if self._by_rate:
            floor = self._config.schedules.curriculum_floor
            return scenarios_by_pass_rate(
                self._scenarios,
                self._rates,
                step=step,
                attempt=attempt,
                count=count,
                seed=seed,
                floor=floor,
            )
        if attempt == 0:
            return scenarios_of_step(self._scenarios, step=step, count=count, seed=seed)
        return replacement_scenarios(
            self._scenarios, step=step, attempt=attempt, count=count, seed=seed
        )

    def hear(self, experience: Experience) -> None:
        """Learn from what was sampled how often its scenarios are passed."""
        if not (self._by_rate or self._unequal):
            return
        rewards = by_group(experience.rewards_K, experience.sizes_B)
        for group, rewards_G in zip(experience.groups, rewards, strict=True):
            self._rates.add(group.scenario.id, rewards_G)

    def metrics(self, experience: Experience) -> dict[str, Any]:
        """What a line of `metrics.jsonl` says of a step's scenarios and groups; empty if nothing
        is scheduled."""
        metrics: dict[str, Any] = {}
        if self._by_rate or self._unequal:
            names = [group.scenario.id for group in experience.groups]
            metrics["pass_rate_mean"] = self._rates.mean(names)
        if self._unequal:
            metrics["group_size_min"] = min(experience.sizes_B)
            metrics["group_size_max"] = max(experience.sizes_B)
        return metrics

    def state(self) -> dict[str, tuple[float, float]]:
        """The pass rates, for a checkpoint."""
        return self._rates.state()

    def restore(self, state: Mapping[str, tuple[float, float]]) -> None:
        """Go on with the pass rates of a checkpoint."""
        self._rates.restore(state)
