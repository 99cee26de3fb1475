"""Curriculum by pass rate: what can teach something now is asked more often.

Scenarios that were never asked come first, in the order of the first epoch, so a run asks what it
would have asked without a curriculum until everything was asked once. From then on those of a step
are drawn at random without replacement, with the weights

    w = floor + (1 - floor) * promise        promise = 4 p (1 - p), p the pass rate

Invariants: a scenario's weight is at least `floor` of any other's, so it is drawn with at least
`floor` of the chance that it would have if all were equal: nothing is starved, and what was always
failed or always solved is tried again now and then. What is drawn is a pure function of (seed,
step, attempt, rates). Proved in `tests/grpo/test_curriculum.py`. May import pass_rates, rollout.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from memograd.grpo.pass_rates import PassRates
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
    order = list(range(len(scenarios)))
    random.Random(f"{seed}/0").shuffle(order)
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
