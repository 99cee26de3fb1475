"""What a step asks: which scenarios, in groups of which sizes, and at which temperature.

Without schedules that is every scenario once an epoch, in groups of one size. Two schedules spend
the rollouts where they can teach most. Both go by the pass rates, which `ScenarioChooser` learns
from the rewards of every group that was sampled, also of those that dynamic sampling threw away.

**Pass rates.** An attempt passes if its total reward reaches a bar. Each scenario has two sums,
attempts and passes; before a new group is added, both are multiplied by `memory`, because they tell
of an older policy. The pass rate is p = (passes + 1/2) / (attempts + 1), with half a pass and half
a failure assumed beforehand (Jeffreys' prior): 1/2 for a scenario that was never asked, never quite
0 or 1. What a group can teach is the variance of its rewards; of passing or not that is p (1 - p)
(Bae et al. 2025, arXiv:2504.03380), and `promise` is four times that.

**Curriculum.** Scenarios that were never asked come first, in the order of the first epoch, so a
run asks what it would have asked without a curriculum until everything was asked once. From then on
those of a step are drawn without replacement with the weights floor + (1 - floor) * promise.

**Group sizes.** The rollouts of a step are shared out in proportion to the groups' promise, between
a smallest and a largest size, one after the other: each goes to the group that has most promise for
a rollout it already has (D'Hondt's rule). CurES (arXiv:2510.01037) derives from the gradient how
many rollouts a prompt deserves; this is the plain form of that idea.

Invariants: what is asked is a pure function of (seed, step, attempt, sizes, pass rates), and the
rates of the groups before it, so all ranks ask the same and a resumed run asks what the
uninterrupted one would have asked; 0 < p < 1; no scenario is drawn with less than `floor` of its
even chance; sizes sum to the budget exactly, keep their limits, and never shrink as promise grows.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from memograd.config import TrainConfig
from memograd.grpo.advantage import by_group
from memograd.grpo.batch import epoch_order, replacement_scenarios, scenarios_of_step
from memograd.grpo.experience import Experience
from memograd.rollout.types import Scenario


def scenarios_by_pass_rate(
    scenarios: Sequence[Scenario],
    rates: PassRates,
    *,
    step: int,
    attempt: int,
    count: int,
    seed: int,
    floor: float,
) -> list[Scenario]:
    """`count` scenarios for a step, or in place of dull ones (`attempt` above 0).

    Only where more are asked for than there are does one come twice.
    """
    order = epoch_order(len(scenarios), epoch=0, seed=seed)
    unseen = [place for place in order if scenarios[place].id not in rates][:count]
    weights = [draw_weight(rates.promise(scenario.id), floor) for scenario in scenarios]
    generator = random.Random(f"{seed}/{step}/{attempt}/pass rate")
    chosen = list(unseen)
    while len(chosen) < count:
        # Every round is a draw of all without replacement; the largest keys are drawn first
        # (Efraimidis and Spirakis 2006).
        keys = [math.log(1 - generator.random()) / weight for weight in weights]
        drawn = sorted(range(len(scenarios)), key=lambda place: keys[place], reverse=True)
        already = set(unseen) if len(chosen) == len(unseen) else set()
        chosen += [place for place in drawn if place not in already][: count - len(chosen)]
    return [scenarios[place] for place in chosen]


def draw_weight(promise: float, floor: float) -> float:
    """The weight of a scenario, from `floor` to 1."""
    return floor + (1 - floor) * promise


def sizes_by_promise(
    promise_B: Sequence[float], *, budget: int, smallest: int, largest: int
) -> list[int]:
    """How many of `budget` rollouts each of B groups gets.

    Raises `ValueError` if no sizes from `smallest` to `largest` make up the budget.
    """
    groups = len(promise_B)
    if not groups * smallest <= budget <= groups * largest:
        raise ValueError(
            f"{budget} rollouts cannot be shared out to {groups} groups of {smallest} to {largest}"
        )
    sizes_B = [smallest] * groups
    waiting = [(-promise / smallest, place) for place, promise in enumerate(promise_B)]
    heapq.heapify(waiting)
    for _ in range(budget - groups * smallest):
        _, place = heapq.heappop(waiting)
        sizes_B[place] += 1
        if sizes_B[place] < largest:
            heapq.heappush(waiting, (-promise_B[place] / sizes_B[place], place))
    return sizes_B


class PassRates:
    """Pass rates by scenario id; scenarios of one id share theirs.

    `passes_from`: the total reward that an attempt must reach; `memory` [0, 1): the weight of what
    was known when a new group comes.
    """

    def __init__(self, *, passes_from: float, memory: float) -> None:
        self._passes_from = passes_from
        self._memory = memory
        self._sums: dict[str, tuple[float, float]] = {}

    def __contains__(self, scenario_id: str) -> bool:
        """Whether the scenario was ever asked."""
        return scenario_id in self._sums

    def add(self, scenario_id: str, rewards_G: np.ndarray) -> None:
        """A group of attempts at the scenario earned these total rewards."""
        passes, attempts = self._sums.get(scenario_id, (0.0, 0.0))
        self._sums[scenario_id] = (
            self._memory * passes + int((rewards_G >= self._passes_from).sum()),
            self._memory * attempts + len(rewards_G),
        )

    def rate(self, scenario_id: str) -> float:
        """The pass rate p of the scenario."""
        passes, attempts = self._sums.get(scenario_id, (0.0, 0.0))
        return (passes + 0.5) / (attempts + 1.0)

    def promise(self, scenario_id: str) -> float:
        """How much a group of the scenario can teach: 4 p (1 - p)."""
        rate = self.rate(scenario_id)
        return 4 * rate * (1 - rate)

    def mean(self, scenario_ids: Iterable[str]) -> float:
        """The mean pass rate of scenarios."""
        return float(np.mean([self.rate(scenario_id) for scenario_id in scenario_ids]))

    def state(self) -> dict[str, tuple[float, float]]:
        """All that is known, in plain numbers; what is added later does not change it."""
        return dict(self._sums)

    def restore(self, state: Mapping[str, tuple[float, float]]) -> None:
        """Know what `state` holds, and nothing else."""
        self._sums = dict(state)


class ScenarioChooser:
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


def temperature_at(
    step: int,
    *,
    steps: int,
    start: float,
    end: float,
    schedule: str,
    zero_variance_fraction: float,
) -> float:
    """The temperature that `step` samples and learns with, between `start` and `end`.

    `constant` stays at `start`; `linear` reaches `end` at the last step; `variance` is as near to
    `end` as groups of the step before had no difference in reward (`zero_variance_fraction`): a
    policy that answers everything alike is made to try other things.
    """
    shares = {
        "constant": 0.0,
        "linear": min(1.0, (step - 1) / max(1, steps - 1)),
        "variance": zero_variance_fraction,
    }
    return start + (end - start) * shares[schedule]
