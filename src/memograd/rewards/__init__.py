"""Rewards: pure functions from what a rollout said to a number with a name.

Three answer metrics (`locomo_f1`, `mem0_f1`, `mem0_bleu1`) and the weighted sum over a batch, which
turns whatever cannot be computed into an error with the rollout's id in it. Knows no policy and no
task; may import errors only. Tests: `tests/rewards/`.
"""

from memograd.rewards.compose import (
    REWARDS,
    RewardError,
    RewardFunction,
    RewardTable,
    WeightedReward,
    compute_rewards,
    get_reward,
    parse_rewards,
)
from memograd.rewards.locomo import CATEGORIES, locomo_f1
from memograd.rewards.mem0 import mem0_bleu1, mem0_f1

__all__ = [
    "CATEGORIES",
    "REWARDS",
    "RewardError",
    "RewardFunction",
    "RewardTable",
    "WeightedReward",
    "compute_rewards",
    "get_reward",
    "locomo_f1",
    "mem0_bleu1",
    "mem0_f1",
    "parse_rewards",
]
