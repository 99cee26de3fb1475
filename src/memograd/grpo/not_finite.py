"""A number that is NaN or infinite stops the run, and names the groups that it came from.

Training on would spread it into every weight. Invariant: whatever is not finite, a sampled
log-probability, a reward, the loss or the gradient, ends the step before the weights move.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memograd.errors import MemogradError
from memograd.rollout.types import Group


class NotFinite(MemogradError):
    """`what` is NaN or infinite; `groups` are the places in the step's batch that it came from."""

    def __init__(self, what: str, groups: Sequence[int]) -> None:
        super().__init__(f"{what} is not a finite number")
        self.what = what
        self.groups = tuple(int(group) for group in groups)


def check_sampled(groups: Sequence[Group]) -> None:
    """Raise `NotFinite` if the sampler gave a token a log-probability that is not finite."""
    bad = [
        index
        for index, group in enumerate(groups)
        if not all(
            np.isfinite(turn.logprobs).all() for rollout in group.rollouts for turn in rollout.turns
        )
    ]
    if bad:
        raise NotFinite("the sampler's log-probability of a token", bad)
