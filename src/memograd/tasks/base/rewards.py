"""Rewards by name for every recipe: the built-in ones, the user's own, and the reward model.

`memograd.rewards` must not know the rooms above it, so what they make is handed to its parser here.
"""

from __future__ import annotations

from memograd.reward_model.reward import NAME, make_reward
from memograd.rewards import WeightedReward
from memograd.rewards.spec import Makers
from memograd.rewards.spec import parse_rewards as parse

MAKERS: Makers = {NAME: make_reward}


def parse_rewards(spec: str) -> list[WeightedReward]:
    """Read a specification of rewards; see `memograd.rewards.spec`."""
    return parse(spec, MAKERS)
