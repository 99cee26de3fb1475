"""How often the policy passes each scenario, as far as it has been asked.

An attempt passes if its total reward reaches a bar. For each scenario two sums are kept, attempts
and passes; before a new group is added to them, both are multiplied by `memory`, because they tell
of an older policy. The pass rate is then

    p = (passes + 1/2) / (attempts + 1)

half a pass and half a failure being assumed beforehand (Jeffreys' prior): it is 1/2 for a scenario
that was never asked, never quite 0 or 1, and a group of two says less than one of sixteen.

What a group can teach is the variance of its rewards; of passing or not, that is p (1 - p), largest
at 1/2 (Bae et al. 2025, arXiv:2504.03380). `promise` is four times that, between 0 and 1.

Invariants: the rates are a pure function of the groups added, in their order, and `state` holds all
of it; 0 < p < 1 and 0 < promise <= 1. Proved in `tests/grpo/test_pass_rates.py`. May import numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np


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
