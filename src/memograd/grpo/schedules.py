"""What changes over a run: learning rate and sampling temperature, as functions of the step.

Steps count from 1 to `steps`. Both are pure, so a resumed run has the values of the one that never
stopped; a run that is resumed with more steps has the longer run's values from there on.

Invariant: `constant` is what it was without a schedule; every schedule stays between its two ends.
"""

from __future__ import annotations

import math


def learning_rate_at(
    step: int, *, steps: int, peak: float, warmup_steps: int, schedule: str
) -> float:
    """The rate of `step`: a linear rise over `warmup_steps`, then `peak` (`constant`), a straight
    line (`linear`) or half a cosine wave (`cosine`) that would reach 0 one step after the last.
    """
    if step <= warmup_steps:
        return peak * step / (warmup_steps + 1)
    progress = min(1.0, (step - warmup_steps - 1) / max(1, steps - warmup_steps))
    factors = {
        "constant": 1.0,
        "linear": 1.0 - progress,
        "cosine": (1.0 + math.cos(math.pi * progress)) / 2,
    }
    return peak * factors[schedule]


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
