"""Rewards: pure functions from what a rollout said to a number with a name.

`spec` holds the built-in ones and reads `--rewards`, `user_code` loads the user's own functions,
`compose` calls them and adds up, turning whatever cannot be computed into an error with the
rollout's id in it. Rewards of memory operations are apart, because they see operations and not
completions: `mem_alpha`, and `memograd.tasks.memory_ops.rewards`. No reward knows a policy.
"""

from memograd.rewards.compose import (
    ENVIRONMENT,
    ENVIRONMENT_COLUMN,
    RewardError,
    RewardFunction,
    RewardTable,
    WeightedReward,
    compute_rewards,
    environment_column,
)
from memograd.rewards.overlap import CATEGORIES, locomo_f1, mem0_bleu1, mem0_f1
from memograd.rewards.spec import REWARDS, SCORES, get_reward, parse_rewards, with_absolute_files
from memograd.rewards.user_code import needed_columns

__all__ = [
    "CATEGORIES",
    "ENVIRONMENT",
    "ENVIRONMENT_COLUMN",
    "REWARDS",
    "SCORES",
    "RewardError",
    "RewardFunction",
    "RewardTable",
    "WeightedReward",
    "compute_rewards",
    "environment_column",
    "get_reward",
    "locomo_f1",
    "mem0_bleu1",
    "mem0_f1",
    "needed_columns",
    "parse_rewards",
    "with_absolute_files",
]
